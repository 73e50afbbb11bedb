"""Whether a curve has a single threshold, or rises above it again after it fell below."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.bins import group_sums, groups_of
from eyechart.harness.analysis.length.curve import Floats

LEVEL = 0.03
"""About how often a falling curve is wrongly found to have no single threshold."""
LEVEL_AT = 0.08
"""The same where the accuracy is at the threshold in the lengths that look too low. The smaller of
both keeps an accuracy that rises from 86 to 96 % from being called so; with a smaller one fewer
real dips are found."""
LEVEL_OF_CHOSEN = 0.005
"""The level where the answers chose the numbers of samples, as in an adaptive run. Such a run tests
after each wave, and asks more where answers were wrong, so the few answers of the other lines are
right too often."""
_DRAWS = 400
_BEFORE = (1, 2, 3, 4, 6, 8, 12)
_BEHIND = (1, 2, 4, 6, 8, 12, 16)
"""Widths of the two windows that are compared, in groups of neighbouring lengths."""
_LARGEST = 1200.0
"""Likelihood ratios count as this one at most, so that their exponential is finite."""


def are_chosen(numbers: Floats) -> bool:
    """Whether answers chose the numbers of samples of lines, shape (L,): one of them has more than
    twice as many as another one.
    """
    return bool(numbers.max() > 2 * numbers.min())


def level_of(numbers: Floats) -> float:
    """The level of the test for lines with so many samples, shape (L,)."""
    return LEVEL_OF_CHOSEN if are_chosen(numbers) else LEVEL


@dataclass(frozen=True, eq=False)
class RowCorrelation:
    """How much alike the answers to the same row of symbols are at different lengths."""

    correlation: float
    """The correlation of two answers to the same row: 0 to 1."""
    pairs: Floats
    """Number of pairs of answers to the same row, one answer in each of two bins, summed over all
    rows: shape (B, B). An answer and itself count as a pair too."""

    def up_to(self, count: int) -> RowCorrelation:
        """Without the bins from `count` on."""
        return RowCorrelation(self.correlation, self.pairs[:count, :count])


def pairs_of_rows(places: npt.NDArray[np.int64], scored: Floats, bins: int) -> Floats:
    """See `RowCorrelation.pairs`. `places`: the bin of each answer, shape (N, L), as `scored`."""
    rows = np.arange(len(places))[:, None] * bins
    sums = np.bincount((rows + places).ravel(), scored.ravel(), len(places) * bins)
    counts = sums.astype(float).reshape(len(places), bins)
    pairs: Floats = counts.T @ counts
    return pairs


@dataclass(frozen=True, eq=False)
class _Windows:
    """Pairs of windows, which are ranges of groups of lengths. The second window of a pair begins
    where the first one ends. Each array has shape (W,), a value for each pair.
    """

    first: npt.NDArray[np.int64]
    middle: npt.NDArray[np.int64]
    """The first group of the second window."""
    end: npt.NDArray[np.int64]

    @classmethod
    def of(cls, groups: int) -> _Windows:
        """All pairs of windows with the widths above."""
        found = [
            (middle - before, middle, middle + behind)
            for before in _BEFORE
            for behind in _BEHIND
            for middle in range(before, groups - behind + 1)
        ]
        return cls(*np.array(found, np.int64).reshape(-1, 3).T)

    def sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Sums of (..., G) over both windows: twice (..., W)."""
        zero = np.zeros((*values.shape[:-1], 1))
        upto = np.concatenate([zero, values.cumsum(axis=-1)], axis=-1)
        middle = upto[..., self.middle]
        return middle - upto[..., self.first], upto[..., self.end] - middle

    def contrasts(self, asked: Floats) -> Floats:
        """Factors of groups in the difference of two windows: (W, G), a row for each pair."""
        groups = np.arange(len(asked))
        before, behind = self.sums(asked)
        in_before = (self.first[:, None] <= groups) & (groups < self.middle[:, None])
        in_behind = (self.middle[:, None] <= groups) & (groups < self.end[:, None])
        return in_behind / behind[:, None] - in_before / before[:, None]


def one_threshold_p(
    correct: Floats,
    answered: Floats,
    accuracy: Floats,
    threshold: float,
    centres: Floats,
    *,
    together: RowCorrelation | None = None,
) -> float:
    """The p-value of an accuracy that falls below the threshold once, or never.

    It is 1 unless a window of lengths is below the threshold and the next one above it; then it is
    the share of cases in which so large a rise comes by chance. The measure is the average
    likelihood ratio over windows of all places and many widths (Chan and Walther 2013, Statistica
    Sinica 23, arXiv 1107.4344), weighted with the answers of the smaller window. A pair of windows
    counts for no more than the first one is below the threshold: an accuracy that rises from 88 to
    98 % has one threshold.

    Its distribution comes from answers drawn from `accuracy`, a fitted falling curve. As large a
    rise must be rare as well where the first window of the largest one is at the threshold, at a
    level of `LEVEL_AT`. Where answers to one row go together, the difference of two windows varies
    less than the independent answers that are drawn, or more; its likelihood ratio is corrected by
    that. Arguments have shape (B,); `centres` are the octaves of the bins.
    """
    asked = group_sums(answered, centres)
    kept = asked > 0
    asked = asked[kept]
    windows = _Windows.of(len(asked))
    counts = windows.sums(asked)

    def right(sets: Floats) -> Floats:
        return group_sums(sets, centres)[:, kept]

    def averages(rises: Floats) -> Floats:
        found: Floats = np.expm1(np.minimum(rises, _LARGEST) / 2) * np.minimum(*counts)
        return found

    observed = _rises(right(correct[None]), windows, counts, threshold)
    if not observed[0].any():
        return 1.0
    if together is not None:
        observed = observed / _variance(together, windows, asked, centres, kept)
    of_windows = averages(observed)[0]

    def p_value(curve: Floats) -> float:
        drawn = np.random.default_rng(0).binomial(
            answered.astype(np.int64), np.clip(curve, 0, 1), (_DRAWS, len(answered))
        )
        rises = _rises(right(drawn.astype(float)), windows, counts, threshold)
        as_large = averages(rises).sum(axis=1) >= of_windows.sum() * (1 - 1e-9)
        return (1 + int(as_large.sum())) / (1 + _DRAWS)

    if (falling := p_value(accuracy)) >= LEVEL:
        return falling
    largest = int(of_windows.argmax())
    lowest, behind = windows.first[largest], windows.middle[largest]
    groups = groups_of(centres)
    within = np.isin(groups, np.unique(groups)[kept][lowest:behind])
    return max(falling, p_value(np.where(within, threshold, accuracy)) * LEVEL / LEVEL_AT)


def _rises(
    correct: Floats, windows: _Windows, counts: tuple[Floats, Floats], threshold: float
) -> Floats:
    """How much better two accuracies, one for each window, explain the answers than one accuracy
    for both, and at most how much better the first one does than the threshold: twice the log
    likelihood ratio. It is 0 for a pair of windows that does not rise across the threshold. Shape
    (D, W) for `correct` of shape (D, G).
    """
    before, behind = windows.sums(correct)
    asked_before, asked_behind = (np.broadcast_to(count, before.shape) for count in counts)
    rises = (before < threshold * asked_before) & (behind > threshold * asked_behind)
    first, second = (before[rises], asked_before[rises]), (behind[rises], asked_behind[rises])
    both = first[0] + second[0], first[1] + second[1]
    of_first = _log_likelihood(*first)
    at_threshold = first[0] * math.log(threshold) + (first[1] - first[0]) * math.log1p(-threshold)
    ratios = np.zeros(before.shape)
    ratios[rises] = 2 * np.minimum(
        of_first + _log_likelihood(*second) - _log_likelihood(*both), of_first - at_threshold
    )
    return ratios


def _log_likelihood(correct: Floats, answered: Floats) -> Floats:
    """The largest log likelihood of answers that have one accuracy."""
    share = np.clip(correct / answered, 1e-9, 1 - 1e-9)
    return correct * np.log(share) + (answered - correct) * np.log1p(-share)


def _variance(
    together: RowCorrelation,
    windows: _Windows,
    asked: Floats,
    centres: Floats,
    kept: npt.NDArray[np.bool_],
) -> Floats:
    """Variance of the difference of two windows, over that of independent answers: shape (W,)."""
    pairs = group_sums(together.pairs, centres)
    pairs = group_sums(pairs.T, centres)[np.ix_(kept, kept)]
    weights = windows.contrasts(asked)
    independent = weights**2 @ asked
    of_rows = ((weights @ pairs) * weights).sum(axis=1)
    share: Floats = together.correlation * (of_rows / independent - 1)
    return 1 + share
