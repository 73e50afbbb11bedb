"""How many tokens replies may have: those of the answer, and room for thinking.

A model that thinks is noticed by its replies and not by its name. Unused room costs nothing, so it
grows in large steps; a reply that was cut off was paid for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from typing import Self

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.journal.record import Record, read_records
from eyechart.harness.journal.thoughts import shows_thinking, thinking_tokens
from eyechart.harness.plan.cost import estimate_tokens, most_tokens
from eyechart.harness.plan.estimate import Thinking
from eyechart.harness.plan.resolved_model import ResolvedModel
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.score.loops import is_lost
from eyechart.harness.score.markup import without_thoughts
from eyechart.harness.spec import Settings
from eyechart.providers.naming import named

FIRST_ROOM = 8192
"""Tokens for thinking, from the first reply on that shows thinking."""
MOST = 131_072
"""Most tokens of a reply where neither the window nor the vendor's most is known."""
_TIMES = 4
"""A reply that was cut off without a sign of thinking gets this many times its tokens."""
_TRIALS, _STEPS = 2, 3
"""Samples of a run with which that is tried, one after the other, and attempts with each. If all
are cut off, more tokens do not help such replies."""
_AT_LIMIT = 3
"""After this many samples of a run that were cut off at the highest limit, samples are asked only
once. Of the requests in flight, at most this many have a limit above the usual one."""
_LOOPS = 5
"""After this many replies that repeat themselves until they are cut off, the user is told."""
_WORTH = 1.25
"""A sample is asked again only for this many times the tokens, or more."""
_REMEMBERED = 2000
"""Most earlier records of a model that are read."""
_OTHERWISE = ("seed", "temperature", "max_tokens")
"""Settings that do not change whether a model thinks."""


@dataclass(slots=True)
class Room:
    """The tokens that replies of one model may have; it learns from each reply."""

    head: int = 0
    """Tokens for thinking that the next request gets besides those of its answer."""
    fixed: bool = False
    """Whether the user has set the most tokens of a reply, with its thinking."""
    most: int | None = None
    """Most tokens of a reply, by the vendor."""
    window: int | None = None
    """Most tokens of prompt and reply together."""
    grows: bool = True
    """Whether `tokens` adds the head; a worker of a cluster gets it added by the command."""
    thinks: bool = False
    """Whether a reply has shown that the model thinks, or that it needs more room."""
    _refused: int | None = None
    """The fewest tokens that the server did not take."""
    _taken: int = 0
    """The most tokens of a request that the server answered."""
    _tried: int = 0
    _probes: set[str] = field(default_factory=set)
    """Ids of the samples that are asked for more tokens than was usual."""
    _ended: asyncio.Event | None = None
    """Set when the next of them ends."""
    _at_limit: int = 0
    _loops: list[int] = field(default_factory=list)
    """Tokens of the replies of this command that repeated themselves until they were cut off."""
    _has_remembered: bool = False

    @classmethod
    def of(cls, model: ResolvedModel, settings: Settings) -> Self:
        """The room at the beginning of a command."""
        is_fixed = settings.max_tokens is not None
        return cls(0 if is_fixed else model.facts.room_to_think, is_fixed, model.facts.max_output)

    def remember(self, request: RunRequest) -> None:
        """Learns from the replies to earlier commands, once, so that no tokens are paid to learn
        the same again.
        """
        if not self._has_remembered:
            self._has_remembered = True
            self.learn(earlier_records(request))

    def learn(self, records: Iterable[Record]) -> None:
        for record in records:
            self.note(record)
            if self._is_cut(record) and record.cut_off:
                spent = record.output_tokens or 0
                has_all = self._most_after(record, spent) < _WORTH * spent
                self._at_limit += self.thinks and has_all
                self._tried += not self.thinks

    def tokens(self, prompt: str, answer: int) -> int:
        """Most tokens of the reply to a prompt; `answer` are those of its answer alone."""
        if not self.head or not self.grows:
            return answer
        left = None if self.window is None else self.window - most_tokens(prompt)
        taken = None if self._refused is None else self._taken
        limits = [limit for limit in (self.most, left, taken) if limit is not None]
        return max(answer, min(answer + self.head, *limits, MOST))

    def more(self, record: Record, max_tokens: int) -> int | None:
        """Most tokens with which a sample is asked again after a reply that was cut off; `None` if
        the reply was whole, or if more tokens are not to be had or would not help.
        """
        if not self._is_cut(record):
            return None
        self._taken = max(self._taken, max_tokens)
        if record.has_servers_limit or self._at_limit >= _AT_LIMIT:
            return None
        if not self.thinks and not self._tries(record):
            return None
        wanted = max(2 * max_tokens, max_tokens + FIRST_ROOM, self.head)
        if not self.thinks:
            wanted = _TIMES * max_tokens
        tokens = min(wanted, self._most_after(record, max_tokens))
        if tokens < _WORTH * max_tokens:
            self._at_limit += self.thinks
            return None
        if self._is_probe(max_tokens):
            self._probes.add(record.id)
        return tokens

    def loops(self, record: Record, prompt: str) -> bool:
        """Whether a reply that was cut off repeats itself, and so gains nothing by more room. The
        same in a copy of a row that repeats itself is no such loop.
        """
        if not is_lost(without_thoughts(record.reply or ""), prompt):
            return False
        self._loops.append(record.output_tokens or 0)
        return True

    @property
    def loops_said(self) -> str:
        """What loops cost, for the user, when there are enough to be sure; otherwise empty."""
        if len(self._loops) != _LOOPS:
            return ""
        return (
            f"{_LOOPS} replies so far repeat themselves until they are cut off, at about "
            f"{median(self._loops):,.0f} tokens each; {named('max_tokens')} limits what they cost"
        )

    def before(self, record: Record, max_tokens: int) -> asyncio.Event | None:
        """What a sample that was cut off waits for before it is asked for more than was usual: the
        end of another such sample, which shows whether that helps. `None` if it waits for nothing.
        """
        most = _AT_LIMIT if self.thinks else 1
        if not self._is_cut(record) or not self._is_probe(max_tokens):
            return None
        if record.id in self._probes or len(self._probes) < most:
            return None
        self._ended = self._ended or asyncio.Event()
        return self._ended

    def end(self, sample: str) -> None:
        """The sample is not asked any more."""
        if sample in self._probes:
            self._probes.remove(sample)
            if self._ended is not None:
                self._ended.set()
                self._ended = None

    def _is_cut(self, record: Record) -> bool:
        """Whether a reply was cut off, and the user has set no limit; notes a sign of thinking."""
        if self.fixed or not record.is_cut_off:
            return False
        self._note_thinking(record)
        return True

    def _is_probe(self, max_tokens: int) -> bool:
        """Whether `max_tokens` is above the limit that was usual so far."""
        return not self.thinks or max_tokens > self.head

    def _tries(self, record: Record) -> bool:
        """Whether more room is tried with the sample of a record without a sign of thinking."""
        if record.id in self._probes:
            return (record.cut_off or 0) < _STEPS
        self._tried += 1
        return self._tried <= _TRIALS

    def note(self, record: Record, max_tokens: int = 0) -> None:
        """Learns from the last reply to a sample, which had `max_tokens`, if that is known."""
        self._note_thinking(record)
        self._taken = max(self._taken, max_tokens)
        if self.fixed or record.failure is not None or record.is_cut_off:
            return
        self.thinks |= bool(record.cut_off)  # it was whole only with more room
        if self.thinks:
            spent = record.output_tokens or max_tokens
            self.head = max(self.head, FIRST_ROOM, 2 * spent)

    @property
    def has_refusal(self) -> bool:
        return self._refused is not None

    def refused(self, max_tokens: int) -> None:
        """The server did not take a request for `max_tokens`."""
        self._refused = min(max_tokens, self._refused or max_tokens)

    def _note_thinking(self, record: Record) -> None:
        if not self.fixed and not self.thinks and shows_thinking(record):
            self.thinks, self.head = True, max(self.head, FIRST_ROOM)

    def _most_after(self, record: Record, max_tokens: int) -> int:
        """Most tokens that may be asked for next; below a number that the server refused, the
        middle between that and what it took.
        """
        left = below = None
        if self.window is not None and record.prompt_tokens is not None:
            left = self.window - record.prompt_tokens
        if self._refused is not None:
            below = (max(max_tokens, self._taken) + self._refused) // 2
        return min(limit for limit in (self.most, left, below, MOST) if limit is not None)


def earlier_records(request: RunRequest) -> Iterator[Record]:
    """Replies of the model to earlier commands under the same output folder, if it was asked in the
    same way, those of the run itself first. The journals stay as they are.
    """
    return islice(_earlier_records(request), _REMEMBERED)


def _earlier_records(request: RunRequest) -> Iterator[Record]:
    label, way = request.model.label, _way(request.settings)
    for folder in dict.fromkeys([request.folder, *find_runs(request.out, label)]):
        try:
            manifest = None if folder == request.folder else read_manifest(folder)
            if manifest is None or (manifest.model == label and _way(manifest.settings) == way):
                yield from read_records(folder)
        except JournalError:  # whoever needs that run is told
            continue


def _way(settings: Settings) -> dict[str, object]:
    return {name: value for name, value in settings.given().items() if name not in _OTHERWISE}


def thinking_of(request: RunRequest, records: Iterable[Record], window: int | None) -> Thinking:
    """What thinking may add to each reply of a run, by what is known about its model and by its
    earlier replies.
    """
    kept = list(records)
    room, facts = Room.of(request.model, request.settings), request.model.facts
    room.window = window
    room.learn(kept)
    is_shown = any(map(shows_thinking, kept))
    if not (is_shown or room.thinks or facts.room_to_think):
        return Thinking()
    thoughts = [tokens for tokens in map(_thought, kept) if is_shown and tokens is not None]
    likely = round(sum(thoughts) / len(thoughts)) if thoughts else facts.likely_thought
    limits = (room.most, window, MOST)
    most = None if room.fixed else min(limit for limit in limits if limit is not None)
    return Thinking(likely, most, round(2 * most / _WORTH) if most else 0, seen=len(thoughts))


def _thought(record: Record) -> int | None:
    """Tokens of thinking in a reply; `None` if they are not known."""
    if (tokens := thinking_tokens(record)) is not None:
        return tokens
    if record.output_tokens is None or record.reply is None:
        return None
    return max(0, record.output_tokens - estimate_tokens(without_thoughts(record.reply)))
