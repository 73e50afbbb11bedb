"""Whether a measure changes with length: the one verdict, which all that show a probe take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from eyechart.harness.analysis import student

LEVEL = 0.05
"""How often a row of lengths without any change is said to change, at most."""
_LEAST_ROWS = 2


@dataclass(frozen=True)
class MeasureAtLength:
    """The values of a measure at one length."""

    length: int
    rows: Mapping[int, float]
    """Index of a row -> its value."""
    rounding: float | None = None
    """How far rounding alone moves a value, on average; `None` where that was not measured."""

    @cached_property
    def mean(self) -> float:
        return math.fsum(self.rows.values()) / len(self.rows)

    @cached_property
    def between_rows(self) -> float | None:
        """The mean difference of two rows; `None` of one row."""
        values, count = sorted(self.rows.values()), len(self.rows)
        if count < _LEAST_ROWS:
            return None
        sums = ((2 * place - count + 1) * value for place, value in enumerate(values))
        return math.fsum(sums) / math.comb(count, 2)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean over rows, by Student's t; its lower end is at least 0 if
        all values are. `None` where there is one row.
        """
        found = _t_interval(list(self.rows.values()), LEVEL)
        if found is None or min(self.rows.values()) < 0:
            return found
        return max(0.0, found[0]), found[1]


@dataclass(frozen=True, slots=True)
class Leg:
    """A rise or a fall between two lengths."""

    start: MeasureAtLength
    end: MeasureAtLength
    change: float
    """The end's value less that of the start, or its multiple, where values are compared by it."""
    low: float
    high: float
    """Of the interval of the change, with which all pairs of lengths hold together."""
    is_ratio: bool

    @property
    def words(self) -> str:
        """`falls 30-fold (21 to 43) from 5 to 500`."""
        if self.is_ratio:
            factor, ends = self.change, (self.low, self.high)
            if factor < 1:
                factor, ends = 1 / factor, (1 / self.high, 1 / self.low)
            low, high = (f"{end:.2g}" if end < 100 else f"{end:,.0f}" for end in ends)  # noqa: PLR2004  three digits
            how = f"{factor:.2g}-fold ({low} to {high})"
        else:
            how = f"by {abs(self.change):.2g}"
        verb = "falls" if self.end.mean < self.start.mean else "rises"
        said = f"{verb} {how} from {self.start.length:,} to {self.end.length:,}"
        if self.is_ratio and self.end.rounding is not None and self.end.mean <= self.end.rounding:
            said += ", where rounding alone is as large"
        return said


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """What is said of a measure over its lengths."""

    legs: tuple[Leg, ...]
    """Rises and falls beyond both noise floors and the interval, in order; empty where none is."""
    words: str
    rows: int
    """The least number of rows of a length."""

    @property
    def largest(self) -> Leg | None:
        """The leg with the largest change."""
        return max(self.legs, key=lambda leg: abs(leg.end.mean - leg.start.mean), default=None)


def change_with_length(lengths: Sequence[MeasureAtLength], *, is_ratio: bool) -> MeasureChange:
    """Whether a measure changes with length, from its values at some lengths, ascending.

    Two lengths differ where the difference of their means is larger than what rounding alone does
    at either, larger than the mean difference of two rows at either, and where its interval over
    rows, which pairs rows of the same index, leaves out 0; the interval's level is Bonferroni's for
    all pairs of lengths. `is_ratio`: values are above 0 and compared by their logarithms.
    """
    known = [one for one in lengths if one.rows]
    rows = min((len(one.rows) for one in known), default=0)
    if len(known) < 2:  # noqa: PLR2004  a change needs two
        return MeasureChange((), "one length: no change can be seen", rows)
    if rows < _LEAST_ROWS:
        return MeasureChange((), "one row: no verdict", rows)
    is_ratio = is_ratio and all(value > 0 for one in known for value in one.rows.values())
    compared = {
        pair: _compared(known[pair[0]], known[pair[1]], len(known), is_ratio=is_ratio)
        for pair in combinations(range(len(known)), 2)
    }
    ends = _turns(
        [one.mean for one in known], {pair: one.is_beyond for pair, one in compared.items()}
    )
    legs = tuple(
        Leg(known[start], known[end], *compared[start, end].numbers(is_ratio=is_ratio), is_ratio)
        for start, end in ends
    )
    if legs:
        return MeasureChange(legs, "; ".join(leg.words for leg in legs), rows)
    hidden = any(one.is_sure and not one.is_beyond_rounding for one in compared.values())
    floor = "rounding" if hidden else "the spread of rows"
    return MeasureChange((), f"no change beyond {floor}", rows)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Two lengths compared; the first one is shorter."""

    difference: float
    low: float
    high: float
    is_beyond_rows: bool
    is_beyond_rounding: bool

    @property
    def is_sure(self) -> bool:
        return self.is_beyond_rows and not self.low <= 0 <= self.high

    @property
    def is_beyond(self) -> bool:
        return self.is_sure and self.is_beyond_rounding

    def numbers(self, *, is_ratio: bool) -> tuple[float, float, float]:
        """The change and its interval."""
        if is_ratio:
            return math.exp(self.difference), math.exp(self.low), math.exp(self.high)
        return self.difference, self.low, self.high


def _compared(
    one: MeasureAtLength, other: MeasureAtLength, lengths: int, *, is_ratio: bool
) -> _Compared:
    value = math.log if is_ratio else float
    differences = [
        value(other.rows[row]) - value(one.rows[row]) for row in one.rows if row in other.rows
    ]
    level = LEVEL / math.comb(lengths, 2)
    mean = math.fsum(differences) / max(1, len(differences))
    low, high = _t_interval(differences, level) or (-math.inf, math.inf)
    apart = abs(other.mean - one.mean)
    return _Compared(
        mean,
        low,
        high,
        all(apart > (at.between_rows or 0) for at in (one, other)),
        all(apart > (at.rounding or 0) for at in (one, other)),
    )


def _turns(
    means: Sequence[float], differs: Mapping[tuple[int, int], bool]
) -> list[tuple[int, int]]:
    """Start and end of each rise and fall: from one extreme to the next that differs from it."""
    legs: list[tuple[int, int]] = []
    start, end, sign = 0, 0, 0
    for place in range(1, len(means)):
        if not sign:
            before = [one for one in range(place) if differs[one, place]]
            if before:
                start = max(before, key=lambda one: abs(means[place] - means[one]))
                end, sign = place, 1 if means[place] > means[start] else -1
        elif (means[place] - means[end]) * sign > 0:
            end = place
        elif differs[end, place]:
            legs.append((start, end))
            start, end, sign = end, place, -sign
    return [*legs, (start, end)] if sign else legs


def _t_interval(values: Sequence[float], level: float) -> tuple[float, float] | None:
    """Student's interval of the mean that misses it with the probability `level`; `None` of one."""
    count = len(values)
    if count < _LEAST_ROWS:
        return None
    mean = math.fsum(values) / count
    spread = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = student(count - 1, level) * math.sqrt(spread / count)
    return mean - half, mean + half
