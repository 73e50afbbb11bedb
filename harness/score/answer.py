"""The form of a correct reply, as far as scoring needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

AnswerType: TypeAlias = Literal["integer", "symbol", "text"]


class AnswerForm(Protocol):
    """The type of the answer and the phrase before it, as `harness.spec.Answer` has them."""

    @property
    def type(self) -> AnswerType:
        """The type of the answer."""

    @property
    def phrase(self) -> str:
        """The fixed words before the answer on the reply's last line."""

    def __hash__(self) -> int:
        """Needed to cache the verdicts on short replies."""


@dataclass(frozen=True, slots=True)
class PlainAnswerForm:
    """An `AnswerForm` without a task file."""

    type: AnswerType
    phrase: str
