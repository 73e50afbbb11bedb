"""The verdict on one sample, from its reply and its target.

A pure function, so scoring again from the journal needs no model. A reply without an answer is
never scored as `incorrect`: it has another outcome, with a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from .extraction import extract, tidy, tidy_items
from .lists import SEPARATOR, shared
from .markup import without_thoughts
from .outcomes import FAILURES, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .answer import AnswerForm
    from .extraction import Extracted

Target: TypeAlias = int | float | str
Scorer: TypeAlias = "Callable[[str, Target], tuple[Outcome, str]]"
"""A task's own scorer: reply without thinking, and target -> outcome and reason."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one sample."""

    outcome: Outcome
    answer: int | float | str | None = None
    """The answer that was read; `None` where the outcome is neither correct nor incorrect."""
    start: int = 0
    end: int = 0
    """The answer is `reply[start:end]`; 0, 0 if there is none."""
    signed_error: float | None = None
    """Integers and numbers: answer - target; an int for integers."""
    similarity: float | None = None
    """Texts and ordered lists: 1 - edit distance / length of the longer one, in words or items.
    Lists without order: shared items / length of the longer one."""
    first_divergence: int | None = None
    """Texts and ordered lists: index of the first word or item that differs; `None` if none
    does."""
    ended: Literal["early", "late"] | None = None
    """Texts and lists: `early` with fewer words or items than the target, `late` with more."""
    why: str = ""
    """Reason of an outcome that is neither correct nor incorrect, or of a task's own scorer."""

    @property
    def absolute_error(self) -> float | None:
        """Distance from the target, for integers and numbers."""
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
_ROUNDING = 1e-9
"""Share of a number by which floats may differ that stand for the same decimal number."""


def judge(
    *,
    text: str,
    finish_reason: str,
    refusal: str | None,
    failure: str | None,
    target: Target,
    answer: AnswerForm,
    accept: Sequence[str] = (),
    scorer: Scorer | None = None,
) -> Verdict:
    """The verdict on one sample. Never raises, whatever `text` is, unless a `scorer` does.

    `accept` has further right answers of a symbol, a text or a choice. `failure` is the name of the
    outcome that is recorded instead of a reply; any other text is an error. A cut-off reply is
    judged only if it has the phrase and a complete answer. A refusal in words counts only if no
    answer was read. A text or a list without the phrase could be any words, so there a refusal
    counts unless the answer is correct.

    A task's own `scorer` judges what is left: a whole reply with text besides its thinking.
    """
    if failure is not None:
        known = failure in FAILURES
        return Verdict(Outcome.named(failure) if known else Outcome.ERROR, why=failure)
    if refusal:
        return Verdict(Outcome.REFUSED, why=refusal)
    if finish_reason == "content_filter":
        return Verdict(Outcome.REFUSED, why="a content filter")
    cut_off = finish_reason == "length"
    if scorer is not None:
        return _judge_by(scorer, text, target, cut_off=cut_off)
    extracted = extract(text, answer, first_line=cut_off)
    if cut_off and not (extracted.by_phrase and extracted.whole):
        return Verdict(Outcome.TRUNCATED, why="cut off before the answer was whole")
    sure = extracted.value is not None and (
        extracted.by_phrase or answer.type not in ("text", "list")
    )
    verdict = (
        _unparsed(extracted)
        if extracted.value is None
        else _judge_answer(extracted, text, (target, *accept), answer)
    )
    if not sure and verdict.outcome is not Outcome.CORRECT and _refuses(text):
        return Verdict(Outcome.REFUSED, why="a refusal in words")
    return verdict


def _judge_by(scorer: Scorer, text: str, target: Target, *, cut_off: bool) -> Verdict:
    if cut_off:
        return Verdict(Outcome.TRUNCATED, why="cut off")
    reply = without_thoughts(text).strip()
    if not reply:
        return Verdict(Outcome.UNPARSED, why="nothing but thinking" if text.strip() else "no text")
    outcome, why = scorer(reply, target)
    if outcome is not Outcome.CORRECT and _refuses(text):
        return Verdict(Outcome.REFUSED, why="a refusal in words")
    return Verdict(outcome, why=why)


def _unparsed(extracted: Extracted) -> Verdict:
    return Verdict(Outcome.UNPARSED, why=extracted.why)


def _judge_answer(
    extracted: Extracted, reply: str, targets: Sequence[Target], answer: AnswerForm
) -> Verdict:
    """The verdict on an answer that was read; the first of `targets` is what errors are measured
    from.
    """
    value, start, end = extracted.value, extracted.start, extracted.end
    target = targets[0]
    match answer.type:
        case "integer":
            error = int(value or 0) - int(target)
            right = not error
            return Verdict(_outcome(right=right), value, start, end, signed_error=error)
        case "number":
            error_of = _judge_number(float(value or 0), float(target), answer)
            return Verdict(_outcome(right=error_of[0]), value, start, end, signed_error=error_of[1])
        case "symbol":
            right = any(str(one) in (value, reply[start:end]) for one in targets)
            return Verdict(_outcome(right=right), value, start, end)
        case "choice":
            return Verdict(_outcome(right=value in targets), value, start, end)
        case "list":
            items = str(value).split(SEPARATOR)
            return _judge_list(items, tidy_items(str(target)), answer, start, end)
        case _:
            verdicts = [_judge_text(str(value), tidy(str(one)), start, end) for one in targets]
            return next((one for one in verdicts if one.outcome is Outcome.CORRECT), verdicts[0])


def _outcome(*, right: bool) -> Outcome:
    return Outcome.CORRECT if right else Outcome.INCORRECT


def _judge_number(value: float, target: float, answer: AnswerForm) -> tuple[bool, float]:
    """Whether a number is right, and its error."""
    error = value - target
    allowed = max(answer.tolerance or 0.0, (answer.relative_tolerance or 0.0) * abs(target))
    return abs(error) <= allowed + _ROUNDING * max(abs(value), abs(target)), error


def _judge_list(
    items: list[str], target: list[str], answer: AnswerForm, start: int, end: int
) -> Verdict:
    if answer.ordered is not False:
        return _judge_parts(SEPARATOR.join(items), items, target, start, end)
    both = shared(items, target)
    longer = max(len(items), len(target))
    return Verdict(
        _outcome(right=both == longer),
        SEPARATOR.join(items),
        start,
        end,
        similarity=both / longer,
        ended=_ended(items, target),
    )


def _judge_text(text: str, target: str, start: int, end: int) -> Verdict:
    return _judge_parts(text, text.split(), target.split(), start, end)


def _judge_parts(
    text: str, parts: Sequence[str], target: Sequence[str], start: int, end: int
) -> Verdict:
    if parts == target:
        return Verdict(Outcome.CORRECT, text, start, end, similarity=1.0)
    return Verdict(
        Outcome.INCORRECT,
        text,
        start,
        end,
        similarity=1 - edit_distance(parts, target) / max(len(parts), len(target)),
        first_divergence=_common_prefix(parts, target),
        ended=_ended(parts, target),
    )


def _ended(parts: Sequence[str], target: Sequence[str]) -> Literal["early", "late"] | None:
    if len(parts) == len(target):
        return None
    return "early" if len(parts) < len(target) else "late"


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
