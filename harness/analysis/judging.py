"""The verdict on a record of the journal."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from harness.answer import Target
from harness.errors import JournalError, UsageError
from harness.journal.manifest import Manifest
from harness.journal.record import Record
from harness.score.answer import AnswerForm
from harness.score.verdict import Scorer, Verdict, judge
from harness.task.catalogue import reopen, tasks_root
from harness.task.functions import ItemError
from harness.task.scorer import load_scorer

_SHORT = 64
"""Characters of the longest reply whose verdict is cached."""
_judge_cached = lru_cache(maxsize=4096)(judge)
"""`judge` with a cache for short replies, which repeat often: "Final answer: 7", target 7."""


def verdict_of(record: Record, answer: AnswerForm, scorer: Scorer | None = None) -> Verdict:
    """The verdict on `record`, for a task with answers of this form, or with its own scorer."""
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
        scorer=scorer,
    )


_MOST_TEXT = 60


def reason(verdict: Verdict, target: Target) -> str:
    """Why a reply has its outcome, in a few words."""
    return verdict.why or f"reads {_short(verdict.answer)}, target {_short(target)}"


def _short(value: object) -> str:
    text = repr(value)
    half = _MOST_TEXT // 2
    return text if len(text) <= _MOST_TEXT else f"{text[:half]} … {text[-half:]}"


def scorer_of(folder: Path, manifest: Manifest, others: str = "") -> Scorer | None:
    """The scorer of the run in `folder`, from its task file; `others` names files as `--task` does.

    Raises:
        JournalError: the run's task has a scorer that cannot be loaded any more.
    """
    reference = manifest.task_spec().scorer
    if reference is None:
        return None
    try:
        path = _task_file(manifest, others)
        return load_scorer(path, reference)
    except (ItemError, UsageError) as error:
        raise JournalError(
            f"{folder}: its task {manifest.task} has a scorer of its own, and {error}; "
            "name the task file with --task"
        ) from error


def _task_file(manifest: Manifest, others: str) -> Path:
    if others:
        return reopen(manifest.task, manifest.task_digest, file=manifest.file, others=others).path
    return Path(manifest.file) if manifest.file else tasks_root() / f"{manifest.task}.yaml"
