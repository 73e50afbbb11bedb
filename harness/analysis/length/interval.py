"""95 % intervals: of a proportion, and of lengths that may lie outside the tested range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Literal, TypeAlias

from eyechart.harness.spec.unit import counted

Z95 = 1.959963984540054
"""Standard normal quantile at 0.975."""


_MANY = 1000
"""Degrees of freedom from which on `student` is computed by an expansion."""
_WHOLE_FROM = 100
"""Lengths from here on are written without decimals."""


def wilson(successes: float, n: float) -> tuple[float, float] | None:
    """95 % score interval of a proportion (Wilson 1927); `None` for n = 0.

    Unlike the Wald interval it stays within 0 to 1 and has a width above 0 at 0 and n successes.
    """
    if n == 0:
        return None
    share, z2 = successes / n, Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


@lru_cache(maxsize=4096)
def at_most(successes: int, n: int, share: float) -> float:
    """Probability of `successes` or fewer in `n` independent trials with probability `share`."""
    if successes >= n or share <= 0:
        return 1.0
    if share >= 1:
        return 0.0
    log_terms = [
        math.lgamma(n + 1)
        - math.lgamma(count + 1)
        - math.lgamma(n - count + 1)
        + count * math.log(share)
        + (n - count) * math.log1p(-share)
        for count in range(successes + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, log_terms)))


@cache
def student(free: int, level: float = 0.05) -> float:
    """The t that a variable with `free` degrees of freedom exceeds in size with this probability,
    to nine digits; from the sums of Abramowitz & Stegun, 26.7.3 and 26.7.4, and from 1,000 degrees
    on from the expansion 26.7.5, whose next term is too small to count.
    """
    if free >= _MANY:
        z = NormalDist().inv_cdf(1 - level / 2)
        return z + (z**3 + z) / 4 / free + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / free**2
    low, high = 0.0, 1.0
    while _beyond(high, free) > level:
        low, high = high, high * 2
    while high - low > high * 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, free) > level else (low, middle)
    return high


def _beyond(t: float, free: int) -> float:
    """The probability of |T| > t."""
    angle = math.atan2(t, math.sqrt(free))
    sine, cosine = math.sin(angle), math.cos(angle)
    if free == 1:
        return 1 - 2 * angle / math.pi
    term = cosine if free % 2 else 1.0
    total = term
    for step in range(3 if free % 2 else 2, free - 1, 2):
        term *= (step - 1) / step * cosine**2
        total += term
    if free % 2:
        return 1 - 2 / math.pi * (angle + sine * total)
    return 1 - sine * total


Sign: TypeAlias = Literal["<", "=", ">"]


@dataclass(frozen=True, slots=True)
class Bound:
    """An estimated length within the tested range (`=`), or beyond one end of it (`<`, `>`)."""

    sign: Sign
    length: float
    """The estimate, or the end of the tested range beyond which it lies; in the task's unit."""

    def __str__(self) -> str:
        """`20`, `< 5` or `> 500`."""
        whole = self.length == int(self.length) or self.length >= _WHOLE_FROM
        number = f"{self.length:.0f}" if whole else f"{self.length:.3g}"
        return number if self.sign == "=" else f"{self.sign} {number}"

    @property
    def words(self) -> str:
        """`20`, `less than 5` or `more than 500`."""
        return {"<": "less than ", "=": "", ">": "more than "}[self.sign] + str(
            Bound("=", self.length)
        )

    def counted(self, unit: str) -> str:
        """`20 symbols`, `less than 5 symbols`, `more than 1 symbol`, for the unit `symbols`."""
        return counted(self.words, unit, is_one=self.length == 1)

    @property
    def side(self) -> str:
        """The sign in files and on strips: `<`, `>`, or empty within the tested range."""
        return "" if self.sign == "=" else self.sign

    @property
    def order(self) -> tuple[float, int]:
        """Key to sort by: `< 5` before `5`, and that before `> 5`."""
        return self.length, "<=>".index(self.sign)

    @property
    def at_least(self) -> float | None:
        """The tested length that is a lower bound; `None` if there is none."""
        return None if self.sign == "<" else self.length

    @property
    def at_most(self) -> float | None:
        """The tested length that is an upper bound; `None` if there is none."""
        return None if self.sign == ">" else self.length


Span: TypeAlias = tuple[Bound, Bound]
"""Lower and upper end of an interval of lengths."""


def span_text(span: Span) -> str:
    """`20`, `10 to 20`, `< 5 to 20`, `200 to > 500`."""
    low, high = map(str, span)
    return low if low == high else f"{low} to {high}"


def reach_text(length: Bound, span: Span, longest: str = "the longest tested") -> str:
    """`to 323 (154 to 521)`, `beyond 1157, the longest tested (95 % interval from 741)`, and
    `to at least 50` where something else than sight limits it. Two rows that are told apart are
    tested at the mean of their lengths, which is below the longest row.
    """
    if length.sign != ">":
        return f"to {length.words} ({span_text(span)})"
    low, high = span
    if length.length < high.length:
        return f"to at least {Bound('=', length.length)}"
    begins = "" if low.sign == ">" else f" (95 % interval from {low})"
    return f"beyond {Bound('=', length.length)}, {longest}{begins}"
