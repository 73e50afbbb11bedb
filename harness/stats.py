"""Intervals and tests."""

from __future__ import annotations

import math

Z95 = 1.959963984540054
"""Standard normal quantile at 0.975."""


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
