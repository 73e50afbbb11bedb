"""Curves for tests of the analysis, and a check of intervals by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from eyechart.harness.analysis.comparison.length_difference import (
    LengthDifference,
    fitted_side,
    sides_difference,
)
from eyechart.harness.analysis.length.curve import Curve, Floats, curve
from eyechart.harness.analysis.length.interval import Z95
from eyechart.harness.spec import lines_of

LENGTHS = (5, 10, 20, 50, 100, 200, 500)
LINES = tuple(lines_of((5, 7, 10, 15, 22, 33, 50, 75, 110, 160, 240, 350, 500), "bands"))


def answers(right: object, lengths: tuple[int, ...] = LENGTHS) -> Curve:
    """A curve from rows of 0 and 1, one column a length."""
    table = np.asarray(right)
    indexes, columns = np.indices(table.shape)
    return curve(np.asarray(lengths)[columns.ravel()], indexes.ravel(), table.ravel())


def length_difference(first: Curve, second: Curve, threshold: float) -> LengthDifference:
    """The difference of the effective lengths of two curves in which row i is the same row."""
    return sides_difference(fitted_side(first, threshold), fitted_side(second, threshold))


def shares(*percent: int, n: int = 100) -> Curve:
    """A curve with these accuracies."""
    lengths = LENGTHS[: len(percent)]
    return answers([[index < share * n / 100 for share in percent] for index in range(n)], lengths)


def banded(
    accuracy: Callable[[float], float],
    rng: np.random.Generator,
    *,
    n: int = 20,
    nested: bool = False,
) -> Curve:
    """A curve of `n` samples on each of `LINES`, with this accuracy at each length.

    With `nested` a row is easy or hard at all lengths: its answers go together.
    """
    luck = rng.random((n, 1)) if nested else rng.random((n, len(LINES)))
    luck = np.broadcast_to(luck, (n, len(LINES)))
    lengths, indexes, right, places = [], [], [], []
    for place, line in enumerate(LINES):
        for index in range(n):
            length = line.length_of(index, 0)
            lengths.append(length)
            indexes.append(index)
            right.append(bool(luck[index, place] < accuracy(length)))
            places.append(place)
    return curve(lengths, indexes, right, lines=LINES, places=places)


def falling(middle: float, slope: float) -> np.ndarray:
    """Accuracies of a logistic curve at `LENGTHS`."""
    return 1 / (1 + (np.asarray(LENGTHS) / middle) ** slope)


def hold_95_percent(
    true: float, estimates: Sequence[float], intervals: Sequence[Sequence[float]], spare: float = 0
) -> bool:
    """Asserts that intervals hold what they should, and are no wider than that takes.

    95 % of them hold the true value, less three standard errors of the simulation. Their mean width
    is at most 1.3 times that of the middle 95 % of a normal distribution with the standard
    deviation of the estimates, and `spare` more; 120 estimates tell that deviation to 6 %.
    """
    low, high = np.transpose(intervals)
    missed = ((true < low) | (high < true)).mean()
    assert missed <= 0.05 + 3 * math.sqrt(0.95 * 0.05 / len(intervals))
    width, spread = (high - low).mean(), 2 * Z95 * np.std(estimates)
    assert 0 < width <= 1.3 * spread + spare
    return True


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
