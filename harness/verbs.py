"""What the verbs of `bench` do once their options are read.

Results go to stdout, talk and progress to stderr.
"""

from __future__ import annotations

import difflib
import math
import os
import signal
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness.library import (
    Task,
    TaskError,
    TaskFileError,
    UnknownTaskError,
    built_in_files,
    find,
    open_task,
)
from harness.plan import Plan, PlanError, plan
from harness.spec import condition_label
from providers.base import ProviderError, SetupError

if TYPE_CHECKING:
    from harness.journal import Settings
    from harness.runner import Progress
    from harness.session import Wanted
    from providers.base import Provider

_MOST_DIGITS = 9
COMPLETE, INCOMPLETE, USAGE, INTERRUPTED = 0, 1, 2, 130


class UsageError(Exception):
    """The command line asks for something that cannot be; one line for the user."""


def exit_code(error: Exception) -> int | None:
    """The exit code of an error whose text is for the user; `None` for any other."""
    from harness.journal import JournalError

    if hasattr(error, "format_message"):  # the parser's, whichever click typer stands on
        return USAGE
    if isinstance(
        error, UsageError | UnknownTaskError | TaskFileError | TaskError | PlanError | SetupError
    ):
        return USAGE
    if isinstance(error, JournalError | ProviderError):
        return INCOMPLETE
    return None


def say(text: str) -> None:
    """Talk, on stderr."""
    typer.echo(text, err=True)


def warn(text: str) -> None:
    """A warning, on stderr."""
    say(f"bench: {text}")


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
            wrong.append(str(error))
    if wrong:
        raise UsageError("\n".join(["a task file is wrong", *wrong]))
    return opened


def plans(
    asked: str, *, lengths: str | None, samples: int | None, axes: Sequence[str], seed: int
) -> list[Plan]:
    """A plan for each task that `asked` names."""
    tasks = open_tasks(asked)
    wanted = _read_axes(axes)
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


def _read_axes(given: Sequence[str]) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for one in given:
        axis, equals, values = one.partition("=")
        names = [name.strip() for name in values.split(",") if name.strip()]
        if not equals or not names:
            raise UsageError(f"--axis wants AXIS=VALUE[,VALUE] or AXIS=all, not {one!r}")
        wanted.setdefault(axis.strip(), []).extend(names)
    return wanted


def run(
    wanted: Sequence[Plan],
    *,
    model: str,
    settings: Settings,
    out: Path,
    max_connections: int,
    base_url: str | None,
    dry_run: bool,
    fresh: bool,
) -> int:
    """Runs the plans one after another and prints a table for each; the exit code."""
    import asyncio

    from harness.journal import JournalError, set_aside
    from harness.session import Wanted
    from providers.registry import open_model, parse_model

    _check(settings, out)
    name = parse_model(model)
    runs = [Wanted(one, name.label, settings, out) for one in wanted]
    if dry_run:
        for one in runs:
            _show_plan(one)
        return COMPLETE
    provider = open_model(name, base_url=base_url, temperature=settings.temperature, notify=warn)
    for one in runs if fresh else ():
        if one.folder.exists():
            say(f"the old run is now {set_aside(out, one.folder)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = COMPLETE
    begun: list[tuple[Wanted, Progress]] = []
    try:
        asyncio.run(_run_all(runs, provider, max_connections, begun))
    except KeyboardInterrupt:
        say("interrupted; what was answered is saved, and the same command continues")
        code = INTERRUPTED
    except (ProviderError, JournalError, TaskError) as error:
        if "BENCH_DEBUG" in os.environ:
            raise
        warn(str(error))
        code = exit_code(error) or INCOMPLETE
    missing = sum(_report(one) for one, _ in begun)
    if missing and code == COMPLETE:
        why = next((f" (the last: {p.last_failure})" for _, p in begun[::-1] if p.failed), "")
        warn(f"{missing} samples have no reply{why}; the same command asks them again")
        code = INCOMPLETE
    return code


def _check(settings: Settings, out: Path) -> None:
    """Stops at settings that no run can have."""
    if not math.isfinite(settings.temperature):
        raise UsageError(f"--temperature must be a number, not {settings.temperature}")
    if abs(settings.seed) >= 2**63:
        raise UsageError("--seed is beyond 64 bits")
    place = next((folder for folder in (out, *out.parents) if folder.exists()), out)
    if place.exists() and not place.is_dir():
        raise UsageError(f"--out {str(out)!r}: {str(place)!r} is not a folder")


async def _run_all(
    runs: Sequence[Wanted],
    provider: Provider,
    max_connections: int,
    begun: list[tuple[Wanted, Progress]],
) -> None:
    from harness.progress import LiveProgress
    from harness.runner import Limits
    from harness.session import run_task

    try:
        for one in runs:
            with LiveProgress(one.plan.task.name) as live:
                limits = Limits(max_connections=max_connections)

                def started(progress: Progress, pending: int, one: Wanted = one) -> None:
                    begun.append((one, progress))
                    live.follow(progress, pending)

                await run_task(one, provider, limits=limits, warn=warn, started=started)
    finally:
        await provider.aclose()


def _report(one: Wanted) -> int:
    """Writes and prints the run's table; how many samples of the plan have no reply."""
    from harness.show import print_table
    from harness.tables import OUTCOMES, read_run, write_csv

    judged = read_run(one.folder)
    path = write_csv(judged)
    sizes = {
        (condition_label(condition), length): one.plan.cell_size(length)
        for condition, length in product(one.plan.conditions, one.plan.lengths)
    }
    keys = [cell.key for cell in judged.manifest.cells]
    print_table(judged, judged.cells[[key in sizes for key in keys]])
    typer.echo(f"{path}\n")
    samples = judged.samples
    wanted = samples["cell"].map(lambda place: sizes.get(keys[place], 0))
    replied = (samples["index"] < wanted) & (samples["outcome"] != OUTCOMES.index("error"))
    return one.plan.size - int(replied.sum())


def _show_plan(one: Wanted) -> None:
    """Prints what a run would ask, and its first prompt."""
    planned = one.plan
    characters, first = 0, None
    for sample in planned:
        characters += len(sample.prompt)
        first = first or sample
    spec = planned.task.spec
    typer.echo(f"{planned.task.name}@{spec.version}: {spec.title}")
    typer.echo(f"  model       {one.model}")
    typer.echo(f"  conditions  {len(planned.conditions)}")
    for condition in planned.conditions:
        typer.echo(f"              {condition_label(condition)}")
    typer.echo(f"  lengths     {', '.join(map(str, planned.lengths))}")
    typer.echo(f"  requests    {planned.size:,} ({planned.samples} a cell)")
    typer.echo(f"  characters  {characters:,}")
    typer.echo(f"  run folder  {one.folder}")
    if first is not None:
        typer.echo(f"  sample      {first.id}")
        typer.echo("\n".join(f"    | {line}" for line in first.prompt.split("\n")) + "\n")


def list_tasks() -> None:
    """A line a task: name, title, axes, lengths, requests by default."""
    rows = [("task", "title", "axes", "lengths", "requests")]
    for name, path in built_in_files().items():
        task = open_task(name, path, trial=False)
        lengths = task.lengths
        span = f"{lengths[0]}-{lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
        axes = " ".join(task.spec.axes) or "-"
        rows.append((name, task.spec.title, axes, span, f"{plan(task).size:,}"))
    typer.echo(_columns(rows, right=(4,)))


def show_tasks(asked: str) -> None:
    """Prints task files, and of each one prompt for each default condition."""
    for task in open_tasks(asked):
        typer.echo(f"# {task.name}: {task.path}\n")
        typer.echo(task.path.read_text(encoding="utf-8"))
        planned = plan(task, samples=1)
        length = min(planned.lengths, key=lambda length: abs(length - _SHOWN_LENGTH))
        for condition in planned.conditions:
            sample = planned.sample(condition, length, 0)
            typer.echo(f"# {sample.id}, target {sample.target!r}")
            typer.echo("\n".join(f"| {line}" for line in sample.prompt.split("\n")) + "\n")


_SHOWN_LENGTH = 10


def check_tasks(asked: str) -> int:
    """Checks task files and proves the tasks; says a line for each; the exit code."""
    from harness.prove import PERFECT, failures, repetition

    code = COMPLETE
    for name, path in find(asked).items():
        try:
            task = open_task(name, path)
            wrong = [str(failure) for failure in failures(task)]
            wrong += filter(None, [repetition(task)])
        except (TaskFileError, TaskError) as error:
            wrong = [str(error)]
        if wrong:
            code = USAGE
            say("\n".join(wrong))
        else:
            cells = plan(task, samples=1).size
            typer.echo(f"{name}: sound ({cells} cells, {len(PERFECT)} ways to be right in each)")
    return code


def score(folders: Sequence[Path]) -> int:
    """Judges runs again and rewrites their tables; the exit code."""
    from harness.show import print_table
    from harness.tables import incomplete, read_run, write_csv

    missing = 0
    for folder in folders:
        judged = read_run(folder, warn)
        path = write_csv(judged)
        print_table(judged, judged.cells)
        typer.echo(f"{path}\n")
        missing += incomplete(judged)
    return INCOMPLETE if missing else COMPLETE


def list_models() -> None:
    """A line a provider: what it is and what it needs."""
    from providers.registry import needs

    typer.echo(_columns([("provider", "what it is", "needs"), *needs()]))


def _columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows with their columns aligned, two spaces between."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
