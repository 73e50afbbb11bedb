"""The waves of an adaptive evaluation: which samples of a data set are asked, as they come up.

A data set has its own order, and what is passed over does not come up again. So a wave takes the
next samples of the lines that it wants, and passes over the others. When all of its samples are
asked, those that come up wait for its replies. Nothing here waits for a sample to come up, as none
may be able to while others wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeAlias, TypeVar

from eyechart.harness.analysis.adaptive import Aim, next_step
from eyechart.harness.analysis.curve import Curve, curve
from eyechart.harness.spec import Line

_Key = TypeVar("_Key", bound=Hashable)
Turn: TypeAlias = Literal["ask", "pass", "wait"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sample of one condition stands."""

    line: Line
    row: int
    """The same for samples of all lines that have the same row of symbols."""
    length: int
    """Symbols in its row."""


class Waves(Generic[_Key]):
    """The waves of one condition over the samples of a data set."""

    def __init__(self, places: Mapping[_Key, Place], aim: Aim) -> None:
        """The samples by their keys, in any order; a line has no more samples than they are."""
        self._places = places
        self._to_come = Counter(place.line for place in places.values())
        self._lines = sorted(self._to_come)
        self._aim = replace(aim, most_samples=max(self._to_come.values()))
        self._asked: Counter[Line] = Counter()
        self._wanted: Counter[Line] = Counter()
        self._turns: dict[_Key, Turn] = {}
        self._running: set[_Key] = set()
        self._correct: dict[_Key, bool] = {}
        self._done = ""

    @property
    def asked(self) -> int:
        """Samples that were asked."""
        return self._asked.total()

    @property
    def why_passed(self) -> str:
        """Why the last sample that was passed over was not asked."""
        return self._done or "the replies so far ask for samples of other lengths"

    def turn(self, key: _Key) -> Turn:
        """What becomes of a sample that comes up; it may come up again, to be retried."""
        if key in self._turns:
            if self._turns[key] == "ask":
                self._running.add(key)
            return self._turns[key]
        line = self._places[key].line
        if not self._done and not self._is_wanted() and not self._running:
            self._next_wave()
        if self._done:
            return self._settle(key, "pass")
        if self._wanted[line]:
            self._running.add(key)
            return self._settle(key, "ask")
        return self._settle(key, "pass") if self._is_wanted() else "wait"

    def ended(self, key: _Key, *, correct: bool | None) -> None:
        """Takes in what became of a sample that was asked, or that an earlier evaluation asked;
        `None` is no reply.
        """
        if key not in self._turns:
            self._settle(key, "ask")
        self._running.discard(key)
        if correct is not None:
            self._correct[key] = correct

    def why_ended(self) -> str:
        """Why no more samples were asked, once the last one came up."""
        if not self._done:
            self._next_wave()
        return self._done or "its samples came to an end"

    def _settle(self, key: _Key, turn: Turn) -> Turn:
        line = self._places[key].line
        self._turns[key] = turn
        self._to_come[line] -= 1
        if turn == "ask":
            self._asked[line] += 1
            self._wanted[line] = max(0, self._wanted[line] - 1)
        return turn

    def _is_wanted(self) -> bool:
        """Whether a sample that the wave wants may still come up."""
        return any(count and self._to_come[line] for line, count in self._wanted.items())

    def _next_wave(self) -> None:
        planned = {line: self._asked[line] for line in self._lines}
        step = next_step(self._curve(), planned, self._aim)
        self._done = step.why
        self._wanted = Counter(step.more)
        if not self._done and not self._is_wanted():
            self._done = "all samples of the lines near the crossing came up"

    def _curve(self) -> Curve | None:
        keys = sorted(self._correct, key=self._order)
        if not keys:
            return None
        places = [self._places[key] for key in keys]
        return curve(
            [place.length for place in places],
            [place.row for place in places],
            [self._correct[key] for key in keys],
            lines=self._lines,
            places=[self._lines.index(place.line) for place in places],
        )

    def _order(self, key: _Key) -> tuple[Line, int]:
        """So that it does not matter which reply came first."""
        place = self._places[key]
        return place.line, place.row
