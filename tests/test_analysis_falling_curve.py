"""The posterior of a falling curve, against a sum over all paths of a short chain."""

from __future__ import annotations

import numpy as np
import pytest

from eyechart.harness.analysis.length.bins import BINS_AN_OCTAVE
from eyechart.harness.analysis.length.falling_curve import _BELOW, _RATES, _chain, falling_curve

THRESHOLDS = (0.02, 0.3, 0.85, 0.995)


def by_all_paths(
    correct: list[float], answered: list[float], threshold: float
) -> tuple[np.ndarray, np.ndarray]:
    """Probability of being below the threshold, and mean accuracy, in three bins."""
    chain = _chain(threshold, 1 / BINS_AN_OCTAVE)
    accuracies = np.tile(chain.accuracies, len(_RATES))
    likelihoods = [
        accuracies**right * (1 - accuracies) ** (asked - right)
        for right, asked in zip(correct, answered, strict=True)
    ]
    first, second, third = likelihoods
    paths = np.einsum(
        "a,ab,b,bc,c->abc",
        chain.first * first,
        chain.step,
        second,
        chain.step,
        third,
        optimize=True,
    )
    paths /= paths.sum()
    marginals = [paths.sum(axis=(1, 2)), paths.sum(axis=(0, 2)), paths.sum(axis=(0, 1))]
    below = [float(marginal[accuracies < threshold].sum()) for marginal in marginals]
    return np.array(below), np.array([float(marginal @ accuracies) for marginal in marginals])


@pytest.mark.parametrize("threshold", [0.5, 0.85])
@pytest.mark.parametrize(
    ("correct", "answered"),
    [
        ([5, 4, 0], [5, 5, 5]),
        ([2, 5, 1], [5, 5, 4]),
        ([0, 0, 0], [0, 0, 0]),
        ([3.3, 0, 0.5], [3.6, 0, 2.5]),
    ],
    ids=["falls", "rises", "nothing asked", "counts that are not whole"],
)
def test_it_is_the_sum_over_all_paths(
    correct: list[float], answered: list[float], threshold: float
) -> None:
    """Forward-backward leaves out none and counts none twice."""
    found = falling_curve(np.array([correct], float), np.array([answered], float), threshold)
    below, accuracy = by_all_paths(correct, answered, threshold)
    assert found.below[0] == pytest.approx(below)
    assert found.accuracy[0] == pytest.approx(accuracy)


def test_sets_of_answers_do_not_touch_each_other() -> None:
    """Each has the posterior that it has alone."""
    rng = np.random.default_rng(3)
    answered = rng.integers(0, 9, (4, 20)).astype(float)
    correct = np.floor(answered * rng.random((4, 20)))
    together = falling_curve(correct, answered, 0.85)
    for place in range(4):
        alone = falling_curve(correct[[place]], answered[[place]], 0.85)
        assert together.below[place] == pytest.approx(alone.below[0])
        assert together.accuracy[place] == pytest.approx(alone.accuracy[0])


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_it_never_rises(threshold: float) -> None:
    """Whatever was answered, and also with a hundred thousand answers a bin."""
    rng = np.random.default_rng(4)
    for most in (1, 20, 100_000):
        answered = rng.integers(0, most + 1, (1, 54)).astype(float)
        correct = np.floor(answered * rng.random((1, 54)))
        found = falling_curve(correct, answered, threshold)
        assert (np.diff(found.below[0]) > -1e-9).all()
        assert (np.diff(found.accuracy[0]) < 1e-9).all()
        assert np.isfinite(found.below).all()


@pytest.mark.parametrize("n", [10, 1000, 100_000])
def test_a_rise_is_pooled(n: int) -> None:
    """A curve that never rises has one accuracy in both, however certain each of them is: its
    states are less probable than the smallest float.
    """
    found = falling_curve(np.array([[n, 0, n, 0]]) * 1.0, np.full((1, 4), n * 1.0), 0.85)
    assert found.accuracy[0, :3] == pytest.approx([1.0, 0.5, 0.5], abs=0.15)
    assert found.accuracy[0, 3] < 0.2


@pytest.mark.parametrize("apart", [1 / 8, 1 / 64])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_the_prior_is_a_distribution_of_falling_curves(threshold: float, apart: float) -> None:
    """Probabilities add up to one, no level is left for a higher one, and the threshold is between
    two levels.
    """
    chain = _chain(threshold, apart)
    assert chain.first.sum() == pytest.approx(1)
    assert chain.step.sum(axis=1) == pytest.approx(1)
    levels = len(chain.accuracies)
    level = np.arange(len(chain.first)) % levels
    assert not chain.step[level[:, None] < level[None]].any()
    assert chain.accuracies[_BELOW - 1] < threshold < chain.accuracies[_BELOW]
    steps = np.diff(np.log(chain.accuracies / (1 - chain.accuracies)))
    assert steps == pytest.approx(0.5)


def test_a_threshold_of_one_counts_as_nearly_one() -> None:
    """There is no level above 1."""
    correct, answered = np.full((1, 3), 9.0), np.full((1, 3), 9.0)
    one, nearly = (falling_curve(correct, answered, share).below for share in (1.0, 0.995))
    assert one == pytest.approx(nearly)


def test_finer_bins_change_little() -> None:
    """The prior is one of octaves: each quantile of the crossing stays within a usual bin."""
    counts = np.array([[20, 19, 19, 17, 12, 3, 0], [20] * 7])
    quantiles = []
    for finer in (1, 4, 16):
        correct, answered = np.zeros((2, 1, 24 * finer + 1))
        correct[0, :: 4 * finer], answered[0, :: 4 * finer] = counts
        places = np.arange(24 * finer + 1) / finer
        found = falling_curve(correct, answered, 0.85, places / BINS_AN_OCTAVE)
        quantiles.append(np.interp([0.025, 0.5, 0.975], found.below[0], places))
    assert quantiles[0] == pytest.approx([8.8, 11.6, 14.1], abs=0.1)
    assert quantiles[1] == pytest.approx(quantiles[0], abs=1.0)
    assert quantiles[2] == pytest.approx(quantiles[1], abs=0.2)
