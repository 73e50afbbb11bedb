"""A run's progress on stderr, where that is a terminal."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness.cli.terminal import live_console, one_line
from harness.run import pool
from harness.run.open_run import Judge, Wanted
from harness.score.verdict import judge_record

_REFRESH_S = 0.2


class LiveProgress:
    """One run on one line, on stderr and only where that is a terminal."""

    def __init__(self, name: str) -> None:
        self._name = one_line(name)
        self._watcher: asyncio.Task[None] | None = None
        self._shown = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=live_console(),
            disable=not sys.stderr.isatty(),
            transient=True,
        )

    @property
    def shown(self) -> bool:
        """Whether anybody sees it."""
        return not self._shown.disable

    def __enter__(self) -> Self:
        return self

    def follow(self, progress: pool.Progress, pending: int) -> None:
        """Begins to show `progress` of `pending` samples; needs a running event loop."""
        if self._shown.disable or not pending:
            return
        self._shown.start()
        task = self._shown.add_task(self._name, total=pending, state="")

        async def watch() -> None:
            while True:
                self._shown.update(task, completed=progress.done, state=state(progress))
                await asyncio.sleep(_REFRESH_S)

        self._watcher = asyncio.get_running_loop().create_task(watch())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        self._shown.stop()


def judge_of(wanted: Wanted) -> Judge:
    """Says which replies of a run are correct."""
    answer = wanted.plan.task.spec.answer

    def judge(record: dict[str, Any]) -> bool | None:
        outcome = judge_record(record, answer).outcome
        return None if outcome == "error" else outcome == "correct"

    return judge


def state(progress: pool.Progress) -> str:
    """Rate, accuracy, cost, connections and trouble so far; what is nothing is left out."""
    said = [f"{progress.done / max(progress.elapsed_s, 1e-9):.0f}/s"]
    if progress.judged:
        said.append(f"{100 * progress.correct / progress.judged:.0f}% right")
    if progress.budget.spent:
        said.append(f"${progress.budget.spent:.4f}")
    if progress.connections:
        said.append(f"{progress.connections} at once")
    if progress.retries:
        said.append(f"{progress.retries} retries")
    if progress.failed:
        said.append(f"{progress.failed} failed")
    return ", ".join(said)
