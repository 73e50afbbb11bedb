"""What a reply that was judged not correct may show of the model, apart from what it was judged.

The verdict on a reply never changes here. A length is claimed only where it stays about the same
under the readings that the replies allow, see `analysis.limits`.
"""

from __future__ import annotations

import re
import string
from enum import IntEnum
from itertools import islice
from typing import TYPE_CHECKING

from .answers import TYPES, phrases_in
from .extraction import FIRST, TOKEN
from .loops import loop_of
from .markup import edges, without_markup, without_thoughts
from .normal_form import nfc
from .outcomes import Cause
from .turns import may_end, own_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answer_type import AnswerForm
    from .verdict import Target, Verdict

_FILLING = re.compile(r"[\s\"'`*]+")
_WORD = re.compile(r"\w+")
_NO_LETTERS = str.maketrans("", "", string.punctuation + string.whitespace)
_WORD_BEFORE = re.compile(r"(\w+)[^\w\n]*\Z")
_WORD_AFTER = re.compile(r"[^\w\n]*(\w+)")
_GOES_ON = re.compile(r"[^\w\n.!?(\"]*\w")
_COMMA = re.compile(r"[^\w\n]*,")
_LINE_BREAK = re.compile(r"\s*\n\s*")
_SPACES = re.compile(r"[^\S\n]+")
_MOST_TRIED = 8
_NEAR = 80
"""Characters beside a right answer in which the next word is looked for."""


class Recount(IntEnum):
    """How else a reply can be counted."""

    AS_JUDGED = 0
    MAY_BE_RIGHT = 1
    """The right answer is in it, and it cannot be read, or was read as a wrong one among many such,
    see `analysis.right_inside`."""
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
) -> Recount:
    """How else the reply can be counted. `targets` are all right answers, and `repeated` is the
    symbol that the row repeats, if it does.
    """
    cause = verdict.outcome.about.cause
    if cause is None:
        return Recount.AS_JUDGED
    if cause is Cause.SIGHT:
        is_inside = has_right_answer(reply, verdict, answer, targets)
        return Recount.MAY_BE_RIGHT if is_inside else Recount.AS_JUDGED
    if cause is Cause.ROOM:
        text = nfc(without_thoughts(reply)).strip()
        lost = _is_lost_loop(text, repeated) or _has_left(text, answer, targets)
        return Recount.AS_JUDGED if lost else Recount.LEFT_OUT
    if cause is not Cause.FORM:
        return Recount.LEFT_OUT
    text = without_markup(nfc(without_thoughts(own_turn(reply, answer, targets))))
    is_named = TYPES[answer.type].is_named(text, targets, answer)
    return Recount.MAY_BE_RIGHT if is_named else Recount.UNREAD


def has_right_answer(
    reply: str, verdict: Verdict, answer: AnswerForm, targets: Sequence[Target]
) -> bool:
    """Whether a reply that was read as a wrong answer names a right one, whatever its case and
    markup, and next to nothing else of its kind. It counts only after the answer phrase if there is
    one, since before it there are thoughts. Nothing was read where the phrase is required or the
    task has a scorer: there a reply is wrong for another reason.
    """
    if verdict.answer is None or not _may_have(reply, targets):
        return False
    kind = TYPES[answer.type]
    text = nfc(_said(reply, answer, targets).casefold())
    folded = [nfc(one.casefold()) if isinstance(one, str) else one for one in targets]
    if not kind.free:
        return kind.is_named(text, folded, answer)
    text, read = _in_lines(text), _in_lines(nfc(str(verdict.answer).casefold()))
    right = [_in_lines(without_markup(str(one))) for one in folded]
    return any(
        _stands_in(text, one) and not (read.startswith(one) and _goes_on(one, read[len(one) :]))
        for one in right
    )


def _may_have(reply: str, targets: Sequence[Target]) -> bool:
    """Whether the letters and digits of a right answer are in a reply; found fast."""
    letters = ""
    for one in targets:
        if isinstance(one, str):
            letters = letters or _letters(reply)
            if _letters(one) in letters:
                return True
        elif str(one).removesuffix(".0") in reply or f"{one:,}".removesuffix(".0") in reply:
            return True
    return False


def _letters(text: str) -> str:
    return nfc(text).casefold().translate(_NO_LETTERS)


def _said(reply: str, answer: AnswerForm, targets: Sequence[Target]) -> str:
    """The part of a reply that can be its answer, without markup."""
    turn = own_turn(reply, answer, targets) if may_end(reply) else reply
    text = nfc(without_thoughts(turn))
    bare = without_markup(text)
    if answer.read == FIRST:
        return bare.lstrip().partition("\n")[0]
    after = (bare[end:] for _, end in reversed(phrases_in(text, bare, answer)))
    return next(filter(str.strip, after), bare)


def _in_lines(text: str) -> str:
    """`text` with one space between words, and its lines."""
    return _LINE_BREAK.sub("\n", _SPACES.sub(" ", text)).strip()


def _stands_in(text: str, right: str) -> bool:
    """Whether `right` stands in a text as whole words and is no part of a longer row: neither
    beside one of its own words, nor at the beginning of a text that goes on.
    """
    own = set(_WORD.findall(right))
    if not own or len(right) == 1:
        return False
    before, after = edges(right)
    found = re.finditer(f"{before}{re.escape(right)}{after}", text)
    for match in islice(found, _MOST_TRIED):
        start, end = match.span()
        beside = {
            word[1]
            for word in (
                _WORD_BEFORE.search(text[max(0, start - _NEAR) : start]),
                _WORD_AFTER.match(text[end : end + _NEAR]),
            )
            if word
        }
        is_begun = not _WORD.search(text[:start]) and _goes_on(right, text[end : end + _NEAR])
        if not is_begun and own.isdisjoint(beside):
            return True
    return False


def _goes_on(right: str, rest: str) -> bool:
    """Whether the text after a right answer may be more of the same row or list. After several
    words without a comma, a comma begins something else.
    """
    is_apart = " " in right and "," not in right and _COMMA.match(rest)
    return not is_apart and _GOES_ON.match(rest) is not None


def _is_lost_loop(text: str, repeated: object) -> bool:
    """Whether a cut-off reply loops, other than in an echo of a row of `repeated` symbols."""
    unit = loop_of(text)
    is_echo = isinstance(repeated, str) and set(TOKEN.findall(unit)) == {nfc(repeated)}
    return bool(unit) and not is_echo


def _has_left(text: str, answer: AnswerForm, targets: Sequence[Target]) -> bool:
    """Whether a cut-off copy has already left its target: the words after the answer phrase."""
    if not TYPES[answer.type].free:
        return False
    phrases = phrases_in(text, without_markup(text), answer)
    if not phrases:
        return False
    written = _bare(text[phrases[-1][1] :])
    return not any(_bare(str(target)).startswith(written) for target in targets)


def _bare(text: str) -> str:
    return _FILLING.sub("", nfc(text).casefold())
