"""The progress of a run, or of other work, on stderr, if stderr is a terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from eyechart.harness.analysis.samples.verdicts import judge_of_task
from eyechart.harness.cli.terminal import live_console, one_line
from eyechart.harness.errors import TaskError
from eyechart.harness.journal.record import Record
from eyechart.harness.run import progress as run_progress
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.writer import Judge
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec.dollars import dollars_text

_REFRESH_S = 0.2
T = TypeVar("T")


def counting_bar() -> Progress:
    """A line on stderr for work of which the number of parts is known; nothing if stderr is no
    terminal.
    """
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=live_console(),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


@contextmanager
def counting() -> Iterator[BarCounter]:
    """Shows work on one line of stderr until the context ends; nothing if stderr is no terminal."""
    with counting_bar() as bar:
        yield BarCounter(bar)


class BarCounter:
    """Counts the values that are taken on a line of a `bar`."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar

    def __call__(self, name: str, values: Sequence[T]) -> Iterable[T]:
        """The values; while they are taken, `name` is the work on them."""
        if self._bar.disable:
            return values
        return self._bar.track(values, description=one_line(name))


def new_bar() -> Progress:
    """A line for each run on stderr; nothing if stderr is no terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[done]}"),
        TextColumn(
            "{task.fields[state]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
        TextColumn("{task.fields[left]}"),
        expand=True,
        console=live_console(),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


@contextmanager
def live(
    name: str, progress: run_progress.Progress, shared: Progress | None = None
) -> Iterator[None]:
    """Shows a run on one line of stderr until the context ends; nothing if stderr is no terminal.
    Needs a running event loop. `shared` shows other runs as well, one on each line.
    """
    bar, task = shared or new_bar(), None
    if bar.disable:
        yield
        return

    async def watch() -> None:
        nonlocal task
        while True:
            if task is not None:
                bar.update(task, **fields(progress))
            elif progress.total:
                bar.start()
                task = bar.add_task(one_line(name), **fields(progress))
                continue
            await asyncio.sleep(_REFRESH_S)

    watcher = asyncio.get_running_loop().create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()
        if shared is None:
            bar.stop()
        elif task is not None:
            bar.remove_task(task)


class LiveDisplay:
    """Shows the runs of a command, if stderr is a terminal: of one model one after another, or with
    a `bar` those of several models at the same time.
    """

    def __init__(self, bar: Progress | None = None) -> None:
        self._bar = bar

    def judge(self, request: RunRequest) -> Judge | None:
        """The function that decides whether a reply is correct; `None` if nothing is shown."""
        if not sys.stderr.isatty():
            return None
        of_task = judge_of_task(request.plan.task, request.plan.seed, request.settings.api)

        def judge(record: Record) -> bool | None:
            if record.is_error:
                return None
            try:
                return of_task.verdict(record).outcome is Outcome.CORRECT
            except TaskError:  # of the task's own scorer; the tables report it
                return None

        return judge

    @contextmanager
    def show(self, request: RunRequest, progress: run_progress.Progress) -> Iterator[None]:
        name = request.name if self._bar is None else f"{request.model.label} {request.name}"
        with live(name, progress, self._bar):
            yield


def fields(progress: run_progress.Progress) -> dict[str, Any]:
    """The values on a line. An adaptive run shows no share, since its total is not known."""
    total, left_s = progress.total, progress.left_s
    return {
        "total": None if progress.is_adaptive else total,
        "completed": progress.done,
        "done": f"{progress.done:,}" + (" asked" if progress.is_adaptive else f"/{total:,}"),
        "state": state(progress),
        "left": "" if left_s is None else f"{timedelta(seconds=round(left_s))} left",
    }


def state(progress: run_progress.Progress) -> str:
    """Rate, retries and failures, adaptive knowledge, accuracy, cost and connections so far,
    without values that are 0 or empty. A narrow terminal cuts off the end.
    """
    parts = [f"{progress.done / max(progress.elapsed_s, 1e-9):.0f}/s"]
    if progress.retries:
        parts.append(f"{progress.retries} {'retry' if progress.retries == 1 else 'retries'}")
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.known:
        parts.append(progress.known)
    if progress.judged:
        parts.append(f"{100 * progress.correct / progress.judged:.0f} % correct")
    if progress.budget.spent:
        parts.append(dollars_text(progress.budget.spent))
    if progress.connections:
        parts.append(f"{progress.connections} in flight")
    return ", ".join(parts)
