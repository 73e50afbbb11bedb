"""The keys of a task file, each with its description and an example.

A key is described here and nowhere else: `docs/task-file.md` and the editors' schema are made from
these models. An example is the value of the key alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, JsonValue, Tag, WithJsonSchema, model_validator

from eyechart.harness.score.extraction import FIRST
from eyechart.harness.settings.checks import MAX_LENGTH, MAX_SAMPLES
from eyechart.harness.spec.answer import Answer, Part, phrase_of
from eyechart.harness.spec.columns import table_of
from eyechart.harness.spec.turns import NAME
from eyechart.harness.spec.unit import SYMBOLS


class Separator(Part):
    """How a row of symbols is written where one string between all neighbours is not enough."""

    inside: str = Field(default="", examples=[","])
    """The text between neighbours."""
    between: str = Field(default="", examples=["; "])
    """The text between groups, in place of `inside`; needs `every`."""
    every: Annotated[int, Field(ge=1)] | None = Field(default=None, examples=[5])
    """Number of symbols in a group."""
    quote: str = Field(default="", examples=['"'])
    """The text on both sides of each symbol."""
    open: str = Field(default="", examples=["["])
    """The text before the row."""
    close: str = Field(default="", examples=["]"])
    """The text after the row."""

    @model_validator(mode="after")
    def _groups_are_whole(self) -> Separator:
        if bool(self.between) != (self.every is not None):
            msg = "'between' and 'every' need each other: give both or neither"
            raise ValueError(msg)
        return self


def _axis_value_tag(value: object) -> str:
    return "separator" if isinstance(value, dict | Separator) else "text"


Spread: TypeAlias = Literal["bands", "fifth", "none"]
"""Whether a task's lines are bands that meet, go from 0.8 to 1.2 times their nominal length (Dai &
Fan 2026, arXiv 2605.02028), or are exact lengths."""
AxisValue: TypeAlias = Annotated[
    Annotated[str | bool | int | float, Tag("text")] | Annotated[Separator, Tag("separator")],
    Discriminator(_axis_value_tag),
]
"""What a prompt sees under the axis's name; so does a generator with a parameter of that name."""

_OF_PROMPTS = "a name that every prompt has"
_TAKEN = {
    **dict.fromkeys(("sequence", "symbols", "phrase", "options", NAME), _OF_PROMPTS),
    **dict.fromkeys(("rng", "index", "eyechart"), "a name that every sample has"),
}


def taken_by(axis: str) -> str | None:
    """What already has the name `axis`, in words; `None` if the name is free."""
    table = table_of(axis)
    return _TAKEN.get(axis) if table is None else f"a column of {table}"


Length = Annotated[int, Field(gt=0, le=MAX_LENGTH)]
NAME_FORM = "lower case letters, digits and _"
_NAME = r"^[a-z][a-z0-9_]*$"
Name = Annotated[str, Field(pattern=_NAME, max_length=40)]
ValueName = Annotated[
    str,
    Field(pattern=r"^([a-z][a-z0-9_]*|[0-9])$", max_length=40),
    WithJsonSchema({"type": "string", "pattern": _NAME, "maxLength": 40}),
]
"""The name of a value of an axis. A digit names one of the axis `examples` alone; `task.check`
refuses it in a file.
"""
CodeReference = Annotated[str, Field(pattern=r"^[^:]+\.py:[A-Za-z_]\w*$")]


class Axis(Part):
    """One thing a task varies besides length. A task is asked under every combination of the
    values that run, one on each axis; such a combination is a condition.
    """

    default: Annotated[list[str], Field(min_length=1, examples=[["none", "comma"]])]
    """The names of the values that run unless a command names others. Conditions of nothing but
    these values are the default conditions.
    """
    values: Annotated[
        dict[ValueName, AxisValue],
        Field(
            min_length=1,
            examples=[
                {"none": "", "comma": ",", "fives": {"inside": ",", "between": "; ", "every": 5}}
            ],
        ),
    ]
    """The name of each value, and what the prompt sees for it."""


_PHRASE_AT_END = re.compile(r"\{\{-?\s*phrase\s*-?\}\}\s*\Z")


def _ends_with_phrase(template: object, answer: Mapping[str, object]) -> bool:
    """Whether a prompt ends with the answer phrase, so that the reply begins with the answer."""
    return isinstance(template, str) and (
        bool(_PHRASE_AT_END.search(template))
        or template.rstrip().endswith(phrase_of(answer).strip())
    )


class TaskSpec(Part):
    """One task file, as `tasks/task.schema.json` describes it to an editor."""

    version: Annotated[int, Field(gt=0, le=10**9, examples=[1])]
    """Raised by any change of prompt, data or scoring."""
    title: Annotated[str, Field(min_length=1, examples=["Marks in a row"])]
    """What the task asks, in a few words, for lists, tables and pages."""
    source: str | None = Field(default=None, examples=["Barbero et al. 2024, arXiv 2406.04267"])
    """The paper or tool the task is taken from."""
    generator: CodeReference | None = Field(default=None, examples=["marks.py:row"])
    """`file.py:function`, the file relative to the task file: a function that draws the row and the
    right answer of a sample.
    """
    items: Annotated[str, Field(pattern=r"\.jsonl$")] | None = Field(
        default=None, examples=["marks.jsonl"]
    )
    """A file of ready items instead of a generator, relative to the task file: one JSON object a
    line with `variables`, `target` and `length`, and if wanted `accept` (a list of other correct
    answers) and `metadata` (names with texts or numbers, for `bench score --by`)."""
    params: dict[str, JsonValue] = Field(default_factory=dict, examples=[{"mark": "!"}])
    """Keyword arguments of the generator."""
    unit: Annotated[str, Field(pattern=r"^[a-z]+( [a-z]+)*$", max_length=24)] = Field(
        default=SYMBOLS, examples=["words"]
    )
    """What a length counts, in the plural: `symbols`, `tokens`, `words`, `items`, or another plain
    word. Every sentence, axis and export that has a length names it."""
    lengths: list[Length] | None = Field(default=None, examples=[[5, 10, 20]])
    """Numbers of symbols, or of what `unit` names, to show. With `items` the file's own
    lengths, unless given."""
    spread: Spread | None = Field(default=None, examples=["none"])
    """`bands`: the samples of a line have lengths around its nominal length, and the bands of
    neighbouring lengths meet. `fifth`: lengths from 0.8 to 1.2 times the nominal one, so that bands
    may overlap. `none`: exactly the lengths, as always with `items`. Default: `bands` with a
    generator."""
    samples: Annotated[int, Field(gt=0, le=MAX_SAMPLES)] | None = Field(default=None, examples=[25])
    """Samples per cell. With `items` all of them, unless given."""
    axes: dict[Name, Axis] = Field(
        default_factory=dict,
        examples=[
            {"separator": {"default": ["none", "comma"], "values": {"none": "", "comma": ","}}}
        ],
    )
    """What the task varies besides length, each thing under its name; the prompt, and a generator
    that has a parameter of the axis's name, see the value. `separator` is also what
    `{{ sequence }}` is written with."""
    prompt: Annotated[
        str,
        Field(
            min_length=1,
            examples=[
                (
                    "How many marks are in row {{ label }}?\n"
                    "Row {{ label }}: {{ sequence }}\n"
                    'Write "{{ phrase }}" and then the number.\n'
                )
            ],
        ),
    ]
    """What is sent: a Jinja2 template. It sees the variables of the item, every axis by its name,
    `sequence` (the row as a text), `symbols` (the row as a list), `length`, `phrase` and `options`.
    Where it writes `next_turn`, a message ends: the model replies, and the next one follows.
    """
    system: Annotated[str, Field(pattern=r"\S")] | None = Field(
        default=None, examples=["You answer in one line."]
    )
    """A system prompt, sent as it is before each prompt; the setting `system` overrides it."""
    answer: Annotated[Answer, Field(examples=["integer"])]
    """One of the types alone, as `answer: integer`, or a mapping with a `type` and what it
    needs."""

    scorer: CodeReference | None = Field(default=None, examples=["marks.py:score"])
    """`file.py:function`, the file relative to the task file: a function that judges replies in
    place of the rules of `answer`; `answer` still gives the phrase and the targets' type. The
    function takes the reply and the item, and returns `correct`, `incorrect` or `unparsed`, or a
    pair of that and a reason.
    """

    statistics: list[Literal["capacity"]] = Field(default_factory=list, examples=[["capacity"]])
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

    def has_condition(self, values: Mapping[str, str]) -> bool:
        """Whether the task has exactly these axes, in this order, with these values."""
        return list(values) == list(self.axes) and all(
            value in self.axes[axis].values for axis, value in values.items()
        )

    def digest(self) -> str:
        """Hash of what determines prompts and verdicts: no defaults or descriptions."""
        return _digest(self.model_dump(mode="json"))

    def digest_as_written(self) -> str:
        """The digest of a manifest's spec, whose program may not have had all fields of today."""
        return _digest(self.model_dump(mode="json", exclude_unset=True))


_DESCRIBED = ("title", "source", "unit", "lengths", "spread", "samples", "statistics")


def _digest(fields: Mapping[str, Any]) -> str:
    content = {name: value for name, value in fields.items() if name not in _DESCRIBED}
    axes = content.get("axes", {}).items()
    content["axes"] = {name: {**axis, "default": []} for name, axis in axes}
    answer = content["answer"].items()
    content["answer"] = {name: value for name, value in answer if value is not None}
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
