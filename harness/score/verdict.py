"""The verdict on one sample, from its reply and its target.

A pure function, so scoring again from the journal needs no model. A reply without an answer is
never scored as `incorrect`: it has another outcome, with a reason.
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
    """The outcome of one sample."""

    outcome: Outcome
    answer: int | str | None = None
    """The answer that was read; `None` where the outcome is neither correct nor incorrect."""
    start: int = 0
    end: int = 0
    """The answer is `reply[start:end]`; 0, 0 if there is none."""
    signed_error: int | None = None
    """Integers: answer - target."""
    similarity: float | None = None
    """Texts: 1 - edit distance / length of the longer one, in words."""
    first_divergence: int | None = None
    """Texts: index of the first word that differs; `None` if none does."""
    ended: Literal["early", "late"] | None = None
    """Texts: `early` with fewer words than the target, `late` with more."""
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
    """The verdict on one sample. Never raises, whatever `text` is.

    `failure` is the kind of failure that is recorded instead of a reply: "overflow", "refused" or
    "error". A cut-off reply is judged only if it has the phrase and a complete answer. A refusal in
    words counts only if no answer was read. A text without the phrase could be any words, so there
    a refusal counts unless the text is correct.
    """
    if failure is not None:
        outcomes: dict[str, Outcome] = {"overflow": "overflow", "refused": "refused"}
        return Verdict(outcomes.get(failure, "error"), why=failure)
    if refusal:
        return Verdict("refused", why=refusal)
    if finish_reason == "content_filter":
        return Verdict("refused", why="a content filter")
    cut_off = finish_reason == "length"
    extracted = extract(text, answer, first_line=cut_off)
    if cut_off and not (extracted.by_phrase and extracted.whole):
        return Verdict("truncated", why="cut off before the answer was whole")
    sure = extracted.value is not None and (extracted.by_phrase or answer.type != "text")
    verdict = (
        _unparsed(extracted)
        if extracted.value is None
        else _judge_answer(extracted, text, target, answer)
    )
    if not sure and verdict.outcome != "correct" and _refuses(text):
        return Verdict("refused", why="a refusal in words")
    return verdict


def _unparsed(extracted: Extracted) -> Verdict:
    return Verdict("unparsed", why=extracted.why)


def _judge_answer(
    extracted: Extracted, reply: str, target: int | str, answer: AnswerForm
) -> Verdict:
    value, start, end = extracted.value, extracted.start, extracted.end
    if answer.type == "integer" and isinstance(value, int):
        error = value - int(target)
        return Verdict("incorrect" if error else "correct", value, start, end, signed_error=error)
    if answer.type == "symbol":
        right = str(target) in (value, reply[start:end])
        return Verdict("correct" if right else "incorrect", value, start, end)
    return _judge_text(str(value), tidy(str(target)), start, end)


def _judge_text(text: str, target: str, start: int, end: int) -> Verdict:
    words, target_words = text.split(), target.split()
    if words == target_words:
        return Verdict("correct", text, start, end, similarity=1.0)
    divergence = _common_prefix(words, target_words)
    distance = edit_distance(words, target_words)
    ended: Literal["early", "late"] = "early" if len(words) < len(target_words) else "late"
    return Verdict(
        "incorrect",
        text,
        start,
        end,
        similarity=1 - distance / max(len(words), len(target_words)),
        first_divergence=divergence,
        ended=None if len(words) == len(target_words) else ended,
    )


def _refuses(text: str) -> bool:
    opening = without_thoughts(text).lstrip(' \n\t*_#>"')[:_OPENING].replace("\u2019", "'")
    return bool(_REFUSAL.match(opening))


def _common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))


def edit_distance(left: Sequence[str], right: Sequence[str]) -> int:
    """Levenshtein's distance, in items.

    The bit-parallel algorithm of Myers (1999) as given by Hyyrö (2003): a column of the table is
    two integers with one bit for each row, so 10,000 words against 10,000 take 0.1 s. The common
    beginning and end are removed first.
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
