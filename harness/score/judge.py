"""The verdict on one sample, from its reply and its target.

A pure function, so scoring again from the journal needs no model. A reply without an answer is
never scored as `incorrect`: it has another outcome, with a reason. The one exception is a task that
says `phrase_required`: there a reply with text and without the answer phrase is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from .answers import TYPES, extract, phrases_in
from .extraction import FIRST
from .loops import loop_of
from .markup import without_markup, without_thoughts
from .normal_form import nfc
from .outcomes import FAILURES, Outcome
from .turns import may_end, own_turn
from .verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .answer_type import AnswerForm
    from .verdict import Target

OwnScorer: TypeAlias = "Callable[[str], tuple[Outcome, str]]"
"""A task's own scorer for one sample: reply without thinking -> outcome and reason."""


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
    target: Target,
    answer: AnswerForm,
    accept: Sequence[str] = (),
    scorer: OwnScorer | None = None,
    again: re.Pattern[str] | None = None,
) -> Verdict:
    """The verdict on one sample. Never raises, whatever `text` is, unless a `scorer` does.

    `accept` has further right answers of a symbol, a text or a choice; `again` is that of
    `own_turn`. `failure` is the name of the outcome that is recorded instead of a reply; any other
    text is an error. A cut-off reply is judged only if it has the phrase and a complete answer. A
    refusal in words counts only if no answer was read. A text or a list without the phrase, or one
    that stands first, could be any words, so there a refusal counts unless the answer is correct.
    Where nobody knows why a reply ended, a wrong answer without the phrase may be half of a reply,
    and is none.

    A task's own `scorer` judges what is left: a whole reply with text besides its thinking.
    """
    if failure is not None:
        known = failure in FAILURES
        return Verdict(Outcome.named(failure) if known else Outcome.ERROR, why=failure)
    if refusal:
        return Verdict(Outcome.REFUSED, why=refusal)
    if finish_reason == "content_filter":
        return Verdict(Outcome.REFUSED, why="a content filter")
    length = len(text)
    if may_end(text, again):
        text = own_turn(text, answer, (target, *accept), again)
    cut_off = finish_reason == "length" and len(text) == length
    if scorer is not None:
        return _judge_by(scorer, text, cut_off=cut_off)
    extracted = extract(text, answer, first_line=cut_off)
    if cut_off and not (extracted.by_phrase and extracted.whole):
        return _cut_off(text, "cut off before the answer was whole")
    kind = TYPES[answer.type]
    by_phrase = extracted.by_phrase and answer.read != FIRST
    sure = extracted.value is not None and (by_phrase or not kind.free)
    if answer.phrase_required and _lacks_phrase(text, answer) and not _refuses(text):
        return Verdict(Outcome.INCORRECT, why="without the answer phrase")
    verdict = (
        Verdict(Outcome.UNPARSED, why=extracted.why)
        if extracted.value is None
        else kind.compare(extracted, text, (target, *accept), answer)
    )
    if not sure and verdict.outcome is not Outcome.CORRECT and _refuses(text):
        return Verdict(Outcome.REFUSED, why="a refusal in words")
    if finish_reason == "other" and not by_phrase and verdict.outcome is Outcome.INCORRECT:
        return Verdict(Outcome.UNPARSED, why="ended for a reason that is not known, and no phrase")
    return verdict


def _lacks_phrase(reply: str, answer: AnswerForm) -> bool:
    """Whether a reply has text and no answer phrase, with which its prompt does not end either."""
    text = nfc(without_thoughts(reply))
    in_prompt = answer.read == FIRST
    return (
        bool(text.strip()) and not in_prompt and not phrases_in(text, without_markup(text), answer)
    )


def _judge_by(scorer: OwnScorer, text: str, *, cut_off: bool) -> Verdict:
    if cut_off:
        return _cut_off(text, "cut off")
    reply = without_thoughts(text).strip()
    if not reply:
        return Verdict(Outcome.UNPARSED, why="nothing but thinking" if text.strip() else "no text")
    outcome, why = scorer(reply)
    if outcome is not Outcome.CORRECT and _refuses(text):
        return Verdict(Outcome.REFUSED, why="a refusal in words")
    return Verdict(outcome, why=why)


def _cut_off(text: str, why: str) -> Verdict:
    if unit := loop_of(text):
        why = f"cut off while it repeated {unit.strip() or unit!r}"
    return Verdict(Outcome.TRUNCATED, why=why)


def _refuses(text: str) -> bool:
    opening = without_thoughts(text).lstrip(' \n\t*_#>"')[:_OPENING].replace("\u2019", "'")
    return bool(_REFUSAL.match(opening))
