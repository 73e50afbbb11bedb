"""The outcomes of a sample: one entry each, from which all lists, tables and colours follow.

An outcome is added by one entry of `Outcome`. The order of the entries is the order of the columns
in all tables. This module imports nothing of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


class Cause(StrEnum):
    """Why a reply is not correct; a text, its name in all files."""

    said: str
    """What happened to the replies, after their number."""

    SIGHT = "sight", "wrong"
    FORM = "form", "not readable"
    ROOM = "room", "cut off"
    REFUSAL = "refusal", "refused"
    WINDOW = "window", "too long for the window"
    ERROR = "error", "without a reply"

    def __new__(cls, name: str, said: str) -> Self:
        """A member whose value is its name."""
        member = str.__new__(cls, name)
        member._value_, member.said = name, said
        return member


@dataclass(frozen=True, slots=True)
class OutcomeFacts:
    """What the program knows about an outcome."""

    letter: str
    """One character for each sample in `verdicts.json`; no two outcomes share one."""
    ink: int
    """Its place in the series colours of the page, from 1; 0 is grey."""
    meaning: str
    """What happened, for the documentation."""
    cause: Cause | None = None
    """Why the reply is not correct, unless it shows another cause, see `readings`."""
    answered: bool = False
    """Whether an answer was read, or a scorer of the task found one."""
    judged: bool = False
    """Whether a whole reply was read: a scorer of a task may return it, and Inspect counts it as
    right or wrong. Inspect leaves the others unscored."""
    failure: bool = False
    """Whether the journal can record it in place of a reply."""
    scored: bool = True
    """Whether it counts in `n`."""
    recorded: bool = True
    """Whether the sample has a record."""
    inspect_reason: str = ""
    """Inspect's name for the reason; empty: the name of the outcome."""


_UNPARSED = "the reply has no answer that can be read: none after the phrase, two numbers, a range"
_OVERFLOW = (
    "the prompt and a right reply have no room in the window of the model, or the reply would be "
    "longer than the model gives"
)


class Outcome(StrEnum):
    """The outcome of a sample; a text, its name in all files."""

    about: OutcomeFacts
    place: int
    """Its place among all outcomes, which tables of samples have."""

    CORRECT = "correct", OutcomeFacts("c", 1, "the answer is right", answered=True, judged=True)
    INCORRECT = (
        "incorrect",
        OutcomeFacts("i", 2, "the answer is wrong", Cause.SIGHT, answered=True, judged=True),
    )
    UNPARSED = (
        "unparsed",
        OutcomeFacts(
            "u", 5, _UNPARSED, Cause.FORM, judged=True, inspect_reason="invalid_response_format"
        ),
    )
    REFUSED = (
        "refused",
        OutcomeFacts(
            "r",
            4,
            "the model or a filter refused",
            Cause.REFUSAL,
            failure=True,
            inspect_reason="refusal",
        ),
    )
    TRUNCATED = (
        "truncated",
        OutcomeFacts("t", 6, "the reply was cut off at its most tokens", Cause.ROOM),
    )
    OVERFLOW = "overflow", OutcomeFacts("o", 3, _OVERFLOW, Cause.WINDOW, failure=True)
    ERROR = (
        "error",
        OutcomeFacts("e", 0, "there is no reply", Cause.ERROR, failure=True, scored=False),
    )
    NOT_RUN = (
        "not_run",
        OutcomeFacts(".", 0, "the sample was not asked", scored=False, recorded=False),
    )

    def __new__(cls, name: str, about: OutcomeFacts) -> Self:
        """A member whose value is its name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.about, member.place = about, len(cls.__members__)
        return member

    @classmethod
    def named(cls, name: str) -> Outcome:
        """The outcome with a name; raises `KeyError` if there is none."""
        return cls[name.upper()]


def _names(wanted: Callable[[OutcomeFacts], bool] = lambda _: True) -> tuple[str, ...]:
    return tuple(outcome.value for outcome in Outcome if wanted(outcome.about))


OUTCOMES = _names()
"""The names of all outcomes, in their order."""
RECORDED = _names(lambda about: about.recorded)
JUDGED = _names(lambda about: about.judged)
FAILURES = _names(lambda about: about.failure)
NOT_SCORED = _names(lambda about: not about.scored)
SCORED_PLACES = [outcome.place for outcome in Outcome if outcome.about.scored]
ANSWERED = _names(lambda about: about.answered)
UNANSWERED = _names(lambda about: about.scored and not about.answered)
"""Outcomes that are scored although no answer was read."""
