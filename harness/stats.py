"""Intervals and tests."""

from __future__ import annotations

import math

Z95 = 1.959963984540054
"""Standard normal quantile at 0.975."""
Z80 = 0.8416212335729143
"""Standard normal quantile at 0.8."""


def wilson(successes: int, n: int) -> tuple[float, float] | None:
    """95 % score interval of a proportion (Wilson 1927); `None` for n = 0, where there is none.

    Unlike the textbook interval it stays inside 0…1 and keeps its width at 0 and n successes.
    """
    if n == 0:
        return None
    share, z2 = successes / n, Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def smallest_difference(n: int) -> float:
    """The difference of two accuracies that n samples each show four times out of five.

    For two independent proportions near a half, where it takes most samples, at 5 % significance
    and 80 % power (Fleiss, Levin & Paik 2003, Statistical Methods for Rates and Proportions, 4.2).
    At most 1. Paired samples show smaller ones.
    """
    return min(1.0, (Z95 + Z80) * math.sqrt(0.5 / n))
