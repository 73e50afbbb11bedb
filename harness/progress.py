"""A run's progress on stderr, where that is a terminal."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness import runner

_REFRESH_S = 0.2


class LiveProgress:
    """Answered, rate and time left of one run, on stderr and only where that is a terminal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._watcher: asyncio.Task[None] | None = None
        self._shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[trouble]}"),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )

    def __enter__(self) -> Self:
        return self

    def follow(self, progress: runner.Progress, pending: int) -> None:
        """Begins to show `progress` of `pending` samples; needs a running event loop."""
        if self._shown.disable or not pending:
            return
        self._shown.start()
        task = self._shown.add_task(self._name, total=pending, rate="", trouble="")

        async def watch() -> None:
            while True:
                rate = progress.done / max(progress.elapsed_s, 1e-9)
                trouble = f"{progress.retries} retries" if progress.retries else ""
                trouble += f" {progress.failed} failed" if progress.failed else ""
                self._shown.update(
                    task, completed=progress.done, rate=f"{rate:.0f}/s", trouble=trouble.strip()
                )
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
