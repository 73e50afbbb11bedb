"""Intervals: of a proportion, and of lengths that may lie outside the tested range.

All intervals cover 95 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

Z95 = 1.959963984540054
"""Standard normal quantile at 0.975."""


_WHOLE_FROM = 100
"""Lengths from here on are written without decimals."""


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


@dataclass(frozen=True, slots=True)
class Bound:
    """A length that was found within the tested range, or that lies outside it."""

    sign: Literal["<", "=", ">"]
    length: float
    """The length itself, or the end of the tested range that it lies below or above."""

    def __str__(self) -> str:
        """`20`, `< 5` or `> 500`."""
        whole = self.length == int(self.length) or self.length >= _WHOLE_FROM
        said = f"{self.length:.0f}" if whole else f"{self.length:.3g}"
        return said if self.sign == "=" else f"{self.sign} {said}"

    @property
    def at_least(self) -> float | None:
        """What it is not below, if anything tested."""
        return None if self.sign == "<" else self.length

    @property
    def at_most(self) -> float | None:
        """What it is not above, if anything tested."""
        return None if self.sign == ">" else self.length


Span: TypeAlias = tuple[Bound, Bound]
"""Both ends of an interval of lengths."""


def span_text(span: Span) -> str:
    """`20`, `10 to 20`, `< 5 to 20`, `200 to > 500`."""
    low, high = map(str, span)
    return low if low == high else f"{low} to {high}"
