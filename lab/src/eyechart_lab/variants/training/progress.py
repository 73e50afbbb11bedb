"""Shows how trainings go: a line for each with its loss and the time left, or a line at its end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from eyechart.harness.cli.terminal import live_console, one_line, say
from eyechart.harness.spec.duration import duration

_SPOKEN_S = 60.0
"""Seconds between lines about trainings under way where stderr is no terminal."""


class TrainingDisplay:
    """Is told how trainings go, see `worker.Watch`."""

    def __init__(self, labels: Mapping[Path, str], steps: int) -> None:
        """`labels` has the name of each training."""
        self._labels, self._steps = labels, steps
        self._is_live = sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=10),
            TextColumn("{task.completed:,}/{task.total:,}", markup=False),
            TextColumn("{task.fields[loss]}", markup=False),
            TimeRemainingColumn(),
            console=live_console(),
            disable=not self._is_live,
            transient=True,
        )
        self._tasks: dict[Path, TaskID] = {}
        self._begun: dict[Path, float] = {}
        self._first: dict[Path, int] = {}
        self._lock = threading.Lock()
        self._spoken = time.monotonic()
        self.ended: dict[Path, str] = {}
        """How each training ended, or why it could not go on."""

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begins(self, folder: Path) -> None:
        label = one_line(self._labels[folder])
        with self._lock:
            self._tasks[folder] = self._bar.add_task(label, total=self._steps, loss="")
            self._begun[folder] = time.monotonic()

    def goes_on(self, folder: Path, step: int, loss: float) -> None:
        self._bar.update(self._tasks[folder], completed=step, loss=f"loss {loss:.3g}")
        with self._lock:
            first = self._first.setdefault(folder, step)
            now = time.monotonic()
            if self._is_live or now - self._spoken < _SPOKEN_S or step == first:
                return
            self._spoken = now
        left = (now - self._begun[folder]) / (step - first) * (self._steps - step)
        say(
            f"{self._labels[folder]}: {step:,} of {self._steps:,} steps, loss {loss:.3g}, "
            f"{duration(left)} left; {self._count()}"
        )

    def ends(self, folder: Path, how: str) -> None:
        with self._lock:
            self.ended[folder] = how
            took = time.monotonic() - self._begun[folder]
        self._bar.remove_task(self._tasks[folder])
        say(f"{self._labels[folder]}: {how}, {duration(took)}; {self._count()}")

    def _count(self) -> str:
        return f"{len(self.ended):,} of {len(self._labels):,} done"
