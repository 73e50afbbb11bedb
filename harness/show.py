"""What a person sees in the terminal: accuracy tables and live progress."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from harness.tables import NOT_SCORED, Run

if TYPE_CHECKING:
    import pandas as pd

    from harness import runner

GOOD, FAIR = 85, 50
"""Percent from which an accuracy is green, or yellow."""
_REFRESH_S = 0.2
_PLAIN_WIDTH = 10_000


def print_table(run: Run, cells: pd.DataFrame) -> None:
    """One table on stdout: lengths as rows, conditions as columns, `accuracy ± half width` of the
    95 % interval in percent; plain text where stdout is no terminal.
    """
    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else _PLAIN_WIDTH)
    console.print(_title(run, cells), style="bold", highlight=False)
    console.print(_table(run, cells, box.SIMPLE_HEAD if terminal else box.ASCII2))


def _axes(run: Run, cells: pd.DataFrame) -> tuple[list[str], list[str]]:
    axes = list(run.manifest.spec["axes"])
    varied = [axis for axis in axes if len(cells[axis].unique()) > 1]
    return varied, [axis for axis in axes if axis not in varied]


def _title(run: Run, cells: pd.DataFrame) -> str:
    fixed = [f"{axis}={cells[axis].iloc[0]}" for axis in _axes(run, cells)[1]]
    return "  ".join([run.manifest.task, run.manifest.model, *fixed])


def _table(run: Run, cells: pd.DataFrame, border: box.Box) -> Table:
    varied, _ = _axes(run, cells)
    parts = [part for _, part in cells.groupby(varied, sort=False)] if varied else [cells]
    table = Table(box=border)
    table.add_column("length", justify="right")
    for part in parts:
        names = [str(part[axis].iloc[0]) for axis in varied]
        header = "\n".join(f"{axis}={name}" for axis, name in zip(varied, names, strict=True))
        table.add_column(header or "accuracy %", justify="right")
    by_length = [part.set_index("length") for part in parts]
    for length in sorted(cells["length"].unique()):
        row = [
            _accuracy(part.loc[length]) if length in part.index else Text("") for part in by_length
        ]
        table.add_row(str(length), *row)
    table.add_section()
    left = [int(part[list(NOT_SCORED)].sum().sum()) for part in parts]
    table.add_row(
        "not scored", *(Text(f"{count:,}", "bold red" if count else "dim") for count in left)
    )
    return table


def _accuracy(cell: pd.Series[float]) -> Text:
    if not cell["n"]:
        return Text("-", "dim")
    percent, half = 100 * cell["accuracy"], 50 * (cell["ci_high"] - cell["ci_low"])
    style = "green" if percent >= GOOD else "yellow" if percent >= FAIR else "red"
    return Text(f"{percent:.0f} ± {half:.0f}", style)


def plain_columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows with their columns aligned, two spaces between."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


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
