"""What a reply that was judged not correct may show of the model, apart from what it was judged.

The verdict on a reply never changes here. A length is claimed only where it stays about the same
under the readings that the replies allow, see `analysis.limits`.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

from .answers import TYPES
from .extraction import TOKEN
from .loops import loop_of
from .markup import phrase_pattern, without_markup, without_thoughts
from .normal_form import nfc
from .outcomes import Cause
from .turns import own_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answer_type import AnswerForm
    from .verdict import Target, Verdict

_FILLING = re.compile(r"[\s\"'`*]+")


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
        text = nfc(without_thoughts(reply)).strip()
        lost = _is_lost_loop(text, repeated) or _has_left(text, answer, targets)
        return Reading.AS_JUDGED if lost else Reading.LEFT_OUT
    if cause is not Cause.FORM:
        return Reading.LEFT_OUT
    text = without_markup(nfc(without_thoughts(own_turn(reply, answer, targets))))
    is_named = TYPES[answer.type].is_named(text, targets, answer)
    return Reading.MAY_BE_RIGHT if is_named else Reading.UNREAD


def _is_lost_loop(text: str, repeated: object) -> bool:
    """Whether a cut-off reply loops, other than in an echo of a row of `repeated` symbols."""
    unit = loop_of(text)
    is_echo = isinstance(repeated, str) and set(TOKEN.findall(unit)) == {nfc(repeated)}
    return bool(unit) and not is_echo


def _has_left(text: str, answer: AnswerForm, targets: Sequence[Target]) -> bool:
    """Whether a cut-off copy has already left its target: the words after the answer phrase."""
    if not TYPES[answer.type].free:
        return False
    pattern, _ = phrase_pattern(nfc(answer.phrase))
    phrases = list(pattern.finditer(text))
    if not phrases:
        return False
    written = _bare(text[phrases[-1].end() :])
    return not any(_bare(str(target)).startswith(written) for target in targets)


def _bare(text: str) -> str:
    return _FILLING.sub("", nfc(text).casefold())
