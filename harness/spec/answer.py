"""The form of a task's answer, as its file gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_serializer,
    model_validator,
)

from eyechart.harness.score.answer_type import AnswerType
from eyechart.harness.score.answers import TYPES
from eyechart.harness.score.choices import LETTERS, folded
from eyechart.harness.score.integers import is_too_long
from eyechart.harness.score.verdict import Target

__all__ = [
    "LETTERS",
    "PHRASE",
    "TYPES",
    "Answer",
    "Part",
    "Target",
    "folded",
    "is_too_long",
    "phrase_of",
]

PHRASE = "Final answer:"
"""The answer phrase of a task that names none."""

if TYPE_CHECKING:
    AnswerName: TypeAlias = str
else:
    AnswerName = Literal[tuple(TYPES)]
_OWNERS = {
    field: [kind.name for kind in TYPES.values() if field in kind.fields]
    for field in dict.fromkeys(field for kind in TYPES.values() for field in kind.fields)
}
"""Field of an answer -> the types that have it."""


class Part(BaseModel):
    """A part of a task file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


_Phrase = Annotated[str, Field(min_length=3, pattern=r"\S")]


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _or_one(schema: dict[str, Any]) -> None:
    """A list of phrases, or one phrase alone."""
    several = {name: schema.pop(name) for name in ("type", "items", "minItems")}
    schema["anyOf"] = [several["items"], several]
    schema["default"] = PHRASE


def phrase_of(given: object) -> str:
    """The phrase that the `answer` of a task file asks for, whether or not it is checked."""
    phrase = given.get("phrase") if isinstance(given, dict) else None
    first = phrase[0] if isinstance(phrase, list) and phrase else phrase
    return first if isinstance(first, str) and first else PHRASE


class Answer(Part):
    """The type of the answer, and the words before it."""

    type: Annotated[
        AnswerName,
        Field(
            description=" ".join(f"`{kind.name}`: {kind.meaning}." for kind in TYPES.values()),
            examples=["integer"],
        ),
    ]
    phrase: Annotated[tuple[_Phrase, ...], Field(min_length=1), BeforeValidator(_listed)] = Field(
        default=(PHRASE,), examples=["Answer ="], json_schema_extra=_or_one
    )
    """The fixed words that come before the answer on the reply's last line. Of a list the first is
    asked for, and the others are read as it is, such as the phrase in another language.
    """
    phrase_required: bool | None = Field(default=None, examples=[True])
    """`true` where a reply without the phrase is wrong, as some benchmarks count it. Default: it is
    read without the phrase if it can be, and else `unparsed`.
    """
    phrase_asked: Literal[False] | None = Field(default=None, examples=[False])
    """`false` where the prompts never ask for the phrase, as in replies that were recorded
    elsewhere: prompts are then shown as they were, and replies are read without the phrase too.
    """
    read: Literal["first", "last"] | None = Field(default=None, examples=["last"])
    """Which answer of a reply is read: the `last` one, or the one that stands `first`, where the
    reply goes on with what the prompt began. Default: `first` where the prompt ends with the
    phrase.
    """
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, examples=[0.5]
    )
    """For `number`: the largest allowed difference from the target."""
    relative_tolerance: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        default=None, examples=[0.01]
    )
    """For `number`: the largest allowed difference, as a share of the target. If both tolerances
    are given, the larger difference holds; if neither is, only rounding in the tenth digit is
    allowed.
    """
    options: (
        Annotated[
            tuple[Annotated[str, Field(pattern=r"\S")], ...],
            Field(min_length=2),
            BeforeValidator(_frozen),
        ]
        | None
    ) = Field(default=None, examples=[["red", "green", "not sure"]])
    """For `choice`: the texts to choose from."""
    letters: bool | None = Field(default=None, examples=[True])
    """For `choice`: whether the letters A, B, C … stand for the options in their order, as
    `{{ options }}` shows them. A reply may then give the letter, the text, or both.
    """
    ordered: bool | None = Field(default=None, examples=[False])
    """For `list`: whether the order of the items counts. Default: `true`."""
    item_separator: Annotated[str, Field(min_length=1, max_length=10)] | None = Field(
        default=None, examples=[";"]
    )
    """For `list`: what stands between the items, in targets and in replies; a space is any white
    space. Default: a comma.
    """
    case: bool | None = Field(default=None, examples=[False])
    """For `symbol`, `code` and `text`: whether upper and lower case differ. Default: `true`."""

    @field_serializer("phrase")
    def _one_phrase_alone(self, phrase: tuple[str, ...]) -> str | tuple[str, ...]:
        return phrase if len(phrase) > 1 else phrase[0]

    @model_validator(mode="after")
    def _fields_fit_the_type(self) -> Answer:
        for name, owners in _OWNERS.items():
            if getattr(self, name) is not None and self.type not in owners:
                known = " or ".join(f"'type: {owner}'" for owner in owners)
                msg = f"{name!r} goes with {known}, not with {self.type!r}"
                raise ValueError(msg)
        for name in self.kind.needed:
            if getattr(self, name) is None:
                msg = f"'type: {self.type}' needs {name!r}, a list of texts"
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _options_can_be_told_apart(self) -> Answer:
        options = self.options or ()
        names = [folded(option) for option in options]
        for place, name in enumerate(names):
            if (first := names.index(name)) < place:
                pair = f"{options[first]!r} and {options[place]!r}"
                msg = f"options {pair} are the same but for case, spaces or Unicode normal form"
                raise ValueError(msg)
        if self.letters:
            if len(names) > len(LETTERS):
                msg = f"letters name at most {len(LETTERS)} options, not {len(names)}"
                raise ValueError(msg)
            letters = dict(zip(LETTERS.lower(), names, strict=False))
            if any(letters.get(name, name) != name for name in names):
                msg = "an option is the letter of another one; leave 'letters' out"
                raise ValueError(msg)
        return self

    @property
    def first_phrase(self) -> str:
        """The phrase that is asked for."""
        return self.phrase[0]

    @property
    def shown_options(self) -> str:
        """The options as `{{ options }}` shows them, a line each, with their letters if any."""
        options = self.options or ()
        if not self.letters:
            return "\n".join(options)
        pairs = zip(LETTERS, options, strict=False)
        return "\n".join(f"{letter}) {option}" for letter, option in pairs)

    def given(self) -> dict[str, object]:
        """The fields that the file gives, and the answer phrase."""
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def kind(self) -> AnswerType:
        """What the program knows about the type."""
        return TYPES[self.type]
