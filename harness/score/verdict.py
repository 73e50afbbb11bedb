"""A reply and its target -> the verdict on one sample.

A pure function: scoring again from the journal needs no model. What is not an answer is never
scored as a wrong one: it has an outcome of its own, and a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from .extraction import extract, tidy
from .markup import without_thoughts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answer import AnswerForm
    from .extraction import Extracted

Outcome: TypeAlias = Literal[
    "correct", "incorrect", "unparsed", "refused", "truncated", "overflow", "error", "not_run"
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one sample came to."""

    outcome: Outcome
    answer: int | str | None = None
    """What was judged; None where the outcome is neither correct nor incorrect."""
    start: int = 0
    end: int = 0
    """Place of the answer in the reply; 0, 0 if there is none."""
    signed_error: int | None = None
    """Integers: answer - target."""
    similarity: float | None = None
    """Texts: 1 - edit distance / length of the longer one, in words."""
    first_divergence: int | None = None
    """Texts: index of the first word that differs; None if all agree."""
    ended: Literal["early", "late"] | None = None
    """Texts: fewer or more words than the target."""
    why: str = ""
    """Reason of an outcome that is neither correct nor incorrect."""

    @property
    def absolute_error(self) -> int | None:
        """Distance from the target, for integers."""
        return None if self.signed_error is None else abs(self.signed_error)


_UNABLE = (
    r"(?:can(?: ?not|'t)|won't|will not|(?:am|'m) (?:unable|not able) to) (?:\w+ )?"
    r"(?:help|assist|comply|fulfill?|provide|answer|engage|continue|participate|do (?:that|this))\b"
)
_REFUSAL = re.compile(
    r"(?:(?:(?:i am|i'm) (?:very |so |really )?sorry|sorry|unfortunately|i apologi[sz]e)[,.; ]*)?"
    rf"(?:but |however,? )?i ?{_UNABLE}"
    rf"|as an ai\b[^.\n]{{0,60}}(?:unable|not able|{_UNABLE})",
    re.IGNORECASE,
)
_OPENING = 200


def judge(
    *,
    text: str,
    finish_reason: str,
    refusal: str | None,
    failure: str | None,
    target: int | str,
    answer: AnswerForm,
) -> Verdict:
    """The verdict on one sample. Raises on no `text`.

    `failure` names what is recorded in place of a reply: "overflow", "refused", or any other error.
    A reply that was cut off is judged only if the phrase and a whole answer came before the cut. A
    refusal in words counts only where no answer could be read; a text that no phrase announces is
    whatever the model said, so there a refusal goes first.
    """
    if failure is not None:
        outcomes: dict[str, Outcome] = {"overflow": "overflow", "refused": "refused"}
        return Verdict(outcomes.get(failure, "error"), why=failure)
    if refusal:
        return Verdict("refused", why=refusal)
    if finish_reason == "content_filter":
        return Verdict("refused", why="a content filter")
    cut_off = finish_reason == "length"
    found = extract(text, answer, first_line=cut_off)
    if cut_off and not (found.by_phrase and found.whole):
        return Verdict("truncated", why="cut off before the answer was whole")
    sure = found.value is not None and (found.by_phrase or answer.type != "text")
    verdict = _unread(found) if found.value is None else _judge_answer(found, text, target, answer)
    if not sure and verdict.outcome != "correct" and _refuses(text):
        return Verdict("refused", why="a refusal in words")
    return verdict


def _unread(found: Extracted) -> Verdict:
    return Verdict("unparsed", why=found.why)


def _judge_answer(found: Extracted, reply: str, target: int | str, answer: AnswerForm) -> Verdict:
    value, start, end = found.value, found.start, found.end
    if answer.type == "integer" and isinstance(value, int):
        error = value - int(target)
        return Verdict("incorrect" if error else "correct", value, start, end, signed_error=error)
    if answer.type == "symbol":
        right = str(target) in (value, reply[start:end])
        return Verdict("correct" if right else "incorrect", value, start, end)
    return _judge_text(str(value), tidy(str(target)), start, end)


def _judge_text(said: str, target: str, start: int, end: int) -> Verdict:
    words, wanted = said.split(), target.split()
    if words == wanted:
        return Verdict("correct", said, start, end, similarity=1.0)
    same = _common_prefix(words, wanted)
    distance = edit_distance(words, wanted)
    late_or_early: Literal["early", "late"] = "early" if len(words) < len(wanted) else "late"
    return Verdict(
        "incorrect",
        said,
        start,
        end,
        similarity=1 - distance / max(len(words), len(wanted)),
        first_divergence=same,
        ended=None if len(words) == len(wanted) else late_or_early,
    )


def _refuses(text: str) -> bool:
    opening = without_thoughts(text).lstrip(' \n\t*_#>"')[:_OPENING].replace("\u2019", "'")
    return bool(_REFUSAL.match(opening))


def _common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))


def edit_distance(left: Sequence[str], right: Sequence[str]) -> int:
    """Levenshtein's distance, in items.

    Myers 1999, in Hyyrö's form (2003): a column of the table is two integers with a bit a row, so
    ten thousand words against ten thousand take a tenth of a second. What both begin or end with
    is left out first.
    """
    start = _common_prefix(left, right)
    left, right = left[start:], right[start:]
    tail = _common_prefix(left[::-1], right[::-1])
    left, right = left[: len(left) - tail], right[: len(right) - tail]
    if len(left) > len(right):
        left, right = right, left
    if not left:
        return len(right)
    places: dict[str, int] = {}
    for row, item in enumerate(left):
        places[item] = places.get(item, 0) | 1 << row
    last_row = len(left) - 1
    every_row = (1 << len(left)) - 1
    rises, falls, distance = every_row, 0, len(left)
    for item in right:
        equal = places.get(item, 0)
        level = equal | falls
        diagonal = (((equal & rises) + rises) ^ rises) | equal
        up = falls | (every_row & ~(diagonal | rises))
        down = rises & diagonal
        distance += (up >> last_row & 1) - (down >> last_row & 1)
        up = (up << 1 | 1) & every_row
        down = down << 1 & every_row
        rises = down | (every_row & ~(level | up))
        falls = up & level
    return distance
