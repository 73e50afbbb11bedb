"""The standing of the models of a task on the page: a line for each, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eyechart.harness.analysis.at_length import AtLength, at_length, probability_text, suited
from eyechart.harness.analysis.cost_at import cost_of_reply_at, many_text
from eyechart.harness.analysis.curve import threshold_text
from eyechart.harness.analysis.interval import Bound, Span, span_text
from eyechart.harness.analysis.standing import Place, Standing
from eyechart.harness.report.section import Section
from eyechart.harness.spec.columns import ASKED, RECORDED

TESTED_HEADS = ("ahead of", "open", "behind")
"""The heads of the numbers of `tested_counts`."""
FURTHEST = "P(furthest)"
"""The head of the probability that a model sees furthest of its table."""
_ROOM, _LEAST_ROOM = 0.04, 1.1
"""Room at both ends of a scale, as a power of its range; and the least factor."""
_LEAST_RANGE = 10
"""The least range of a scale, so that it has ticks."""
_MANY_DECADES = 10_000
"""A scale over this many times its least length has ticks at 1, 10, 100 alone."""


def tested_counts(by_test: tuple[int, int, int] | None) -> tuple[int, int, int] | None:
    """How many other models a model is shown to see further than, cannot be told from, and is shown
    to see less far than; from `Place.by_test`.
    """
    if by_test is None:
        return None
    further, less, others = by_test
    return further, others - further - less, less


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


@dataclass(frozen=True)
class StandingLine:
    """One model, or one task of a page about a single model."""

    ranks: str
    by_test: tuple[int, int, int] | None
    """See `Place.by_test`."""
    p_furthest: float | None
    """See `Place.p_furthest`."""
    name: str
    kind: str
    """One of `KINDS`."""
    adaptive: bool
    length: str
    """`43`, `> 160`; a dash without a scored sample."""
    interval: str
    note: str
    """The note beside the length; mostly empty."""
    strip: Strip | None
    right_at: tuple[AtLength | None, ...]
    """The accuracy at each length in `at`; `None` without a scored sample."""
    median: str = "–"
    """The median over all conditions except controls; a dash if there is one."""
    conditions: int = 0
    """Number of conditions in the median."""
    left_out: int = 0
    """Number of conditions that are not in it."""
    vendor: str = ""
    parameters: str = ""
    """Billions of parameters; empty where unknown."""
    cost_a_reply: float | None = None
    """Dollars; `None` where unknown."""
    costs_at: Mapping[int, float | None] = field(default_factory=dict)
    """The same at each length in `at`, see `cost_of_reply_at`."""
    source: str = ""
    collected: str = ""

    def called(self, name: str) -> StandingLine:
        """The same line under another name."""
        return replace(self, name=name)

    @property
    def tested(self) -> tuple[int, int, int] | None:
        """See `tested_counts`."""
        return tested_counts(self.by_test)

    @property
    def cost(self) -> str:
        """Dollars of `MANY_REPLIES` replies, with two digits: `$13`; empty where unknown."""
        return many_text(self.cost_a_reply)

    def cost_at(self, length: int) -> str:
        """The same of replies to rows of a length in `at`."""
        return many_text(self.costs_at.get(length))

    @property
    def furthest(self) -> str:
        """`0.41`, `< 0.01`, or a dash: the probability that it sees furthest."""
        return probability_text(self.p_furthest)

    @property
    def known(self) -> str:
        """`Mistral, 24 B`: what is known of the model."""
        size = f"{self.parameters} B" if self.parameters else ""
        return ", ".join(filter(None, (self.vendor, size)))


def first_of(at: Sequence[int], wanted: int | None = None) -> int:
    """The length that a page shows first: the one wanted, or else the middle one; 0 of none."""
    if wanted in at:
        return wanted or 0
    return at[len(at) // 2] if at else 0


def priced(lines: Iterable[StandingLine], at: Iterable[int]) -> list[int]:
    """The lengths in `at` for which the cost of a reply is known."""
    return [length for length in at if any(line.cost_at(length) for line in lines)]


def scale_of(standings: Iterable[Standing]) -> Scale:
    """One scale for the effective lengths of several standings."""
    return Scale.over(
        bound.length
        for standing in standings
        for place in standing.places
        if place.estimate is not None
        for bound in (place.estimate.length, *place.estimate.length_ci)
        if bound is not None
    )


def strip_of(length: Bound | None, interval: Span, scale: Scale) -> Strip:
    """An effective length and its interval on a scale."""
    low, high = interval
    return Strip(
        0.0 if low.sign == "<" else scale.percent(low.length),
        None if length is None else scale.percent(length.length),
        100.0 if high.sign == ">" else scale.percent(high.length),
        "" if length is None else length.side,
        low.sign == "<",
        high.sign == ">",
    )


def standing_lines(standing: Standing, scale: Scale, at: Sequence[int] = ()) -> list[StandingLine]:
    """A line for each model, the longest first, on a scale that all lines of a page share."""
    return [_line(place, scale, at) for place in standing.places]


def _line(place: Place, scale: Scale, at: Sequence[int]) -> StandingLine:
    estimate = place.estimate
    length = None if estimate is None else estimate.length
    judged = place.run.conditions.get(place.condition)
    cost = None if judged is None else judged.cost
    return StandingLine(
        place.ranks_text,
        place.by_test,
        place.p_furthest,
        place.name,
        ASKED if place.run.manifest.recorded is None else RECORDED,
        place.adaptive,
        "–" if estimate is None else estimate.length_text,
        "" if estimate is None else span_text(estimate.length_ci),
        "no scored sample" if estimate is None else estimate.note,
        None if estimate is None else strip_of(length, estimate.length_ci, scale),
        tuple(None if estimate is None else at_length(estimate, one) for one in at),
        "–" if place.median is None else str(place.median),
        place.conditions,
        place.left_out,
        cost_a_reply=None if cost is None else cost.a_reply,
        costs_at={} if judged is None else {one: cost_of_reply_at(judged, one) for one in at},
    )


def suited_at(standing: Standing, threshold: float, at: Sequence[int]) -> list[str]:
    """For each length of `at`, which models can be given a row of it; see `suited`."""
    unit = standing.places[0].run.spec.unit
    return [
        suited(
            [
                (place.name, None if place.estimate is None else at_length(place.estimate, length))
                for place in standing.places
            ],
            length,
            threshold_text(threshold),
            unit,
        )
        for length in at
    ]


def condition_text(section: Section, standing: Standing) -> str:
    """The condition of the standing by the axes that vary; empty if none does."""
    values = standing.condition.only(section.varied)
    if not values:
        return ""
    text = ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in values.items())
    return f"{text} (the default)" if standing.default else text
