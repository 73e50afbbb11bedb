"""`bench import --model NAME`: replies that somebody else collected, made into a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path

from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.cli.terminal import say, warn
from eyechart.harness.cli.work.batch import check_files
from eyechart.harness.cli.work.score import show_run
from eyechart.harness.errors import COMPLETE, INCOMPLETE, UsageError
from eyechart.harness.plan.selection import open_tasks
from eyechart.harness.satellites.recorded.agreement import agreement, print_agreement
from eyechart.harness.satellites.recorded.fields import DRAW, Columns
from eyechart.harness.satellites.recorded.reader import ImportRequest, ImportResult
from eyechart.harness.satellites.recorded.recorder import import_recorded
from eyechart.harness.satellites.recorded.rows import RecordedRows, RowFilter, RowProblem
from eyechart.harness.satellites.recorded.sources import given_files
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import EXAMPLES
from eyechart.harness.task.catalogue import Task
from eyechart.harness.task.files import SUFFIXES
from eyechart.providers.base import ModelSettings
from eyechart.providers.batches import BatchForm
from eyechart.providers.naming import named
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form
from eyechart.providers.secrets import A_KEY, holds_key

_SHOWN = 20
"""Most reasons that are printed one by one."""
_MOMENT = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


def import_files(
    files: Sequence[Path],
    out: Path,
    tasks: str,
    model: str,
    *,
    fields: Iterable[str] = (),
    axes: Iterable[str] = (),
    where: Iterable[str] = (),
    by: str = "",
    at: str = "",
    command: str = "",
    judging: JudgeSettings = JudgeSettings(),
    show: Callable[[JudgedRun], object] | None = None,
) -> int:
    """Makes a run of `model` from recorded replies, judges and shows it. Without `model` it makes a
    run of each model that the rows name. `show` is called in place of printing a run's tables.
    """
    if swapped := next((file for file in files if file.suffix in SUFFIXES), None):
        raise UsageError(
            f"{swapped} is a task's file and holds no replies; write "
            f"bench import REPLIES --task {swapped} --model NAME"
        )
    task, fixed = _only_task(tasks), dict(_pairs("--axis", axes))
    if EXAMPLES in fixed:
        task = task.with_examples()
    _check_moment(at)
    check_files(files)
    request = ImportRequest(
        files=files,
        task=task,
        model=model.strip(),
        out=out,
        columns=Columns.read(fields, task.spec.axes),
        fixed=fixed,
        where=[_condition(text) for text in where],
        by=by,
        at=at,
        command=command,
    )
    if holds_key(model):
        raise UsageError(f"--model {A_KEY}")
    if not (model.strip() or request.columns.named.get("model")):
        raise UsageError("--model is empty; it is the name of the model that replied")
    told: set[str] = set()
    column = "" if request.model else request.columns.named["model"]
    with RecordedRows(given_files(files, warn), request.where, column) as rows:
        models = [request.model] if request.model else rows.models
        if not models:
            raise UsageError(f"no row names a model in the column {column!r}")
        codes = []
        for one in models:
            asked = replace(request, model=one)
            imported = import_recorded(asked, rows, _batch_form, warn)
            codes.append(_tell(asked, imported, told, judging, show or _show))
        return max(codes)


def _show(run: JudgedRun) -> None:
    show_run(run)
    print_agreement(agreement(run))


def _check_moment(at: str) -> None:
    """Raises `UsageError` for a text that is no moment, or lies in the future."""
    begins = None
    if _MOMENT.fullmatch(at):
        with suppress(ValueError):  # a month or a day that no year has
            begins = date.fromisoformat(at + "-01-01"[len(at) - len("2026") :])
    if at and begins is None:
        raise UsageError(f"--recorded-at is a year, a month or a date (2026-04), not {at!r}")
    if begins is not None and begins > datetime.now(UTC).date() + timedelta(days=1):
        raise UsageError(f"--recorded-at {at!r} is still to come")


def _tell(
    request: ImportRequest,
    imported: ImportResult,
    told: set[str],
    judging: JudgeSettings,
    show: Callable[[JudgedRun], object],
) -> int:
    """Prints the numbers of rows, and shows the run; returns the exit code. Reasons that were
    `told` for another model are not told again.
    """
    problems = imported.problems
    reasons = [line for line in _told(problems, request.files) if line not in told]
    told.update(reasons)
    for line in reasons[:_SHOWN]:
        warn(line)
    if len(reasons) > _SHOWN:
        warn(f"… and {len(reasons) - _SHOWN:,} more reasons why rows cannot be used")
    if left_out := imported.left_out:
        warn(
            f"{left_out[0]}: a reply with an error, or broken off by its server, "
            f"{_rows(len(left_out))} in all; they count as failed; to score such replies, import "
            f"with --field error=,finish_reason= into another {named('out')}"
        )
    if repeated := imported.repeated:
        warn(
            f"{repeated[0]}: its sample has its reply from another row, {_rows(len(repeated))} in "
            "all; if these are draws of one prompt, import with "
            f"--field {DRAW}={imported.draw_column} into another {named('out')}"
        )
    others = f", {len(repeated):,} repeated" if repeated else ""
    others += f", {imported.others:,} of other rows" if imported.others else ""
    say(
        f"{imported.new:,} new {'reply' if imported.new == 1 else 'replies'}, "
        f"{imported.known:,} known before{others}, {_rows(len(problems))} that cannot be used"
    )
    if imported.nameless:
        warn(
            f"{_rows(imported.nameless)} of these name no model, as the others do, and are taken "
            f"as replies of {request.model!r}; to leave them out, import with --where "
            f"{request.columns.of('model')}!= into another {named('out')}"
        )
    if imported.is_unproven:
        warn(
            "rows name their items by number alone, and nothing shows that they belong to these "
            "items; name the column of their target or prompt: --field target=COLUMN"
        )
    if not (imported.new or imported.known):
        warn("no reply was taken")
        return INCOMPLETE
    of_task = replace(judging, tasks=str(request.task.path))
    judged_run = read_run(request.folder, warn, of_task)
    show(judged_run)
    if imported.gaps:
        warn(
            f"{request.task.name}: {imported.gaps:,} numbers below the largest index of a line "
            "have no row and count as not run; index counts from 0 on each line; to number rows as "
            f"they come, import with --field index= into another {named('out')}"
        )
    return INCOMPLETE if problems or judged_run.missing else COMPLETE


def _told(problems: Iterable[RowProblem], files: Sequence[Path]) -> list[str]:
    """A line for each reason why rows of a file cannot be used, with the first row of each."""
    places: dict[tuple[Path, str], list[int]] = {}
    for problem in sorted(
        problems, key=lambda one: (files.index(one.place.path), one.place.number)
    ):
        key = problem.place.path, problem.why
        places.setdefault(key, []).append(problem.place.number)
    return [
        f"{path}:{rows[0]}{f' and {_rows(len(rows) - 1, more=True)}' if rows[1:] else ''}: {why}"
        for (path, why), rows in places.items()
    ]


def _rows(number: int, *, more: bool = False) -> str:
    return f"{number:,} {'more ' if more else ''}row{'s' * (number != 1)}"


def _only_task(tasks: str) -> Task:
    if not tasks:
        raise UsageError("--model makes a run of recorded replies, which needs --task; add it")
    opened = open_tasks(tasks)
    if len(opened) > 1:
        names = ", ".join(task.name for task in opened)
        raise UsageError(
            f"recorded replies belong to one task, but --task names {names}; name one of them"
        )
    return opened[0]


def _pairs(option: str, given: Iterable[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise UsageError(f"{option} is NAME=VALUE, not {text!r}")
        if name.strip() in dict(pairs):
            raise UsageError(f"{option} names {name.strip()!r} twice; keep one")
        pairs.append((name.strip(), value))
    return pairs


def _condition(text: str) -> RowFilter:
    """The condition in `--where COLUMN=VALUE` or `--where COLUMN!=VALUE`."""
    column, equals, value = text.partition("=")
    is_equal = not column.endswith("!")
    column = column.removesuffix("!").strip()
    if not (column and equals):
        raise UsageError(f"--where is COLUMN=VALUE or COLUMN!=VALUE, not {text!r}")
    return RowFilter(column, value, is_equal)


@cache
def _batch_form() -> BatchForm:
    """The reader of replies in OpenAI's Batch form, for any model."""
    name = parse_model("openai/recorded")
    return open_batch_form(name, ModelSettings(name.model))
