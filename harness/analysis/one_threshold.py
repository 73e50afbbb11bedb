"""Whether a curve has a single threshold, or rises above it again after it fell below."""

from __future__ import annotations

import numpy as np

from eyechart.harness.analysis.bins import group_sums
from eyechart.harness.analysis.curve import Floats

LEVEL = 0.02
"""About how often a falling curve is wrongly found to have no single threshold."""
_DRAWS = 400
_SCALES = (4, 2)
"""Groups of neighbouring lengths in an octave."""


def one_threshold_p(
    correct: Floats, answered: Floats, accuracy: Floats, threshold: float, centres: Floats
) -> float:
    """The p-value of an accuracy that falls below the threshold once, or never.

    It is 1 unless a group of neighbouring lengths is below the threshold and a longer group above
    it; then it is the share of cases in which a falling accuracy would give such a rise. The
    test is the likelihood ratio of free accuracies against the best falling ones (Robertson, Wright
    and Dykstra 1988, Order Restricted Statistical Inference), at two widths of the groups. Its
    distribution comes from answers drawn from `accuracy`, a fitted falling curve. Arguments have
    shape (B,); `centres` are the octaves of the bins.
    """
    if not any(_rises_across(correct, answered, centres, scale, threshold) for scale in _SCALES):
        return 1.0
    drawn = np.random.default_rng(0).binomial(
        answered.astype(np.int64), np.clip(accuracy, 0, 1), (_DRAWS, len(answered))
    )
    sets = np.concatenate([correct[None], drawn])
    ratios = [_likelihood_ratios(sets, answered, centres, scale) for scale in _SCALES]
    standardised = [
        (ratio - ratio[1:].mean()) / max(float(ratio[1:].std()), 1e-9) for ratio in ratios
    ]
    largest = np.max(standardised, axis=0)
    as_large = int((largest[1:] >= largest[0] - 1e-9).sum())
    return (1 + as_large) / (1 + _DRAWS)


def _rises_across(
    correct: Floats, answered: Floats, centres: Floats, scale: int, threshold: float
) -> bool:
    """Whether a group is below the threshold and a longer one above it."""
    right, asked = (group_sums(counts, centres, scale) for counts in (correct, answered))
    accuracies = right[asked > 0] / asked[asked > 0]
    below = np.flatnonzero(accuracies < threshold)
    return len(below) > 0 and bool((accuracies[below[0] :] > threshold).any())


def falling_fit(correct: Floats, answered: Floats) -> Floats:
    """The falling accuracies of greatest likelihood: shape (D, B) for D sets of answers.

    By the min-max formula of isotonic regression: for each bin, take every start at or before it;
    find the largest accuracy of the groups from this start to any end at or after the bin; the
    result is the smallest of these.
    """
    bins = correct.shape[1]
    right, asked = (
        np.concatenate([np.zeros((len(counts), 1)), counts.cumsum(axis=1)], axis=1)
        for counts in (correct, answered)
    )
    fit = np.full(correct.shape, np.inf)
    for begin in range(bins):
        counts = asked[:, begin + 1 :] - asked[:, begin : begin + 1]
        accuracies = (right[:, begin + 1 :] - right[:, begin : begin + 1]) / np.maximum(
            counts, 1e-12
        )
        accuracies[np.broadcast_to(counts <= 0, accuracies.shape)] = -np.inf
        largest = np.maximum.accumulate(accuracies[:, ::-1], axis=1)[:, ::-1]
        np.minimum(fit[:, begin:], largest, out=fit[:, begin:])
    return fit


def _likelihood_ratios(sets: Floats, answered: Floats, centres: Floats, scale: int) -> Floats:
    """Twice the log likelihood of free over falling accuracies: shape (D,)."""
    correct, asked = (group_sums(counts, centres, scale) for counts in (sets, answered))
    kept = asked > 0
    correct, asked = correct[:, kept], np.broadcast_to(asked[kept], (len(sets), kept.sum()))
    free, falling = correct / asked, falling_fit(correct, asked)
    ratios: Floats = 2 * (
        _log_likelihood(correct, asked, free) - _log_likelihood(correct, asked, falling)
    )
    return ratios


def _log_likelihood(correct: Floats, answered: Floats, accuracy: Floats) -> Floats:
    safe = np.clip(accuracy, 1e-9, 1 - 1e-9)
    terms = correct * np.log(safe) + (answered - correct) * np.log1p(-safe)
    likelihood: Floats = terms.sum(axis=1)
    return likelihood
