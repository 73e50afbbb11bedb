"""What a person sees in the terminal: accuracy tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.tables import NOT_SCORED, UNANSWERED, Run

if TYPE_CHECKING:
    import pandas as pd

GOOD, FAIR = 85, 50
"""Percent from which an accuracy is green, or yellow."""
_PLAIN_WIDTH = 10_000


def print_table(run: Run, cells: pd.DataFrame) -> None:
    """One table on stdout: lengths as rows, conditions as columns, `accuracy ± half width` of the
    95 % interval in percent; plain text where stdout is no terminal.
    """
    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else _PLAIN_WIDTH)
    console.print(_title(run, cells), style="bold", highlight=False, markup=False, emoji=False)
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
    for outcome in UNANSWERED:
        if cells[outcome].any():
            table.add_row(outcome, *(_count(part[[outcome]]) for part in parts))
    table.add_row("not scored", *(_count(part[list(NOT_SCORED)]) for part in parts))
    return table


def _count(part: pd.DataFrame) -> Text:
    count = int(part.sum().sum())
    return Text(f"{count:,}", "bold red" if count else "dim")


def _accuracy(cell: pd.Series[float]) -> Text:
    if not cell["n"]:
        return Text("-", "dim")
    percent, half = 100 * cell["accuracy"], 50 * (cell["ci_high"] - cell["ci_low"])
    style = "green" if percent >= GOOD else "yellow" if percent >= FAIR else "red"
    return Text(f"{percent:.0f} ± {half:.0f}", style)
