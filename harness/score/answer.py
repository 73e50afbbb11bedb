"""What a right reply holds, as far as judging must know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

AnswerType: TypeAlias = Literal["integer", "symbol", "text"]


class AnswerForm(Protocol):
    """Any object that has both; `harness.spec.Answer` of a task file does."""

    @property
    def type(self) -> AnswerType:
        """What the answer is."""

    @property
    def phrase(self) -> str:
        """The fixed words before the answer on the reply's last line."""

    def __hash__(self) -> int:
        """Verdicts on short replies are kept by reply, target and form."""


@dataclass(frozen=True, slots=True)
class PlainAnswerForm:
    """An `AnswerForm` where there is no task file."""

    type: AnswerType
    phrase: str
