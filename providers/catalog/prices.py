"""What the tokens of a model cost: by kind, by the prompt's length, by tier and by time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from time import time
from typing import NamedTuple, TypeAlias, TypeVar

PER = 1_000_000
"""Number of tokens that rates are for."""
DEFAULT = "default"
"""The tier of requests that name none."""
LEAST_WRITTEN = 1024
"""Tokens of the shortest prompt that a vendor writes to a cache at a price."""
_DAY_S, _AHEAD_DAYS = 86_400, 31


class Rates(NamedTuple):
    """US dollars per million tokens of each kind."""

    fresh: float
    """Tokens of the prompt that no cache had."""
    cache_read: float
    cache_write: float
    said: float
    """Tokens of the reply without its thinking."""
    thought: float
    request: float = 0.0
    """US dollars per million requests."""


class MostRates(NamedTuple):
    """The highest rates that can apply to a request: US dollars per million prompt tokens, per
    million reply tokens, and per million requests.
    """

    prompt: float
    output: float
    request: float


_Kind = TypeVar("_Kind", Rates, MostRates)
Steps: TypeAlias = tuple[tuple[int, Rates], ...]
"""(tokens, rates), ascending: rates of all tokens, for prompts of more than this many tokens."""


def rates_for(steps: Sequence[tuple[int, _Kind]], prompt_tokens: float) -> _Kind:
    """The rates of a request with such a prompt."""
    place = len(steps) - 1
    while place and prompt_tokens <= steps[place][0]:
        place -= 1
    return steps[place][1]


def dearest(many: Iterable[Steps]) -> Steps:
    """For each length of a prompt, the highest of each rate, there or at shorter prompts."""
    all_steps = list(many)
    result: list[tuple[int, Rates]] = []
    for above in sorted({above for steps in all_steps for above, _ in steps}):
        here = [rates_for(steps, above + 1) for steps in all_steps]
        result.append((above, _highest([*here, *(rates for _, rates in result[-1:])])))
    return tuple(result)


def _highest(many: Sequence[Rates]) -> Rates:
    return Rates(*map(max, zip(*many, strict=True)))


@dataclass(frozen=True, slots=True)
class Timetable:
    """Rates that change with the day and the hour, in UTC."""

    days: tuple[float, ...]
    """Times from which the rows of `rows` hold, in seconds since 1970, ascending; the first is
    minus infinity."""
    hours: tuple[int, ...]
    """Times of day from which the columns hold, in seconds, ascending; the first is 0."""
    rows: tuple[tuple[Steps, ...], ...]

    def at(self, at_s: float) -> Steps:
        """The rates at a time, in seconds since 1970."""
        row = self.rows[bisect_right(self.days, at_s) - 1] if len(self.days) > 1 else self.rows[0]
        return row[0] if len(row) == 1 else row[bisect_right(self.hours, at_s % _DAY_S) - 1]

    def within(self, since_s: float, until_s: float) -> Iterator[Steps]:
        """The rates of all hours between two times, at least a day apart."""
        first = bisect_right(self.days, since_s) - 1
        for row in self.rows[first : bisect_right(self.days, until_s)]:
            yield from row


@dataclass(frozen=True)
class Prices:
    """The prices of one model, with the date of the list that they are from."""

    tiers: Mapping[str, Timetable] = field(repr=False)
    """Tier -> its rates; `default` is there always."""
    as_of: date
    source: str = ""
    """Name and version of the list; empty for a file of ours or of the user's."""
    tier: str = DEFAULT
    """The tier that is asked for."""

    @property
    def of(self) -> str:
        """`2026-11-03 (genai-prices 0.2.3)`."""
        return f"{self.as_of} ({self.source})" if self.source else str(self.as_of)

    def __str__(self) -> str:
        """`the flex prices of 2026-11-03 (genai-prices 0.2.3)`."""
        kind = "" if self.tier == DEFAULT or not self.has(self.tier) else f"{self.tier} "
        return f"the {kind}prices of {self.of}"

    def has(self, tier: str) -> bool:
        """Whether the price of a tier is known."""
        return tier in self.tiers

    def in_tier(self, tier: str) -> Prices:
        """The prices for requests in a tier; list prices if those of the tier are unknown."""
        return replace(self, tier=tier)

    def _timetable(self, tier: str | None) -> Timetable:
        tiers = self.tiers
        return tiers.get(tier or self.tier) or tiers[DEFAULT]

    def at(self, at_s: float | None, tier: str | None = None) -> Steps:
        """The rates at a time, in seconds since 1970, in the tier of a reply; the dearest of these
        weeks where the time is not known.
        """
        if at_s is not None:
            return self._timetable(tier).at(at_s)
        return self.worst if tier is None else self.in_tier(tier).worst

    @cached_property
    def worst(self) -> Steps:
        """The dearest rates of a request that is sent in the next weeks."""
        now_s = time()
        return dearest(self._timetable(None).within(now_s, now_s + _AHEAD_DAYS * _DAY_S))

    @cached_property
    def _most(self) -> tuple[tuple[int, MostRates], ...]:
        return tuple(
            (
                above,
                MostRates(
                    max(rates.fresh, rates.cache_read, rates.cache_write),
                    max(rates.said, rates.thought),
                    rates.request,
                ),
            )
            for above, rates in self.worst
        )

    def most(self, prompt_tokens: float) -> MostRates:
        """The dearest rates of a request with a prompt of this many tokens, or fewer."""
        return rates_for(self._most, prompt_tokens)

    @property
    def charges_writes(self) -> bool:
        """Whether tokens that are written to a cache cost more than others."""
        return any(rates.cache_write > rates.fresh for _, rates in self.worst)
