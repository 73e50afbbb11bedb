"""The verdict on a record of the journal."""

from __future__ import annotations

from functools import lru_cache

from harness.journal.record import Record
from harness.score.answer import AnswerForm
from harness.score.verdict import Verdict, judge
from harness.spec import Target

_SHORT = 64
"""Characters of the longest reply whose verdict is cached."""
_judge_cached = lru_cache(maxsize=4096)(judge)
"""`judge` with a cache for short replies, which repeat often: "Final answer: 7", target 7."""


def verdict_of(record: Record, answer: AnswerForm) -> Verdict:
    """The verdict on `record`, for a task with answers of this form."""
    text = record.reply or ""
    judge_text = _judge_cached if len(text) <= _SHORT else judge
    return judge_text(
        text=text,
        finish_reason=record.finish_reason or "stop",
        refusal=record.refusal,
        failure=None if record.failure is None else record.failure.kind,
        target=record.target,
        accept=record.accept or (),
        answer=answer,
    )


_MOST_TEXT = 60


def reason(verdict: Verdict, target: Target) -> str:
    """Why a reply has its outcome, in a few words."""
    return verdict.why or f"reads {_short(verdict.answer)}, target {_short(target)}"


def _short(value: object) -> str:
    text = repr(value)
    half = _MOST_TEXT // 2
    return text if len(text) <= _MOST_TEXT else f"{text[:half]} … {text[-half:]}"
