"""Two conditions or two models on the same samples: differences, their intervals, and tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from harness.analysis.curve import RESAMPLES, TAILS, Curve, Floats, areas_under, drawn_accuracies

_LEVEL, _POWER = 0.05, 0.8


@dataclass(frozen=True, slots=True)
class PairedLength:
    """Two models, or two conditions, on the same samples of one length."""

    length: int
    n: int
    """Pairs in which both were scored."""
    first: float
    """Accuracy of the first on the pairs."""
    second: float
    only_first: int
    """Pairs in which the first alone is right."""
    only_second: int
    difference_ci: tuple[float, float]
    p: float
    """Exact McNemar, two-sided, of this length alone."""

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second


@dataclass(frozen=True, slots=True)
class PairedArea:
    """Areas under the curves of first and second on the same samples."""

    first: float
    second: float
    difference_ci: tuple[float, float]

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def swapped(self) -> PairedArea:
        """Second against first."""
        low, high = self.difference_ci
        return PairedArea(self.second, self.first, (-high, -low))


@dataclass(frozen=True, slots=True)
class Paired:
    """First against second on the same samples."""

    lengths: tuple[PairedLength, ...]
    area: PairedArea


Pair: TypeAlias = tuple[Curve, Curve]
"""Two curves with the same lengths, row i of both about the same row of symbols."""


def paired(first: Curve, second: Curve) -> Pair | None:
    """What both have of the samples that were scored in both; `None` where there is no pair.

    Lengths that only one has, and lengths without a pair, are left out.
    """
    lengths = np.intersect1d(first.lengths, second.lengths)
    rows = min(len(first.correct), len(second.correct))
    columns = [np.searchsorted(one.lengths, lengths) for one in (first, second)]
    scored, right = (
        [getattr(one, name)[:rows, at] for one, at in zip((first, second), columns, strict=True)]
        for name in ("scored", "correct")
    )
    both = scored[0] * scored[1]
    keep = both.sum(axis=0) > 0
    if not keep.any():
        return None
    one, other = (Curve(lengths[keep], of[:, keep] * both[:, keep], both[:, keep]) for of in right)
    return one, other


def compare_pairs(pair: Pair, *, resamples: int = RESAMPLES, seed: int = 0) -> Paired:
    """First against second, length by length and by area.

    The interval of a length follows from its own answers, whatever those of other lengths are; it
    has four times the draws, which cost little at one length.
    """
    rows = []
    for place, (length, n) in enumerate(zip(pair[0].lengths, pair[0].n, strict=True)):
        first, second = alone = _at_length(pair[0], place), _at_length(pair[1], place)
        accuracies = mean_area([alone], resamples=4 * resamples, seed=seed)  # of one length
        only_first = int((first.correct > second.correct).sum())
        only_second = int((second.correct > first.correct).sum())
        rows.append(
            PairedLength(
                int(length),
                int(n),
                accuracies.first,
                accuracies.second,
                only_first,
                only_second,
                accuracies.difference_ci,
                mcnemar(only_first, only_second),
            )
        )
    return Paired(tuple(rows), mean_area([pair], resamples=resamples, seed=seed))


def _at_length(samples: Curve, place: int) -> Curve:
    """What a curve has at one of its lengths."""
    at = slice(place, place + 1)
    return Curve(samples.lengths[at], samples.correct[:, at], samples.scored[:, at])


def mean_area(pairs: Sequence[Pair], *, resamples: int = RESAMPLES, seed: int = 0) -> PairedArea:
    """The mean areas of several pairs, and the interval of their difference.

    A row weighs the same in all pairs of a draw, so conditions that share rows stay together. Half
    of the draws are those of second against first, turned round: so who is called first changes
    nothing but the sign, and two models that answer alike have an interval about 0 with equal arms.
    """
    first, second = (
        float(np.mean([areas_under(one.lengths, one.accuracies[None])[0] for one in side]))
        for side in zip(*pairs, strict=True)
    )
    half = (resamples + 1) // 2
    turned = [(other, one) for one, other in pairs]
    draws = [_area_differences(pairs, half, seed), -_area_differences(turned, half, seed)]
    return PairedArea(first, second, _even_ends(np.concatenate(draws), first - second))


def _area_differences(pairs: Sequence[Pair], resamples: int, seed: int) -> Floats:
    """Draws of the mean areas' difference, first minus second."""
    curves = [one for pair in pairs for one in pair]
    draws = drawn_accuracies(curves, resamples, seed)
    areas = [areas_under(one.lengths, of) for one, of in zip(curves, draws, strict=True)]
    differences: Floats = np.mean(areas[::2], axis=0) - np.mean(areas[1::2], axis=0)
    return differences


def _even_ends(draws: Floats, observed: float) -> tuple[float, float]:
    """As `_ends`, with as many draws below as above."""
    ordered = np.sort(draws)
    outside = math.ceil(TAILS[0] * len(ordered)) - 1
    return (
        min(float(ordered[outside]), observed),
        max(float(ordered[-1 - outside]), observed),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p-value of McNemar's exact test (1947): the binomial test of the discordant pairs.

    1 where no pair is discordant. Binomial coefficients of a million pairs are too large for a
    float, so each is divided by the middle one; the quotients follow from one another.
    """
    discordant, fewer = only_first + only_second, min(only_first, only_second)
    middle = discordant // 2
    if fewer == middle:
        return 1.0
    chosen = np.arange(middle, 0, -1)
    coefficients = np.cumprod(chosen / (discordant - chosen + 1))  # of middle - 1, …, 1, 0
    beyond, below = coefficients[middle - 1 - fewer :].sum(), coefficients.sum()
    all_of_them = 2 * below + (2 if discordant % 2 else 1)
    return float(2 * beyond / all_of_them)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number (Holm 1979): adjusted ones, in the given order."""
    count, highest = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, place in enumerate(sorted(range(count), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, (count - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def smallest_difference(pairs: int, tests: int = 1) -> float | None:
    """The difference of two accuracies that so many pairs show four times out of five.

    By McNemar's exact test at 5 %, divided by the number of tests as Holm's first step does, where
    one of the two is right on all that the other is and more; differences that go both ways take
    more. `None` where no outcome of so few pairs could show any.
    """
    needed = math.ceil(math.log2(2 * tests / _LEVEL))
    if needed > pairs:
        return None
    shares = np.linspace(0, 1, 1001)
    return float(shares[_at_least(needed, pairs, shares) >= _POWER][0])


def _at_least(least: int, n: int, shares: Floats) -> Floats:
    """Probability of `least` or more successes in n trials, for each probability of one.

    The terms below `least` are added up, so that `least` should be small.
    """
    below = np.zeros_like(shares)
    for successes in range(least):
        below += math.comb(n, successes) * shares**successes * (1 - shares) ** (n - successes)
    return 1 - below
