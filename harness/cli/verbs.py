"""What the verbs of `bench` do once their options are read; `run` is in `launch`, what reads runs
in `results`.

Results go to stdout, talk and progress to stderr.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from harness.cli.terminal import echo, say
from harness.plan.plan import Plan, PlanError, plan
from harness.task.catalogue import (
    Task,
    TaskError,
    TaskFileError,
    UnknownTaskError,
    built_in_files,
    find,
    open_task,
)
from harness.task.prompt import utf8_problem
from providers.base import ProviderError, SetupError

_MOST_DIGITS = 9
COMPLETE, INCOMPLETE, USAGE = 0, 1, 2


class UsageError(Exception):
    """The command line asks for something that cannot be; a line for the user, or several."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        super().__init__("\n".join(lines))


def exit_code(error: Exception) -> int | None:
    """The exit code of an error whose text is for the user; `None` for any other."""
    from harness.journal.journal import JournalError

    if hasattr(error, "format_message"):  # the parser's, whichever click typer stands on
        return USAGE
    if isinstance(
        error, UsageError | UnknownTaskError | TaskFileError | TaskError | PlanError | SetupError
    ):
        return USAGE
    if isinstance(error, JournalError | ProviderError | MemoryError):
        return INCOMPLETE
    return None


def lines_of(error: Exception) -> Sequence[str]:
    """What an error says: one line, but for an error that has several of its own."""
    if hasattr(error, "format_message"):
        return [error.format_message()]
    if isinstance(error, MemoryError):
        of = f" ({error})" if str(error) else ""
        return [f"out of memory{of}; ask for less at a time"]
    said: Sequence[str] | None = getattr(error, "lines", None)
    return said or [str(error)]


def check_text(option: str, given: str | None) -> None:
    """Raises `UsageError` where `given` is not UTF-8."""
    if given is not None and utf8_problem("", given):
        raise UsageError(f"{option} {given!r} is not UTF-8; write it in UTF-8")


def check_output(option: str, path: Path | None) -> None:
    """Raises `UsageError` where `path` is a folder or a device, which no file may replace."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} {str(path)!r} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{option} {str(path)!r} is no file that can be replaced; name another")


def max_tokens(given: str) -> int | None:
    """`auto` as `None`, else a positive number."""
    if given == "auto":
        return None
    if not given.isdecimal() or len(given) > _MOST_DIGITS or int(given) < 1:
        raise UsageError(f"--max-tokens must be 'auto' or a positive number, not {given!r}")
    return int(given)


def open_tasks(asked: str, *, trial: bool = True) -> list[Task]:
    """The tasks that `asked` names; the mistakes of all their files at once."""
    opened, wrong = [], []
    for name, path in find(asked).items():
        try:
            opened.append(open_task(name, path, trial=trial))
        except TaskFileError as error:
            wrong += error.lines
    if wrong:
        raise UsageError("a task file is wrong", *wrong)
    return opened


def plans(
    asked: str, *, lengths: str | None, samples: int | None, axes: Sequence[str], seed: int
) -> list[Plan]:
    """A plan for each task that `asked` names."""
    tasks = open_tasks(asked)
    wanted = read_axes(axes)
    known = {axis for task in tasks for axis in task.spec.axes}
    for axis in wanted:
        if axis not in known:
            close = difflib.get_close_matches(axis, known, n=1)
            guess = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"
            raise UsageError(f"no axis {axis!r} in {asked!r}; {guess}")
    made = [
        plan(task, lengths=_read_lengths(lengths), samples=samples, axes=wanted, seed=seed)
        for task in tasks
    ]
    for one in made:
        for condition, length in product(one.conditions, one.lengths):
            one.sample(condition, length, 0)  # a length the task cannot make is said now
    return made


def _read_lengths(given: str | None) -> list[int] | None:
    if given is None:
        return None
    parts = [part.strip() for part in given.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS and int(part)):
            raise UsageError(f"--lengths wants positive numbers with commas between, not {part!r}")
    return [int(part) for part in parts]


def read_axes(given: Sequence[str]) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for one in given:
        axis, equals, values = one.partition("=")
        names = [name.strip() for name in values.split(",") if name.strip()]
        if not equals or not names:
            raise UsageError(f"--axis wants AXIS=VALUE[,VALUE] or AXIS=all, not {one!r}")
        wanted.setdefault(axis.strip(), []).extend(names)
    return wanted


def list_tasks() -> None:
    """A line a task: name, title, axes, lengths, requests by default."""
    rows = [("task", "title", "axes", "lengths", "requests")]
    for name, path in built_in_files().items():
        task = open_task(name, path, trial=False)
        lengths = task.lengths
        span = f"{lengths[0]}-{lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
        axes = " ".join(task.spec.axes) or "-"
        rows.append((name, task.spec.title, axes, span, f"{plan(task).size:,}"))
    echo(*_columns(rows, right=(4,)))


def show_tasks(asked: str) -> None:
    """Prints task files, and of each one prompt for each default condition."""
    for task in open_tasks(asked):
        echo(f"# {task.name}: {task.path}", "")
        echo(*task.path.read_text(encoding="utf-8").split("\n"))
        planned = plan(task, samples=1)
        length = min(planned.lengths, key=lambda length: abs(length - _SHOWN_LENGTH))
        for condition in planned.conditions:
            sample = planned.sample(condition, length, 0)
            echo(f"# {sample.id}, target {sample.target!r}")
            echo(*(f"| {line}" for line in sample.prompt.split("\n")), "")


_SHOWN_LENGTH = 10


def check_tasks(asked: str) -> int:
    """Checks task files and proves the tasks; says a line for each; the exit code."""
    from harness.plan.proof import PERFECT, failures, repetition

    code = COMPLETE
    for name, path in find(asked).items():
        try:
            task = open_task(name, path)
            wrong = [str(failure) for failure in failures(task)]
            wrong += filter(None, [repetition(task)])
        except (TaskFileError, TaskError) as error:
            wrong = [*lines_of(error)]
        if wrong:
            code = USAGE
            say(*wrong)
        else:
            cells = plan(task, samples=1).size
            echo(f"{name}: sound ({cells} cells, {len(PERFECT)} ways to be right in each)")
    return code


def list_models() -> None:
    """A line a provider: what it is and what it needs; raises `SetupError` on a mistake in one of
    the user's files.
    """
    from providers.catalog.model_facts import model_facts
    from providers.registry import needs

    model_facts("")  # reads the file
    echo(*_columns([("provider", "what it is", "needs"), *needs()]))


def _columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows with their columns aligned, two spaces between."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
