"""The form of a task's answer, as its file gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Target: TypeAlias = int | float | str

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OWNERS = {
    "tolerance": "number",
    "relative_tolerance": "number",
    "options": "choice",
    "letters": "choice",
    "ordered": "list",
}
"""Field of an answer -> the only type that has it."""


class Part(BaseModel):
    """A part of a task file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def folded(text: str) -> str:
    """`text` in one case and with single spaces, for a comparison of options."""
    return " ".join(text.casefold().split())


class Answer(Part):
    """The type of the answer, and the words before it."""

    type: Literal["integer", "number", "symbol", "text", "choice", "list"]
    """`integer`: a whole number. `number`: a number with a decimal point, within a tolerance.
    `symbol`: one token without spaces; it may stand inside a sentence. `text`: everything after the
    answer phrase, word for word. `choice`: one of `options`. `list`: items between commas.
    """
    phrase: Annotated[str, Field(min_length=3, pattern=r"\S")] = "Final answer:"
    """The fixed words that come before the answer on the reply's last line."""
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """For `number`: the largest allowed difference from the target."""
    relative_tolerance: Annotated[float, Field(ge=0, lt=1)] | None = None
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
    ) = None
    """For `choice`: the texts to choose from."""
    letters: bool | None = None
    """For `choice`: whether the letters A, B, C … stand for the options in their order, as
    `{{ options }}` shows them. A reply may then give the letter, the text, or both.
    """
    ordered: bool | None = None
    """For `list`: whether the order of the items counts. Default: `true`."""

    @model_validator(mode="after")
    def _fields_fit_the_type(self) -> Answer:
        for name, owner in _OWNERS.items():
            if getattr(self, name) is not None and self.type != owner:
                msg = f"{name!r} goes with 'type: {owner}', not with {self.type!r}"
                raise ValueError(msg)
        if self.type != "choice":
            return self
        if self.options is None:
            msg = "'type: choice' needs 'options', a list of texts"
            raise ValueError(msg)
        names = [folded(option) for option in self.options]
        if len(set(names)) < len(names):
            msg = "two options differ in nothing but case or spaces"
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

    def fits(self, target: object) -> bool:
        """Whether a target read from a journal has the answer's type."""
        if self.type == "integer":
            return isinstance(target, int)
        return isinstance(target, float | int if self.type == "number" else str)


def target_of(given: Target | Sequence[str], answer: Answer) -> Target:
    """The target of a sample: the items of a list joined by commas, a number as a float."""
    if answer.type == "number" and isinstance(given, int):
        return float(given)
    return given if isinstance(given, int | float | str) else ", ".join(given)
