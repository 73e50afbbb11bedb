"""The tables that are printed in the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from harness.analysis.comparison import ConditionComparison
from harness.analysis.comparison_text import change_sentence, finding, octaves_text
from harness.analysis.curve import Threshold
from harness.analysis.effective_length import NO_SINGLE_THRESHOLD
from harness.analysis.further import SIGNIFICANT
from harness.analysis.interval import span_text
from harness.analysis.judged_run import NOT_SCORED, UNANSWERED, JudgedRun
from harness.cli.terminal import one_line, show

if TYPE_CHECKING:
    import pandas as pd

    from harness.analysis.comparison import Comparison
    from harness.analysis.effective_length import EffectiveLength

GOOD, FAIR = 85, 50
"""Percent from which an accuracy is green, or yellow."""


def print_table(run: JudgedRun, cells: pd.DataFrame, threshold: Threshold = Threshold()) -> None:
    """Prints one table on stdout: lines as rows, conditions as columns, `accuracy ± half width`
    of the 95 % interval in percent, and the effective length; plain text where stdout is no
    terminal.
    """
    show(_bold(_title(run, cells)), _table(run, cells, threshold, _border()))


def print_groups(run: JudgedRun, groups: pd.DataFrame) -> None:
    """Prints accuracy and number of scored samples for each condition and value of metadata."""
    axes = list(run.manifest.spec["axes"])
    table = Table(box=_border())
    for column in axes:
        table.add_column(column)
    table.add_column(one_line(str(groups["metadata"].iloc[0])))
    for column in ("accuracy %", "95 % interval", "n"):
        table.add_column(column, justify="right")
    for row in groups.to_dict("records"):
        texts = [one_line(str(row[name])) for name in (*axes, "metadata_value")]
        measured = ("-", "-")
        if row["n"]:
            interval = f"{100 * row['ci_low']:.0f} to {100 * row['ci_high']:.0f}"
            measured = (f"{100 * row['accuracy']:.0f}", interval)
        table.add_row(*texts, *measured, str(row["n"]))
    show(_bold(f"{run.manifest.task}  {run.manifest.model}"), table)


def print_comparison(comparison: Comparison, margin: float) -> None:
    """Prints a table for each condition, both accuracies line by line, then what was found."""
    for compared in comparison.conditions:
        title = f"{comparison.task}  {comparison.first} against {comparison.second}"
        fixed = "  ".join(f"{axis}={value}" for axis, value in compared.condition.items())
        show(_bold(f"{title}  {fixed}".rstrip()), _comparison(compared, _border()))
    show(one_line(finding(comparison)))
    show(one_line(change_sentence(comparison, margin)))


def _border() -> box.Box:
    return box.SIMPLE_HEAD if sys.stdout.isatty() else box.ASCII2


def _bold(title: str) -> Text:
    return Text(one_line(title), "bold")


def _comparison(compared: ConditionComparison, border: box.Box) -> Table:
    table = Table(box=border)
    names = ("length", "pairs", "first %", "second %", "difference", "95 % interval", "p (Holm)")
    for name in names:
        table.add_column(name, justify="right")
    for row, p in zip(compared.paired.lengths, compared.p_values, strict=True):
        low, high = row.difference_ci
        table.add_row(
            str(row.line),
            str(row.n),
            f"{100 * row.first:.0f}",
            f"{100 * row.second:.0f}",
            f"{100 * row.difference:+.0f}",
            f"{100 * low:+.0f} to {100 * high:+.0f}",
            Text("< 0.001" if p < 0.001 else f"{p:.3f}", "bold" if p < SIGNIFICANT else ""),  # noqa: PLR2004
        )
    table.add_section()
    length = compared.length
    table.add_row(
        "sees to",
        "",
        str(length.first),
        str(length.second),
        *octaves_text(length),
    )
    if area := compared.area:
        low, high = area.difference_ci
        table.add_row(
            "area",
            "",
            f"{area.first:.2f}",
            f"{area.second:.2f}",
            f"{area.difference:+.2f}",
            f"{low:+.2f} to {high:+.2f}",
        )
    return table


def _axes(run: JudgedRun, cells: pd.DataFrame) -> tuple[list[str], list[str]]:
    axes = list(run.manifest.spec["axes"])
    varied = [axis for axis in axes if len(cells[axis].unique()) > 1]
    return varied, [axis for axis in axes if axis not in varied]


def _adaptive(run: JudgedRun, cells: pd.DataFrame) -> list[bool]:
    """Of each cell whether its condition is adaptive."""
    return [run.manifest.cells[place].condition in run.manifest.adaptive for place in cells.index]


def _title(run: JudgedRun, cells: pd.DataFrame) -> str:
    fixed = [f"{axis}={cells[axis].iloc[0]}" for axis in _axes(run, cells)[1]]
    adaptive = ["adaptive"] if all(_adaptive(run, cells)) else []
    return "  ".join([run.manifest.task, run.manifest.label, *adaptive, *fixed])


def _table(run: JudgedRun, cells: pd.DataFrame, threshold: Threshold, border: box.Box) -> Table:
    varied, _ = _axes(run, cells)
    parts = [part for _, part in cells.groupby(varied, sort=False)] if varied else [cells]
    table = Table(box=border)
    table.add_column("length", justify="right")
    for part in parts:
        names = [one_line(str(part[axis].iloc[0])) for axis in varied]
        header = "\n".join(f"{axis}={name}" for axis, name in zip(varied, names, strict=True))
        if all(_adaptive(run, part)) and not all(_adaptive(run, cells)):
            header += "\nadaptive"
        table.add_column(header or "accuracy %", justify="right")
    lines = {place: run.manifest.cells[place].line for place in cells.index}
    by_line = [{lines[place]: row for place, row in part.iterrows()} for part in parts]
    for line in sorted(set(lines.values())):
        row = [_accuracy(rows[line]) if line in rows else Text("") for rows in by_line]
        table.add_row(str(line), *row)
    table.add_section()
    estimates = [_effective_length(run, part, threshold) for part in parts]
    scale = " of own" if threshold.relative else ""
    lengths = ["-" if estimate is None else str(estimate.length) for estimate in estimates]
    spans = ["" if estimate is None else span_text(estimate.length_ci) for estimate in estimates]
    notes = ["" if estimate is None or estimate.one_threshold else "yes" for estimate in estimates]
    table.add_row(f"sees to ({100 * threshold.share:g} %{scale})", *lengths)
    table.add_row("95 % interval", *(Text(span, "dim") for span in spans))
    if any(notes):
        table.add_row(NO_SINGLE_THRESHOLD, *notes)
    for outcome in UNANSWERED:
        if cells[outcome].any():
            table.add_row(outcome, *(_count(part[[outcome]]) for part in parts))
    table.add_row("not scored", *(_count(part[list(NOT_SCORED)]) for part in parts))
    return table


def _effective_length(
    run: JudgedRun, part: pd.DataFrame, threshold: Threshold
) -> EffectiveLength | None:
    """The effective length over the shown lines of one condition."""
    condition = run.manifest.cells[part.index[0]].condition
    return run.conditions[condition].effective_length(threshold, part.index)


def _count(part: pd.DataFrame) -> Text:
    count = int(part.sum().sum())
    return Text(f"{count:,}", "bold red" if count else "dim")


def _accuracy(cell: pd.Series[float]) -> Text:
    if not cell["n"]:
        return Text("-", "dim")
    percent, half = 100 * cell["accuracy"], 50 * (cell["ci_high"] - cell["ci_low"])
    style = "green" if percent >= GOOD else "yellow" if percent >= FAIR else "red"
    return Text(f"{percent:.0f} ± {half:.0f}", style)
