"""What a reply that was judged not correct may show of the model, apart from what it was judged.

The verdict on a reply never changes here. A length is claimed only where it stays about the same
under the readings that the replies allow, see `analysis.limits`.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

from .choices import folded
from .integers import WORDS
from .loops import loop_of
from .markup import phrase_pattern, without_markup, without_thoughts
from .outcomes import Cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answer_type import AnswerForm
    from .verdict import Target, Verdict

_MOST_VALUES = 3
"""A reply that names more numbers says nothing by naming the right one."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?!\w|\.\d)|[^\W\d_]+")
_FILLING = re.compile(r"[\s\"'`*]+")
_TOKEN = re.compile(r"[^\s\"'`,;:()\[\].!?]+")


class Reading(IntEnum):
    """How else a reply can be counted."""

    AS_JUDGED = 0
    MAY_BE_RIGHT = 1
    """It cannot be read, and the right answer is in it."""
    UNREAD = 2
    """It cannot be read, and the right answer is not in it."""
    LEFT_OUT = 3
    """It was cut off or refused, or there was no room for it: it may have become right."""


def reading_of(
    reply: str,
    verdict: Verdict,
    answer: AnswerForm,
    targets: Sequence[Target],
    repeated: object = None,
) -> Reading:
    """How else the reply can be counted. `targets` are all right answers, and `repeated` is the
    symbol that the row repeats, if it does.
    """
    cause = verdict.outcome.about.cause
    if cause in (None, Cause.SIGHT):
        return Reading.AS_JUDGED
    if cause is Cause.ROOM:
        text = without_thoughts(reply).strip()
        lost = _is_lost_loop(text, repeated) or _has_left(text, answer, targets)
        return Reading.AS_JUDGED if lost else Reading.LEFT_OUT
    if cause is not Cause.FORM:
        return Reading.LEFT_OUT
    is_named = _is_named(without_markup(without_thoughts(reply)), answer, targets)
    return Reading.MAY_BE_RIGHT if is_named else Reading.UNREAD


def _is_named(text: str, answer: AnswerForm, targets: Sequence[Target]) -> bool:
    """Whether an unread reply names a right answer, and next to nothing else of its kind."""
    if answer.type in ("integer", "number"):
        values = {_value(match[0]) for match in _NUMBER.finditer(text)} - {None}
        return len(values) <= _MOST_VALUES and not values.isdisjoint(targets)
    if answer.type == "choice":
        named = [option for option in answer.options or () if _has_words(text, option)]
        return len(named) == 1 and named[0] in targets
    if answer.type == "symbol":
        right = set(map(str, targets))
        tokens = {token for token in _TOKEN.findall(text) if token not in ("a", "A", "I")}
        alike = {token for token in tokens if len(token) in set(map(len, right))}
        return bool(alike & right) and len(alike) == 1
    return any(_has_words(text, str(target)) for target in targets)


def _value(text: str) -> float | None:
    """The number that a token of `_NUMBER` is; `None` for a word that is no number."""
    if not text[-1].isdigit():
        return WORDS.get(text.casefold())
    return float(text.replace(",", ""))


def _has_words(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(folded(words))}(?!\w)", folded(text)) is not None


def _is_lost_loop(text: str, repeated: object) -> bool:
    """Whether a cut-off reply loops, other than in an echo of a row of `repeated` symbols."""
    unit = loop_of(text)
    is_echo = isinstance(repeated, str) and set(_TOKEN.findall(unit)) == {repeated}
    return bool(unit) and not is_echo


def _has_left(text: str, answer: AnswerForm, targets: Sequence[Target]) -> bool:
    """Whether a cut-off copy has already left its target: the words after the answer phrase."""
    if answer.type not in ("text", "list"):
        return False
    pattern, _ = phrase_pattern(answer.phrase)
    phrases = list(pattern.finditer(text))
    if not phrases:
        return False
    written = _bare(text[phrases[-1].end() :])
    return not any(_bare(str(target)).startswith(written) for target in targets)


def _bare(text: str) -> str:
    return _FILLING.sub("", text.casefold())
