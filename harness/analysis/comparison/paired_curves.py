"""Two curves compared on each line and by area: differences, 95 % intervals, tests. They are paired
on the same samples, or unpaired on different rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from eyechart.harness.analysis.length.curve import (
    NEARLY,
    RESAMPLES,
    SIGNIFICANT,
    TAILS,
    Curve,
    Floats,
    areas_under,
    drawn_accuracies,
)
from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.spec import Line

_FLIPS = 9_999
_EQUIVALENCE_TAIL = 0.05
"""Level of each of the two one-sided tests of equivalence."""
_MOST_FLIPS = 2_000_000
"""Most numbers of flips in memory at a time."""
_DIGITS = 12
"""Decimals of a row's difference: values that should be equal differ by rounding."""


@dataclass(frozen=True, slots=True)
class LineDifference:
    """Two models, or two conditions, on one line: on the same samples, or on different rows."""

    line: Line
    n: int
    """Pairs in which both were scored; of different rows, scored samples of the first."""
    first: float
    """Accuracy of the first on these."""
    second: float
    difference_ci: tuple[float, float]
    p: float
    """Two-sided p-value of McNemar's exact test, or of `sign_flips` over several draws; of
    different rows, of Fisher's exact test. Uncorrected."""
    only_first: int | None = None
    """Pairs that only the first has right, or more often over draws; `None` without pairs."""
    only_second: int | None = None
    n_second: int | None = None
    """Of different rows, scored samples of the second."""

    @property
    def length(self) -> int:
        return self.line.length

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def scored_second(self) -> int:
        return self.n if self.n_second is None else self.n_second

    @property
    def swapped(self) -> LineDifference:
        low, high = self.difference_ci
        return replace(
            self,
            n=self.scored_second,
            n_second=None if self.n_second is None else self.n,
            first=self.second,
            second=self.first,
            only_first=self.only_second,
            only_second=self.only_first,
            difference_ci=(-high, -low),
        )


@dataclass(frozen=True, slots=True)
class PairedArea:
    """Areas under the curves of first and second on the same samples."""

    first: float
    second: float
    difference_ci: tuple[float, float]
    """95 % interval of first minus second; it leaves out 0 where `p` is below 0.05."""
    equivalence_ci: tuple[float, float]
    """90 % interval: two one-sided tests at 5 % go by it."""
    p: float
    """Two-sided p-value of no difference between the sides, see `label_test`."""

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def larger(self) -> int:
        """1 if first has the larger area, -1 if second has it, 0 if neither is shown."""
        if self.p >= SIGNIFICANT:
            return 0
        return 1 if self.difference > 0 else -1

    @property
    def swapped(self) -> PairedArea:
        wide, narrow = ((-high, -low) for low, high in (self.difference_ci, self.equivalence_ci))
        return PairedArea(self.second, self.first, wide, narrow, self.p)


Pair: TypeAlias = tuple[Curve, Curve]
"""Two curves. If they are paired, their arrays have equal shapes, and row i of both holds the
answers to the same row of symbols."""


@dataclass(frozen=True, eq=False)
class PairedLines:
    """First against second on each line that both have."""

    pair: Pair
    lengths: tuple[LineDifference, ...]
    resamples: int = RESAMPLES
    """Draws for the intervals of the areas."""
    is_paired: bool = True
    """Whether both have the same rows."""

    @cached_property
    def area(self) -> PairedArea | None:
        """The areas, if both have the same rows. Most pairs of many runs never need them."""
        return mean_area([self.pair], resamples=self.resamples) if self.is_paired else None

    @property
    def swapped(self) -> PairedLines:
        lengths = tuple(line.swapped for line in self.lengths)
        return replace(self, pair=self.pair[::-1], lengths=lengths)


def paired(first: Curve, second: Curve) -> Pair | None:
    """Both curves restricted to the samples that are scored in both; `None` if there are none.

    Lines without such a sample are left out. Equal lines have samples of equal lengths, as both
    curves have one task and seed.
    """
    lines = sorted(set(first.lines) & set(second.lines))
    rows = min(len(first.correct), len(second.correct))
    parts = [curve.at([curve.lines.index(line) for line in lines]) for curve in (first, second)]
    both = parts[0].scored[:rows] * parts[1].scored[:rows]
    keep = np.flatnonzero(both.sum(axis=0))
    if not keep.size:
        return None
    shared = both[:, keep]
    shared_first, shared_second = (
        Curve(
            tuple(lines[place] for place in keep),
            part.correct[:rows, keep] * shared,
            shared,
            np.where(shared > 0, part.true_lengths[:rows, keep], np.nan),
            None if part.guessed is None else part.guessed[keep],
            None if part.draws is None else part.draws[:rows, keep] * shared,
            part.own_rows,
        )
        for part in parts
    )
    return shared_first, shared_second


def compare_pairs(pair: Pair, *, resamples: int = RESAMPLES) -> PairedLines:
    """Compares the two curves of `pair` on each line and by area.

    The interval at a length depends only on the answers at that length. It uses four times as many
    draws, since one length costs little.
    """
    first, second = pair
    if first.draws is not None or second.draws is not None:
        places = range(len(first.lines))
        drawn = tuple(_drawn_length(pair, place, 4 * resamples) for place in places)
        return PairedLines(pair, drawn, resamples)
    both = (first.correct * second.correct).sum(axis=0)
    only_first = (first.correct > second.correct).sum(axis=0)
    only_second = (second.correct > first.correct).sum(axis=0)
    neither = first.n - both - only_first - only_second
    table = np.stack([both, only_first, only_second, neither], axis=1).astype(int).tolist()
    lengths = []
    for line, counts in zip(first.lines, table, strict=True):
        of_line = _accuracies(tuple(counts), 4 * resamples)
        ends, discordant = of_line.difference_ci, counts[1:3]
        shares = of_line.first, of_line.second
        lengths.append(
            LineDifference(line, sum(counts), *shares, ends, mcnemar(*discordant), *discordant)
        )
    return PairedLines(pair, tuple(lengths), resamples)


def _drawn_length(pair: Pair, place: int, resamples: int) -> LineDifference:
    """The comparison at one line, where a row has the mean of several draws."""
    first, second = (curve.at([place]) for curve in pair)
    scored = first.scored[:, 0] > 0
    means, others = first.correct[scored, 0], second.correct[scored, 0]
    accuracies = mean_area([(first, second)], resamples=resamples)
    return LineDifference(
        first.lines[0],
        int(scored.sum()),
        accuracies.first,
        accuracies.second,
        accuracies.difference_ci,
        sign_flips(means - others),
        int((means > others).sum()),
        int((others > means).sum()),
    )


def sign_flips(differences: Floats) -> float:
    """Two-sided p-value of Fisher's randomisation test (1935): how often the sum of the rows'
    differences is as far from 0 if the sign of each is random. For verdicts without draws this is
    McNemar's exact test. Here the signs are drawn 9,999 times.
    """
    unequal = differences[abs(differences) > NEARLY]
    if not len(unequal):
        return 1.0
    signs = np.random.default_rng(0).integers(0, 2, (_FLIPS, len(unequal))) * 2 - 1
    as_far = int((abs(signs @ unequal) >= abs(unequal.sum()) - NEARLY).sum())
    return (1 + as_far) / (1 + _FLIPS)


@lru_cache(maxsize=1 << 14)
def _accuracies(counts: tuple[int, int, int, int], resamples: int) -> PairedArea:
    """The accuracies of one line, which are its areas, with the intervals of their difference.

    `counts` has the number of samples that both have right, only the first, only the second, and
    neither. Results are cached, since the lines of many pairs have the same counts.
    """
    answers = np.repeat(np.array([[1, 1], [1, 0], [0, 1], [0, 0]], float), counts, axis=0)
    scored = np.ones((len(answers), 1))
    first, second = (
        Curve((Line.exact(1),), answers[:, [side]], scored, scored) for side in range(2)
    )
    areas, (wide, narrow) = _areas([(first, second)], resamples)
    return PairedArea(*areas, wide, narrow, mcnemar(counts[1], counts[2]))


def mean_area(pairs: Sequence[Pair], *, resamples: int = RESAMPLES) -> PairedArea:
    """The mean areas of several pairs, the interval of their difference, and its test.

    The intervals are those of the draws. Where the 95 % interval and the test disagree about 0, its
    end on that side is 0, or that of the test; the 90 % interval has 0 where p is 0.10 or more.
    """
    (first, second), (wide, narrow) = _areas(pairs, resamples)
    p, least = label_test(pairs, resamples=resamples)
    difference, (low, high) = first - second, wide
    if p >= SIGNIFICANT:
        low, high = min(low, 0.0), max(high, 0.0)
    elif low <= 0 <= high:
        low, high = (difference - least, high) if difference > 0 else (low, difference + least)
    if p >= 2 * _EQUIVALENCE_TAIL:
        narrow = min(narrow[0], 0.0), max(narrow[1], 0.0)
    return PairedArea(first, second, (low, high), narrow, p)


def label_test(pairs: Sequence[Pair], *, resamples: int = RESAMPLES) -> tuple[float, float]:
    """The p-value of no difference between the two sides, and the least difference of the mean
    areas, in size, that is significant.

    A permutation test (Fisher 1935, The Design of Experiments, section 21): if the sides do not
    differ, their labels can be exchanged within a row, at all lengths and in all pairs together.
    The p-value is the share of such exchanges, drawn at random, whose difference is as large. It
    makes no assumption about the shapes of the curves, nor about how a row's answers go together.
    """
    rows = np.zeros(max(len(first.correct) for first, _ in pairs))
    for first, second in pairs:
        of_line = areas_under(first.lengths, np.eye(len(first.lines))) / first.n
        rows[: len(first.correct)] += (first.correct - second.correct) @ of_line / len(pairs)
    observed = abs(float(rows.sum()))
    values, counts = np.unique(np.round(abs(rows), _DIGITS), return_counts=True)
    rng, sums = np.random.default_rng(0), np.empty(resamples)
    chunk = max(1, _MOST_FLIPS // len(counts))
    for start in range(0, resamples, chunk):
        part = slice(start, min(start + chunk, resamples))
        kept = rng.binomial(counts, 0.5, (part.stop - part.start, len(counts)))
        sums[part] = abs((2 * kept - counts) @ values)
    larger = int((sums >= observed - 10.0**-_DIGITS * len(rows)).sum())
    outside = max(math.ceil(SIGNIFICANT * (1 + resamples)) - 1, 1)
    return (1 + larger) / (1 + resamples), float(np.sort(sums)[-min(outside, resamples)])


def _areas(
    pairs: Sequence[Pair], resamples: int
) -> tuple[tuple[float, float], tuple[tuple[float, float], tuple[float, float]]]:
    """The mean areas of several pairs, and the 95 % and the 90 % interval of their difference.

    In each draw a row has the same weight in all pairs, so the correlation of conditions that share
    rows is kept. Half of the draws are made with first and second exchanged and their sign
    reversed. Exchanging the two therefore changes only the sign of the result, and identical
    answers give an interval that is symmetric about 0.
    """
    first, second = (
        float(np.mean([areas_under(curve.lengths, curve.accuracies[None])[0] for curve in side]))
        for side in zip(*pairs, strict=True)
    )
    half = (resamples + 1) // 2
    exchanged = [(right, left) for left, right in pairs]
    draws = [_area_differences(pairs, half), -_area_differences(exchanged, half)]
    both = np.concatenate(draws)
    wide, narrow = (
        _even_ends(both, first - second, tail) for tail in (TAILS[0], _EQUIVALENCE_TAIL)
    )
    return (first, second), (wide, narrow)


def _area_differences(pairs: Sequence[Pair], resamples: int) -> Floats:
    """Draws of the difference of the mean areas, first minus second: shape (resamples,)."""
    curves = [curve for pair in pairs for curve in pair]
    draws = drawn_accuracies(curves, resamples)
    areas = [
        areas_under(curve.lengths, accuracies)
        for curve, accuracies in zip(curves, draws, strict=True)
    ]
    differences: Floats = np.mean(areas[::2], axis=0) - np.mean(areas[1::2], axis=0)
    return differences


def _even_ends(draws: Floats, observed: float, tail: float) -> tuple[float, float]:
    """The draws without the share `tail` on both sides, extended to contain `observed`."""
    ordered = np.sort(draws)
    outside = math.ceil(tail * len(ordered)) - 1
    return min(float(ordered[outside]), observed), max(float(ordered[-1 - outside]), observed)


@lru_cache(maxsize=1 << 14)
def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p-value of McNemar's exact test (1947): the binomial test of the discordant pairs.

    1 where no pair is discordant. Binomial coefficients of a million pairs are too large for a
    float, so all are divided by the middle one; each quotient is computed from the one before.
    """
    discordant, fewer = only_first + only_second, min(only_first, only_second)
    middle = discordant // 2
    if fewer == middle:
        return 1.0
    chosen = np.arange(middle, 0, -1)
    coefficients = np.cumprod(chosen / (discordant - chosen + 1))  # of middle - 1, …, 1, 0
    tail, below_middle = coefficients[middle - 1 - fewer :].sum(), coefficients.sum()
    total = 2 * below_middle + (2 if discordant % 2 else 1)
    return float(2 * tail / total)


def holm(p_values: Sequence[float], tests: int | None = None) -> list[float]:
    """The p-values adjusted for multiple tests (Holm 1979), in the given order. `tests` is the size
    of the family, if these are only some of it.
    """
    count, highest = len(p_values) if tests is None else tests, 0.0
    adjusted = [0.0] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (count - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def compare_unpaired(first: Curve, second: Curve) -> PairedLines:
    """Compares two curves on each line that both have; they may have none in common. A row with
    several draws counts as one answer: their mean.
    """
    lengths = []
    for line in sorted(set(first.lines) & set(second.lines)):
        counts: list[float] = []
        for curve in (first, second):
            place = curve.lines.index(line)
            counts += [float(curve.correct[:, place].sum()), int(curve.n[place])]
        right, n, other_right, other_n = counts
        lengths.append(
            LineDifference(
                line,
                int(n),
                right / n,
                other_right / other_n,
                difference_interval(right, n, other_right, other_n),
                fisher(round(right), int(n), round(other_right), int(other_n)),
                n_second=int(other_n),
            )
        )
    return PairedLines((first, second), tuple(lengths), is_paired=False)


def difference_interval(
    right: float, n: float, other_right: float, other_n: float
) -> tuple[float, float]:
    """95 % interval of the difference of two proportions, first minus second.

    Newcombe's hybrid of two score intervals (Statistics in Medicine 17, 1998, method 10).
    """
    first, second = right / n, other_right / other_n
    (low, high), (other_low, other_high) = (
        wilson(successes, trials) or (0.0, 1.0)
        for successes, trials in ((right, n), (other_right, other_n))
    )
    difference = first - second
    return (
        difference - math.hypot(first - low, other_high - second),
        difference + math.hypot(high - first, second - other_low),
    )


@lru_cache(maxsize=1 << 14)
def fisher(right: int, n: int, other_right: int, other_n: int) -> float:
    """Two-sided p-value of Fisher's exact test of equal proportions: the probability, given the
    sums, of all tables that are not more probable than the observed one.
    """
    total = right + other_right
    low, high = max(0, total - other_n), min(n, total)
    ways = [
        math.comb(n, count) * math.comb(other_n, total - count) for count in range(low, high + 1)
    ]
    observed = ways[right - low]
    return sum(way for way in ways if way <= observed) / sum(ways)
