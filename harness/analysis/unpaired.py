"""Comparison of two curves on different rows: differences, 95 % intervals, tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from eyechart.harness.analysis.curve import Curve
from eyechart.harness.analysis.interval import wilson
from eyechart.harness.analysis.paired import Pair
from eyechart.harness.spec import Line


@dataclass(frozen=True, slots=True)
class UnpairedLength:
    """Two models on different rows of one line."""

    line: Line
    n: int
    """Scored samples of the first."""
    n_second: int
    """Scored samples of the second."""
    first: float
    """Accuracy of the first."""
    second: float
    """Accuracy of the second."""
    difference_ci: tuple[float, float]
    p: float
    """Two-sided p-value of Fisher's exact test, uncorrected."""
    only_first: None = None
    """Always `None`: without pairs nobody is right alone."""
    only_second: None = None

    @property
    def length(self) -> int:
        return self.line.length

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def swapped(self) -> UnpairedLength:
        """The same with first and second exchanged."""
        low, high = self.difference_ci
        return replace(
            self,
            n=self.n_second,
            n_second=self.n,
            first=self.second,
            second=self.first,
            difference_ci=(-high, -low),
        )


@dataclass(frozen=True, eq=False)
class Unpaired:
    """First against second on different rows."""

    pair: Pair
    lengths: tuple[UnpairedLength, ...]
    """The lines that both have."""

    @property
    def swapped(self) -> Unpaired:
        """The same with first and second exchanged."""
        first, second = self.pair
        return Unpaired((second, first), tuple(line.swapped for line in self.lengths))


def compare_unpaired(first: Curve, second: Curve) -> Unpaired:
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
            UnpairedLength(
                line,
                int(n),
                int(other_n),
                right / n,
                other_right / other_n,
                difference_interval(right, n, other_right, other_n),
                fisher(round(right), int(n), round(other_right), int(other_n)),
            )
        )
    return Unpaired((first, second), tuple(lengths))


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
