"""Falling fits against the textbook's algorithm, and curves with and without a single threshold."""

from __future__ import annotations

import numpy as np
import pytest

from eyechart.harness.analysis.length.bins import BINS_AN_OCTAVE
from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.one_threshold import (
    LEVEL,
    RowCorrelation,
    one_threshold_p,
    pairs_of_rows,
)
from tests.curves import falling_fit

BINS = 54


def has_one(correct: Floats, answered: Floats, threshold: float) -> bool:
    """The verdict, with the best falling curve in place of the posterior's mean."""
    accuracy = falling_fit(correct[None], answered[None])[0]
    centres = np.arange(len(correct)) / BINS_AN_OCTAVE
    return one_threshold_p(correct, answered, accuracy, threshold, centres) >= LEVEL


def pooled(correct: np.ndarray, answered: np.ndarray) -> list[float]:
    """Pool adjacent violators: neighbours that rise are made one, until none does."""
    blocks: list[list[float]] = []
    for right, asked in zip(correct, answered, strict=True):
        blocks.append([right, asked, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] < blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [one + other for one, other in zip(blocks[-1], last, strict=True)]
    return [right / asked for right, asked, bins in blocks for _ in range(int(bins))]


class TestFallingFit:
    """The falling accuracies of greatest likelihood."""

    @pytest.mark.parametrize("seed", range(5))
    def test_it_is_that_of_pooled_neighbours(self, seed: int) -> None:
        """Of any counts."""
        rng = np.random.default_rng(seed)
        answered = rng.integers(1, 30, 20).astype(float)
        correct = np.stack([np.floor(answered * rng.random(20)) for _ in range(4)])
        for row, found in zip(
            correct, falling_fit(correct, np.tile(answered, (4, 1))), strict=True
        ):
            assert found == pytest.approx(pooled(row, answered))

    def test_what_falls_stays_as_it_is(self) -> None:
        """And what rises is one mean."""
        answered = np.full((2, 4), 10.0)
        correct = np.array([[9.0, 7.0, 3.0, 0.0], [0.0, 3.0, 7.0, 10.0]])
        assert falling_fit(correct, answered) == pytest.approx(
            np.array([[0.9, 0.7, 0.3, 0.0], [0.5] * 4])
        )

    def test_a_bin_without_an_answer_is_between_its_neighbours(self) -> None:
        """It changes none of the others."""
        answered = np.array([[10.0, 0.0, 10.0, 0.0, 0.0, 10.0]])
        correct = np.array([[9.0, 0.0, 5.0, 0.0, 0.0, 6.0]])
        found = falling_fit(correct, answered)[0]
        assert found[[0, 2, 5]] == pytest.approx([0.9, 0.55, 0.55])
        assert 0.55 <= found[1] <= 0.9
        assert found[[3, 4]] == pytest.approx([0.55, 0.55])


def drawn(accuracy: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Correct and scored answers in each bin."""
    correct = np.random.default_rng(seed).binomial(n, accuracy).astype(float)
    return correct, np.full(len(accuracy), float(n))


def dip(depth: float, width: int) -> np.ndarray:
    """All right but for a dip in the middle."""
    accuracy = np.full(BINS, 0.98)
    accuracy[20 : 20 + width] -= depth
    return accuracy


class TestHasOneThreshold:
    """Whether the accuracy falls below the threshold once, or never."""

    def test_a_deep_dip_has_none(self) -> None:
        """Half an octave wide."""
        assert not has_one(*drawn(dip(0.6, 4), 8, 0), 0.85)

    @pytest.mark.parametrize("threshold", [0.2, 0.995])
    def test_a_dip_on_one_side_of_the_threshold_does_not_matter(self, threshold: float) -> None:
        """The accuracy does not cross it there."""
        answered = np.full(BINS, 80.0)
        correct = np.round(80 * dip(0.6, 4))
        assert not has_one(correct, answered, 0.85)
        assert has_one(correct, answered, threshold)

    @pytest.mark.parametrize(
        ("accuracy", "least"),
        [
            (np.linspace(1, 0, BINS), 0.95),
            (np.where(np.arange(BINS) < 30, 0.93, 0.1), 0.95),
            (np.full(BINS, 0.7), 0.9),
        ],
        ids=["slope", "step", "flat"],
    )
    def test_a_falling_accuracy_has_one(self, accuracy: np.ndarray, least: float) -> None:
        """Most often, of fifty draws."""
        single = [has_one(*drawn(accuracy, 5, seed), 0.85) for seed in range(50)]
        assert np.mean(single) >= least

    def test_a_second_rise_is_found_more_often_with_more_answers(self) -> None:
        """A dip of 0.35 below 0.98."""
        found = [
            np.mean([not has_one(*drawn(dip(0.35, 6), n, seed), 0.85) for seed in range(30)])
            for n in (2, 12)
        ]
        assert found[0] < found[1]
        assert found[1] > 0.9

    def test_one_bin_has_one(self) -> None:
        """There is nothing to rise to."""
        assert has_one(np.array([3.0]), np.array([10.0]), 0.85)

    def test_the_same_answers_have_the_same_verdict(self) -> None:
        """Its draws have a seed of their own."""
        answered = drawn(dip(0.3, 4), 6, 5)
        assert len({has_one(*answered, 0.85) for _ in range(5)}) == 1


class TestTogether:
    """Answers to one row at several lengths."""

    def test_pairs_are_counted_in_each_row(self) -> None:
        """Two rows: one has two answers in bin 0 and one in bin 2, the other one in bins 0 and 1,
        and a sample that was not scored.
        """
        places, scored = np.array([[0, 0, 2], [0, 1, 2]]), np.array([[1.0, 1, 1], [1, 1, 0]])
        assert pairs_of_rows(places, scored, 3).tolist() == [[5, 1, 2], [1, 1, 0], [2, 0, 1]]
        assert RowCorrelation(0.5, pairs_of_rows(places, scored, 3)).up_to(2).pairs.shape == (2, 2)

    def test_rows_that_are_asked_on_both_sides_of_a_rise_make_it_clearer(self) -> None:
        """And rows that are asked on one side alone make it less clear: their answers tell less."""
        answered, correct = np.full(12, 20.0), np.full(12, 19.0)
        correct[4:8] = 15
        accuracy, centres = np.full(12, correct.sum() / 240), np.arange(12) / 4
        side = np.arange(12) // 4
        pairs = {
            "apart": np.diag(answered),
            "both": np.full((12, 12), 20.0),
            "one": np.where(side[:, None] == side, 20.0, 0.0),
        }
        p = {
            name: one_threshold_p(
                correct, answered, accuracy, 0.85, centres, together=RowCorrelation(0.5, one)
            )
            for name, one in pairs.items()
        }
        assert p["both"] < p["apart"] < p["one"]
