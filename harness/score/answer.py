"""The form of a correct reply, as far as scoring needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

AnswerType: TypeAlias = Literal["integer", "number", "symbol", "text", "choice", "list"]


class AnswerForm(Protocol):
    """The type of the answer and the phrase before it, as `harness.answer.Answer` has them."""

    @property
    def type(self) -> AnswerType:
        """The type of the answer."""

    @property
    def phrase(self) -> str:
        """The fixed words before the answer on the reply's last line."""

    @property
    def tolerance(self) -> float | None:
        """Of a number: by how much it may differ from the target."""

    @property
    def relative_tolerance(self) -> float | None:
        """Of a number: by what share of the target it may differ from it."""

    @property
    def options(self) -> tuple[str, ...] | None:
        """Of a choice: the texts to choose from."""

    @property
    def letters(self) -> bool | None:
        """Of a choice: whether A, B, C … stand for the options."""

    @property
    def ordered(self) -> bool | None:
        """Of a list: whether the order counts; `None` as `True`."""

    def __hash__(self) -> int:
        """Needed to cache the verdicts on short replies."""


@dataclass(frozen=True, slots=True)
class PlainAnswerForm:
    """An `AnswerForm` without a task file."""

    type: AnswerType
    phrase: str
    tolerance: float | None = None
    relative_tolerance: float | None = None
    options: tuple[str, ...] | None = None
    letters: bool | None = None
    ordered: bool | None = None
