"""Data types of a task: the fields of its file, the items, and the samples sent to a model.

Only `TaskSpec` is read from outside, so it is a pydantic model that forbids unknown fields. Items
and samples are plain frozen values.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    Discriminator,
    Field,
    JsonValue,
    Tag,
    WithJsonSchema,
    model_validator,
)

from eyechart.harness.score.extraction import FIRST
from eyechart.harness.settings.checks import MAX_LENGTH as MAX_LENGTH
from eyechart.harness.settings.checks import MAX_SAMPLES as MAX_SAMPLES
from eyechart.harness.settings.run_settings import Spread as Spread
from eyechart.harness.spec.answer import Answer, Part, Target
from eyechart.harness.spec.columns import table_of
from eyechart.harness.spec.condition import EXAMPLES as EXAMPLES
from eyechart.harness.spec.condition import Condition as Condition
from eyechart.harness.spec.condition import varied_axes as varied_axes
from eyechart.harness.spec.condition import varied_label as varied_label
from eyechart.harness.spec.unit import SYMBOLS

_TURN = 2**64
_GOLDEN = 0x9E3779B97F4A7C15
"""The golden ratio's share of `_TURN`: 2^64 / 1.618…, rounded to an odd number."""


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """A line of the eye chart: samples whose lengths are spread evenly from `low` to `high`."""

    length: int
    """The nominal length, by which tables name the line."""
    low: int
    """The shortest length of a sample."""
    high: int
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


class Separator(Part):
    """How a row of symbols is written where one string between all neighbours is not enough."""

    inside: str = ""
    """The text between neighbours."""
    between: str = ""
    """The text between groups, in place of `inside`; needs `every`."""
    every: Annotated[int, Field(ge=1)] | None = None
    """Number of symbols in a group."""
    quote: str = ""
    """The text on both sides of each symbol."""
    open: str = ""
    """The text before the row."""
    close: str = ""
    """The text after the row."""

    @model_validator(mode="after")
    def _groups_are_whole(self) -> Separator:
        if bool(self.between) != (self.every is not None):
            msg = "'between' and 'every' need each other: give both or neither"
            raise ValueError(msg)
        return self


def _axis_value_tag(value: object) -> str:
    return "separator" if isinstance(value, dict | Separator) else "text"


AxisValue: TypeAlias = Annotated[
    Annotated[str | bool | int | float, Tag("text")] | Annotated[Separator, Tag("separator")],
    Discriminator(_axis_value_tag),
]
"""What a prompt sees under the axis's name; so does a generator with a parameter of that name."""

_TAKEN = {
    **dict.fromkeys(("sequence", "symbols", "phrase", "options"), "a name that every prompt has"),
    **dict.fromkeys(("rng", "index", "eyechart"), "a name that every sample has"),
}


def taken_by(axis: str) -> str | None:
    """What already has the name `axis`, in words; `None` if the name is free."""
    table = table_of(axis)
    return _TAKEN.get(axis) if table is None else f"a column of {table}"


Length = Annotated[int, Field(gt=0, le=MAX_LENGTH)]
_NAME = r"^[a-z][a-z0-9_]*$"
Name = Annotated[str, Field(pattern=_NAME, max_length=40)]
ValueName = Annotated[
    str,
    Field(pattern=r"^([a-z][a-z0-9_]*|[0-9])$", max_length=40),
    WithJsonSchema({"type": "string", "pattern": _NAME, "maxLength": 40}),
]
"""A digit names a value of the axis `examples` alone; `task.check` refuses it in a file."""


CodeReference = Annotated[str, Field(pattern=r"^[^:]+\.py:[A-Za-z_]\w*$")]


class Axis(Part):
    """One thing a task varies besides length."""

    default: Annotated[list[str], Field(min_length=1)]
    """The value names that run unless `--axis` says otherwise."""
    values: Annotated[dict[ValueName, AxisValue], Field(min_length=1)]
    """Value name -> what the prompt sees."""


class Preset(Part):
    """Named settings of a task, such as those of a paper, for `--preset NAME`.

    A field that a preset does not give keeps the task's default. Options of the command line
    override the preset.
    """

    title: Annotated[str, Field(min_length=1)]
    """What the preset asks, and whose settings they are."""
    lengths: Annotated[list[Length], Field(min_length=1)] | None = None
    """Numbers of symbols, in place of the task's `lengths`."""
    spread: Spread | None = None
    """In place of the task's `spread`."""
    samples: Annotated[int, Field(gt=0, le=MAX_SAMPLES)] | None = None
    """Samples per cell, in place of the task's `samples`."""
    axes: dict[Name, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    """Axis -> the value names that run, in place of its `default`."""


_PHRASE_AT_END = re.compile(r"\{\{-?\s*phrase\s*-?\}\}\s*\Z")


def _ends_with_phrase(template: object, answer: Mapping[str, object]) -> bool:
    """Whether a prompt ends with the answer phrase, so that the reply begins with the answer."""
    phrase = answer.get("phrase") or Answer.model_fields["phrase"].default
    return isinstance(template, str) and (
        bool(_PHRASE_AT_END.search(template)) or template.rstrip().endswith(str(phrase).strip())
    )


class TaskSpec(Part):
    """One task file, as `tasks/task.schema.json` describes it to an editor."""

    version: Annotated[int, Field(gt=0, le=10**9)]
    """Raised by any change of prompt, data or scoring."""
    title: Annotated[str, Field(min_length=1)]
    source: str | None = None
    """The paper or tool the task is taken from."""
    generator: CodeReference | None = None
    """`file.py:function`, the file relative to the task file."""
    items: Annotated[str, Field(pattern=r"\.jsonl$")] | None = None
    """A file of ready items instead of a generator, relative to the task file: one JSON object a
    line with `variables`, `target` and `length`, and if wanted `accept` (a list of other correct
    answers) and `metadata` (names with texts or numbers, for `bench score --by`)."""
    params: dict[str, JsonValue] = Field(default_factory=dict)
    """Keyword arguments of the generator."""
    unit: Annotated[str, Field(pattern=r"^[a-z]+( [a-z]+)*$", max_length=24)] = SYMBOLS
    """What a length counts, in the plural: `symbols`, `tokens`, `words`, `items`, or another plain
    word. Every sentence, axis and export that has a length names it."""
    lengths: list[Length] | None = None
    """Numbers of symbols, or of what `unit` names, to show. With `items` the file's own
    lengths, unless given."""
    spread: Spread | None = None
    """`bands`: the samples of a line have lengths around its nominal length, and the bands of
    neighbouring lengths meet. `fifth`: lengths from 0.8 to 1.2 times the nominal one, so that bands
    may overlap. `none`: exactly the lengths, as always with `items`. Default: `bands` with a
    generator."""
    samples: Annotated[int, Field(gt=0, le=MAX_SAMPLES)] | None = None
    """Samples per cell. With `items` all of them, unless given."""
    axes: dict[Name, Axis] = Field(default_factory=dict)
    """What the task varies besides length; the prompt, and a generator that has a parameter of the
    axis's name, see the value. `separator` is also what `{{ sequence }}` is written with."""
    presets: dict[Name, Preset] = Field(default_factory=dict)
    """Settings under a name, for `--preset`."""
    prompt: Annotated[str, Field(min_length=1)]
    """A Jinja2 template."""
    system: Annotated[str, Field(pattern=r"\S")] | None = None
    """A system prompt, sent as it is before each prompt; `--system` overrides it."""
    answer: Answer
    """One of the types alone, as `answer: integer`, or a mapping with a `type` and what it
    needs."""

    scorer: CodeReference | None = None
    """`file.py:function`, the file relative to the task file: a function that judges replies in
    place of the rules of `answer`; `answer` still gives the phrase and the targets' type. The
    function takes the reply and the item, and returns `correct`, `incorrect` or `unparsed`, or a
    pair of that and a reason.
    """

    statistics: list[Literal["capacity"]] = Field(default_factory=list)
    """A statistic besides the effective length. `capacity`, for integers: the longest line at which
    every reply can be read and the mean relative error is at most 5 % (Dai & Fan 2026, arXiv
    2605.02028).
    """

    @model_validator(mode="before")
    @classmethod
    def _whole_answer(cls, data: object) -> object:
        """The mapping of a short answer, with the default of `read`."""
        if not isinstance(data, dict):
            return data
        given = data.get("answer")
        answer = {"type": given} if isinstance(given, str) else given
        if not isinstance(answer, dict):
            return data
        if answer.get("read") is None and _ends_with_phrase(data.get("prompt"), answer):
            answer = {**answer, "read": FIRST}
        return {**data, "answer": answer}

    @property
    def usual_spread(self) -> Spread:
        """`spread`, or its default."""
        return self.spread or ("bands" if self.items is None else "none")

    def default_conditions(self) -> dict[str, list[str]]:
        """Axis -> the value names that run by default."""
        return {name: list(axis.default) for name, axis in self.axes.items()}

    def digest(self) -> str:
        """Hash of what determines prompts and verdicts: no defaults, presets or descriptions."""
        without_defaults = self.model_copy(
            update={"axes": {k: a.model_copy(update={"default": []}) for k, a in self.axes.items()}}
        )
        described = {
            *("title", "source", "unit", "lengths", "spread", "samples", "statistics", "presets"),
        }
        content = without_defaults.model_dump(mode="json", exclude=described)
        content["answer"] = self.answer.given()
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def write_row(symbols: Sequence[str], separator: object = "") -> str:
    """`symbols` as the prompt shows them; `separator` is a string or a `Separator`."""
    if not isinstance(separator, Separator):
        return str(separator).join(symbols)
    if separator.quote:
        symbols = [f"{separator.quote}{symbol}{separator.quote}" for symbol in symbols]
    if separator.every is None:
        row = separator.inside.join(symbols)
    else:
        row = separator.between.join(
            separator.inside.join(symbols[start : start + separator.every])
            for start in range(0, len(symbols), separator.every)
        )
    return f"{separator.open}{row}{separator.close}"


_OPTION_TOKENS = 64
ReadBy: TypeAlias = Literal["reply", "likelihood"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What affects a model's answers besides the prompt; part of a run's identity."""

    seed: int = 0
    temperature: float | None = 0.0
    """`None`: none is sent, because the model takes none."""
    max_tokens: int | None = None
    """Most tokens of a reply, with its thinking. `None` is `auto`: enough for the target and the
    strategy, and what thinking turns out to need."""
    api: Literal["chat", "completions"] = "chat"
    """Whether the prompt is sent as a user's message or as a text to continue."""
    system: str | None = None
    """The system prompt."""
    effort: str | None = None
    """How much a reasoning model thinks; `None` is the catalog's default, or else the vendor's."""
    thinking: str | None = None
    """`on`, `off` or the most tokens of thinking; `None` leaves it to the model."""
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    """Further fields of each request's body."""
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
        """The settings for manifest and identity of a run; later fields only where they are set."""
        later = {
            "thinking": self.thinking,
            "params": dict(sorted(self.params.items())),
            "read": "" if self.read == "reply" else self.read,
        }
        fields = {name: value for name, value in asdict(self).items() if name not in later}
        return fields | {name: value for name, value in later.items() if value}


VARIANT = "@"
"""The sign between a model's name and its variant."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The planned number of samples under one condition on one line."""

    condition: Condition
    line: Line
    samples: int
    fingerprint: int | None = None
    """Sum of the samples' hashes, see `plan.fingerprint`; `None` until all were made."""
    draws: int = 1
    """How often each sample is asked."""

    @property
    def key(self) -> CellKey:
        """Identifies the cell within its run."""
        return self.condition, self.line

    @property
    def length(self) -> int:
        return self.line.length


@dataclass(frozen=True, slots=True)
class Sample:
    """One prompt with its target."""

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
        """Key of the sample's cell."""
        return self.condition, self.line

    @property
    def prompt_hash(self) -> str:
        """Short hash of the prompt; a reader of the journal sees by it that a task has changed."""
        return prompt_hash(self.prompt)


def prompt_hash(prompt: str) -> str:
    """The hash of a prompt in the journal."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]
