"""Data types of a task: the fields of its file, the items, and the samples sent to a model.

Only `TaskSpec` is read from outside, so it is a pydantic model that forbids unknown fields. Items
and samples are plain frozen values.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from pydantic import ConfigDict, Field, PositiveInt

from eyechart.harness.settings.checks import MAX_DRAWS
from eyechart.harness.settings.checks import MAX_LENGTH as MAX_LENGTH
from eyechart.harness.settings.checks import MAX_SAMPLES as MAX_SAMPLES
from eyechart.harness.spec.answer import Target
from eyechart.harness.spec.columns import LINE as LINE
from eyechart.harness.spec.condition import EXAMPLES as EXAMPLES
from eyechart.harness.spec.condition import Condition as Condition
from eyechart.harness.spec.condition import varied_axes as varied_axes
from eyechart.harness.spec.condition import varied_label as varied_label
from eyechart.harness.spec.task_file import Axis as Axis
from eyechart.harness.spec.task_file import Separator as Separator
from eyechart.harness.spec.task_file import Spread as Spread
from eyechart.harness.spec.task_file import TaskSpec as TaskSpec
from eyechart.harness.spec.task_file import taken_by as taken_by
from eyechart.harness.spec.task_file import write_row as write_row
from eyechart.harness.spec.turns import Turn, messages_of
from eyechart.providers.base import AnswerSettings

IN_FILE = ConfigDict(extra="forbid", strict=True)
"""How pydantic reads a value of a run's file: without unknown fields and without conversion."""
_Length: TypeAlias = Annotated[int, Field(ge=0, le=MAX_LENGTH)]

_TURN = 2**64
_GOLDEN = 0x9E3779B97F4A7C15
"""The golden ratio's share of `_TURN`: 2^64 / 1.618…, rounded to an odd number."""
FEWEST_DIFFERENT = 0.9
"""Least share of different prompts among the samples of a line: fewer make its interval too
narrow."""


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """A line of the eye chart: samples whose lengths are spread evenly from `low` to `high`."""

    __pydantic_config__: ClassVar[ConfigDict] = IN_FILE

    length: _Length
    """The nominal length, by which tables name the line."""
    low: _Length
    """The shortest length of a sample."""
    high: _Length
    """The longest length of a sample."""

    @classmethod
    def exact(cls, length: int) -> Line:
        """The line whose samples all have `length` symbols."""
        return cls(length, length, length)

    @property
    def is_exact(self) -> bool:
        """Whether all samples have the same length."""
        return self.low == self.high

    def __str__(self) -> str:
        return str(self.length) if self.is_exact else f"{self.length} ({self.low}–{self.high})"

    def length_of(self, index: int, start: int) -> int:
        """The length of sample `index`; `start` is `line_start` of the task.

        Each index adds the golden ratio modulo 1, in parts of 2^-64, so the first n samples are
        spread evenly over the band for every n.
        """
        place = (start + index * _GOLDEN) % _TURN
        return self.low + place * (self.high - self.low + 1) // _TURN


@lru_cache(maxsize=1024)
def line_start(seed: int, task: str) -> int:
    """Where sample 0 lies in every band of a task, as a number below 2^64."""
    return int.from_bytes(hashlib.sha256(f"{seed}|{task}|lengths".encode()).digest()[:8])


def fifth_around(length: int) -> Line:
    """The line from 0.8 to 1.2 times `length`, rounded outwards."""
    return Line(length, max(1, length * 4 // 5), min(-(-length * 6 // 5), MAX_LENGTH))


def lines_of(lengths: Iterable[int], spread: Spread) -> list[Line]:
    """The lines with these nominal lengths, ascending.

    With `fifth` each line is `fifth_around` its length. With `bands`, bands end at the geometric
    mean of neighbouring lengths, rounded down, which belongs to the shorter line. The first band
    begins at the shortest length, the last ends at the longest.
    """
    nominal = sorted(set(lengths))
    if spread == "none" or not nominal:
        return [Line.exact(length) for length in nominal]
    if spread == "fifth":
        return [fifth_around(length) for length in nominal]
    ends = [*(math.isqrt(shorter * longer) for shorter, longer in pairwise(nominal)), nominal[-1]]
    starts = [nominal[0], *(end + 1 for end in ends[:-1])]
    return [Line(*line) for line in zip(nominal, starts, ends, strict=True)]


CellKey: TypeAlias = tuple[Condition, Line]


@dataclass(frozen=True, slots=True)
class Item:
    """One row of symbols with the correct answer, as a generator draws it for one sample."""

    symbols: Sequence[str]
    """The row: one string for each symbol, as many as the requested length."""
    target: Target | Sequence[str]
    """The correct answer: an int for an integer, an int or a float for a number, a list of texts
    for a list, else a text."""
    variables: Mapping[str, object] = field(default_factory=dict)
    """Further variables of the prompt: name -> value."""
    accept: Sequence[str] = ()
    """Other correct answers, for a symbol, a text or a choice."""
    metadata: Mapping[str, int | float | str] = field(default_factory=dict)
    """What results can be grouped by, see `bench score --by`: name -> value."""
    turn_targets: Sequence[Target | Sequence[str]] = ()
    """Of a task that asks over several turns: the correct answers of the turns before the last one,
    so that `bench samples` says which turn was the first to go wrong."""


_OPTION_TOKENS = 64
ReadBy: TypeAlias = Literal["reply", "likelihood"]


_IDENTITY = ("seed", "temperature", "max_tokens", "api", "system", "effort")
"""The settings that the identity of every run has, in the order in which they are hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(AnswerSettings):
    """What affects a model's answers besides the prompt; part of a run's identity."""

    __pydantic_config__: ClassVar[ConfigDict] = IN_FILE

    seed: Annotated[int, Field(gt=-(2**63), lt=2**63)] = 0
    max_tokens: PositiveInt | None = None
    """Most tokens of a reply, with its thinking. `None` is `auto`: enough for the target and the
    strategy, and what thinking turns out to need."""
    read: ReadBy = "reply"
    """How an answer is got: a reply is read, or the `likelihood` of the right answer is compared
    with those of others."""

    @property
    def reply_tokens(self) -> int | None:
        """Most tokens of a reply where they do not depend on the sample; an option of a forced
        choice is short, and nothing is written before it.
        """
        return _OPTION_TOKENS if self.read == "likelihood" else self.max_tokens

    def given(self) -> dict[str, Any]:
        """The settings as the manifest and the identity of a run have them: those of `_IDENTITY`,
        and the others where they are not the default, so that a new one leaves runs what they are.
        """
        usual = Settings()
        given = {name: getattr(self, name) for name in _IDENTITY}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name not in given and value != getattr(usual, one.name):
                given[one.name] = dict(sorted(value.items())) if one.name == "params" else value
        return given


VARIANT = "@"
"""The sign between a model's name and its variant."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The planned number of samples under one condition on one line."""

    __pydantic_config__: ClassVar[ConfigDict] = IN_FILE

    condition: Condition
    line: Line
    samples: Annotated[int, Field(ge=0, le=MAX_SAMPLES)]
    draws: Annotated[int, Field(ge=1, le=MAX_DRAWS)] = 1
    """How often each sample is asked."""

    @property
    def key(self) -> CellKey:
        """Identifies the cell within its run."""
        return self.condition, self.line

    @property
    def length(self) -> int:
        return self.line.length


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One prompt with its target. A frozen dataclass would take three times as long to make."""

    id: str
    """All that is needed to make the sample again, see `harness.plan.plan.sample_id`."""
    condition: Condition
    line: Line
    length: int
    """Symbols in the row: its true length."""
    index: int
    """Number of the sample in its cell, from 0; the same index has the same row under every
    condition."""
    prompt: str
    target: Target
    accept: tuple[str, ...] = ()
    """Other correct answers."""
    draw: int = 1
    """Which of several replies to the prompt is asked for, from 1."""
    before: int = 0
    """Characters of the prompt before its question: those of worked examples."""
    cue: str = ""
    """The words with which the prompt ends as a text to continue; empty if the provider's do."""
    in_turns: bool = False
    """Whether the prompt is sent message by message."""
    turn_targets: tuple[Target, ...] = ()
    """The correct answers of the turns before the last one, where the item has them."""
    said: tuple[Turn, ...] = ()
    """The turns that an earlier command had answered; they are not asked again."""

    @property
    def messages(self) -> tuple[str, ...]:
        """What is sent, one message a turn."""
        return messages_of(self.prompt) if self.in_turns else (self.prompt,)

    @property
    def question(self) -> str:
        """The prompt without worked examples."""
        return self.prompt[self.before :]

    @property
    def document(self) -> str:
        """The prompt as a text to continue."""
        return f"{self.prompt}\n{self.cue}" if self.cue else self.prompt

    @property
    def key(self) -> CellKey:
        return self.condition, self.line

    @property
    def prompt_hash(self) -> str:
        """Short hash of the prompt; a reader of the journal sees by it that a task has changed."""
        return prompt_hash(self.prompt)


def prompt_hash(prompt: str) -> str:
    """The hash of a prompt in the journal."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]
