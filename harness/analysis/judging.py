"""The verdict on a record of the journal."""

from __future__ import annotations

from functools import lru_cache

from harness.journal.record import Record
from harness.score.answer import AnswerForm
from harness.score.verdict import Verdict, judge

_SHORT = 64
_judge_again = lru_cache(maxsize=4096)(judge)
"""Answers without words around them are few and come often: "Final answer: 7", target 7."""


def verdict_of(record: Record, answer: AnswerForm) -> Verdict:
    """The verdict on what `record` holds, for a task with answers of that form."""
    text = record.reply or ""
    judging = _judge_again if len(text) <= _SHORT else judge
    return judging(
        text=text,
        finish_reason=record.finish_reason or "stop",
        refusal=record.refusal,
        failure=None if record.failure is None else record.failure.kind,
        target=record.target,
        answer=answer,
    )
