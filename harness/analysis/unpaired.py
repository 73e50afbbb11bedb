"""Comparison of two curves on different rows: differences, 95 % intervals, tests."""

from __future__ import annotations

import math
from functools import lru_cache

from eyechart.harness.analysis.curve import Curve
from eyechart.harness.analysis.interval import wilson
from eyechart.harness.analysis.paired import Compared, LineDifference


def compare_unpaired(first: Curve, second: Curve) -> Compared:
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
    return Compared((first, second), tuple(lengths), is_paired=False)


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
