"""The verdict on a record of the journal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from eyechart.harness.analysis.samples.cut_prompts import Cut
from eyechart.harness.analysis.samples.task_of_run import NoTaskError, task_of
from eyechart.harness.errors import JournalError, TaskError, TaskFileError, UsageError
from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.journal.record import Record
from eyechart.harness.plan.own_tasks import remembered
from eyechart.harness.plan.plan import item_of, make_sample
from eyechart.harness.score.answer_type import AnswerForm
from eyechart.harness.score.extraction import FIRST
from eyechart.harness.score.forced_choice import choice_verdict
from eyechart.harness.score.judge import OwnScorer, judge
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Condition, Item, Line, TaskSpec
from eyechart.harness.spec.answer import Target
from eyechart.harness.spec.worked_examples import answer_read
from eyechart.harness.task.catalogue import Task, reopen
from eyechart.harness.task.functions import ItemError
from eyechart.harness.task.prompt import before_question, first_line, question_starts
from eyechart.harness.task.scorer import Scorer, is_loaded, load_scorer
from eyechart.providers.naming import named, turned_on

_OR_TRUST = f", or execute what the run names with {turned_on('run_kept_code')}"
_MOST_COUNTED = 2**53
"""The largest count that is kept of a journal, which can have any number."""
_SHORT = 2048
"""Characters of the longest reply whose verdict is cached: 8 MB in all, in Latin letters."""
_judge_cached = lru_cache(maxsize=4096)(judge)
"""`judge` with a cache: short replies repeat ("Final answer: 7", target 7), and a report judges
the replies of each run twice, for its numbers and for its texts."""


def _no_item(_: Record) -> None:
    """Of a run whose task is not needed or not there."""


@dataclass(frozen=True)
class Judge:
    """What gives the verdict on the records of a run."""

    answer: AnswerForm
    ends: tuple[str, ...] = ()
    """Beginnings of lines at which a reply ends, because it begins a question of its own."""
    again: re.Pattern[str] | None = None
    """Finds the first line of the prompt, with which a reply goes on as another turn."""
    scorer: Scorer | None = None
    """The task's own scorer."""
    item_of: Callable[[Record], Item | None] = _no_item
    """The item of a record, for the scorer."""
    cuts: Mapping[Condition, Cut] = field(default_factory=dict)
    """Where the server of the run cut prompts."""

    def verdict(self, record: Record) -> Verdict:
        cut = None if record.failure else self.cuts.get(record.condition)
        if cut is not None and cut.holds(*counts_of(record)):
            expected, tokens = round(cut.expected(record.chars)), record.prompt_tokens
            shown = f"to {tokens:,} of" if tokens else "as shorter ones, of"
            why = f"the server cut the prompt {shown} about {expected:,} tokens"
            return Verdict(Outcome.OVERFLOW, why=why)
        if record.options is not None and record.failure is None:
            accept = record.accept or ()
            return choice_verdict(record.options, record.target, accept, self.answer)
        whole = record.reply or ""
        text = before_question(whole, self.ends)
        finish = "length" if record.is_cut_off else record.finish_reason or "stop"
        give = _judge_cached if len(text) <= _SHORT and self.scorer is None else judge
        return give(
            text=text,
            finish_reason=finish if text == whole else "stop",
            refusal=record.refusal,
            failure=None if record.failure is None else record.failure.kind,
            target=record.target,
            accept=record.accept or (),
            answer=self.answer,
            scorer=None if self.scorer is None else self._of(record, self.scorer),
            again=self.again,
        )

    def _of(self, record: Record, scorer: Scorer) -> OwnScorer:
        made = self.item_of(record) or Item((), record.target, accept=record.accept or ())
        item = replace(made, target=record.target)
        return lambda reply: scorer(reply, item)


def counts_of(record: Record) -> tuple[int, int, int]:
    """What `Cut.holds` takes of a record: characters of its prompt, tokens of it, and those of them
    that came from a cache; 0 where it is not known, or the sample was asked over several turns.
    """
    if record.turns:
        return 0, 0, 0
    given = record.chars, record.prompt_tokens, record.cache_read_tokens
    chars, tokens, cached = (min(max(count or 0, 0), _MOST_COUNTED) for count in given)
    return chars, tokens, cached


def judge_of_task(task: Task, seed: int, api: str | None) -> Judge:
    """The judge of replies that are asked now."""
    answer = answer_read(task.spec, api)
    again = first_line(task.spec.prompt)
    return Judge(answer, ends_of(task.spec, api), again, task.scorer, _ItemsOf(task, seed))


def judge_of_run(
    folder: Path, manifest: Manifest, settings: JudgeSettings = JudgeSettings()
) -> Judge:
    """The judge of the run in `folder`; raises what `scorer_of` does."""
    spec = manifest.task_spec()
    scorer = scorer_of(folder, manifest, settings)
    api = manifest.settings.api
    judge = Judge(answer_read(spec, api), ends_of(spec, api), first_line(spec.prompt), scorer)
    if scorer is None:
        return judge
    with suppress(NoTaskError, UsageError, TaskFileError):
        task = task_of(folder, manifest, settings)
        return replace(judge, item_of=_ItemsOf(task, manifest.settings.seed))
    return judge


def ends_of(spec: TaskSpec, api: str | None) -> tuple[str, ...]:
    """Beginnings of lines that end a reply: of one that goes on with the text of its prompt."""
    if api != "completions" and spec.answer.read != FIRST:
        return ()
    return question_starts(spec.prompt, spec.answer.first_phrase)


@dataclass(frozen=True)
class _ItemsOf:
    """Makes items again; there is none where the prompt is not the one that was sent."""

    task: Task
    seed: int

    def __call__(self, record: Record) -> Item | None:
        condition, length, index = record.condition, record.length, record.index
        with suppress(TaskError):
            made = item_of(self.task, condition, length, index, self.seed)
            line = Line.exact(length)
            sample = make_sample(self.task, condition, line, index, self.seed, drawn={length: made})
            return made if sample.prompt_hash == record.prompt_hash else None
        return None


_MOST_TEXT = 60


def reason(verdict: Verdict, target: Target) -> str:
    """Why a reply has its outcome, in a few words."""
    return verdict.why or f"reads {_short(verdict.answer)}, target {_short(target)}"


def _short(value: object) -> str:
    text = repr(value)
    half = _MOST_TEXT // 2
    return text if len(text) <= _MOST_TEXT else f"{text[:half]} … {text[-half:]}"


def scorer_of(folder: Path, manifest: Manifest, settings: JudgeSettings) -> Scorer | None:
    """The scorer of the run in `folder`, from its task file.

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
        if settings.tasks or not manifest.file:
            path = reopen(manifest.task, spec.digest(), others=settings.tasks).path
        elif (own := remembered(manifest.task, spec.digest())) is not None:
            path = own.path
        else:
            path = _named_file(manifest.file, spec.scorer, run_kept_code=settings.run_kept_code)
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
