"""The verdict on a record of the journal."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.journal.record import Record
from eyechart.harness.plan.own_tasks import remembered
from eyechart.harness.score.answers import AnswerForm
from eyechart.harness.score.judge import Scorer, judge
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec.answer import Target
from eyechart.harness.task.catalogue import reopen
from eyechart.harness.task.functions import ItemError
from eyechart.harness.task.scorer import is_loaded, load_scorer
from eyechart.providers.naming import named, turned_on

_OR_TRUST = f", or execute what the run names with {turned_on('run_kept_code')}"
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


def scorer_of(
    folder: Path, manifest: Manifest, others: str = "", *, run_kept_code: bool = False
) -> Scorer | None:
    """The scorer of the run in `folder`, from its task file. `others` names task files, as `--task`
    does.

    A run may come from a stranger. So a file that only its manifest names is not executed, also if
    it claims to be a built-in task. It is executed with `run_kept_code`, if the user has run it on
    this machine (`plan.own_tasks`), or if this process has loaded it already for the user.

    Raises:
        JournalError: the scorer of the run's task cannot be loaded.
    """
    spec = manifest.task_spec()
    if spec.scorer is None:
        return None
    try:
        if others or not manifest.file:
            path = reopen(manifest.task, spec.digest(), others=others).path
        elif (own := remembered(manifest.task, spec.digest())) is not None:
            path = own.path
        else:
            path = _named_file(manifest.file, spec.scorer, run_kept_code=run_kept_code)
        return load_scorer(path, spec.scorer)
    except (ItemError, UsageError) as error:
        raise JournalError(
            f"{folder}: its task {manifest.task} has a scorer of its own, and {error}; "
            f"name the task file with {named('tasks')}{_OR_TRUST if manifest.file else ''}"
        ) from error


def _named_file(file: str, scorer: str, *, run_kept_code: bool) -> Path:
    """The task file that a manifest names; raises `ItemError` if its `scorer` may not run."""
    path = Path(file)
    if not (run_kept_code or is_loaded(path, scorer)):
        raise ItemError(f"{scorer!r} beside {file!r} is named only by the run")
    return path
