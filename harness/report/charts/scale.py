"""An axis of lengths on a page, and the lengths on it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from eyechart.harness.analysis.length.interval import Bound, Span

_ROOM, _LEAST_ROOM = 0.04, 1.1
"""Room at both ends of a scale, as a power of its range; and the least factor."""
_LEAST_RANGE = 10
"""The least range of a scale, so that it has ticks."""
_MANY_DECADES = 10_000
"""A scale over this many times its least length has ticks at 1, 10, 100 alone."""


@dataclass(frozen=True)
class Scale:
    """An axis of lengths on a logarithmic scale, from its left end to its right one."""

    low: float
    high: float

    @staticmethod
    def over(lengths: Iterable[float]) -> Scale:
        """A scale on which all of `lengths` lie, with a little room on both sides."""
        known = [length for length in lengths if length > 0] or [1.0]
        low, high = min(known), max(known)
        room = max((high / low) ** _ROOM, _LEAST_ROOM, math.sqrt(_LEAST_RANGE * low / high))
        return Scale(low / room, high * room)

    def percent(self, length: float) -> float:
        """The place of a length, from 0 at the left end to 100 at the right one."""
        share = math.log(max(length, self.low) / self.low) / math.log(self.high / self.low)
        return round(100 * min(share, 1.0), 1)

    @property
    def ticks(self) -> list[tuple[int, float]]:
        """Lengths with their places: 10, 20, 50, 100 …, fewer over many decades."""
        digits = (1, 2, 5) if self.high / self.low < _MANY_DECADES else (1,)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        ticks = [digit * 10**power for power in powers if power >= 0 for digit in digits]
        return [(tick, self.percent(tick)) for tick in ticks if self.low <= tick <= self.high]

    def strip(self, length: Bound | None, interval: Span) -> Strip:
        """An effective length and its interval on the scale."""
        low, high = interval
        return Strip(
            0.0 if low.sign == "<" else self.percent(low.length),
            None if length is None else self.percent(length.length),
            100.0 if high.sign == ">" else self.percent(high.length),
            "" if length is None else length.side,
            low.sign == "<",
            high.sign == ">",
        )


@dataclass(frozen=True)
class Strip:
    """An effective length with its interval on a scale, in percent from the left."""

    low: float
    at: float | None
    """The length; `None` where it is not known."""
    high: float
    sign: str
    """`<` or `>` where the length is a bound: it is drawn as an open mark."""
    open_low: bool
    """Whether no lower end is known."""
    open_high: bool
