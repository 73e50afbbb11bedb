"""The tables of comparisons that are printed in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from rich.text import Text

from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.family import Ranking
from eyechart.harness.cli.tables.layout import Column, letters, show_blocks, show_title
from eyechart.harness.cli.terminal import tell
from eyechart.harness.report.ranking.comparison_columns import (
    ComparisonColumn,
    columns_of_lines,
    columns_of_pairs,
    columns_of_runs,
    columns_of_totals,
    factor_notes,
    pairs_title,
    run_notes,
)
from eyechart.harness.settings.judging import Margin
from eyechart.harness.spec import varied_axes


def print_comparison(comparison: Comparison) -> None:
    """Prints for each condition its lines, and effective lengths and areas."""
    for compared in comparison.conditions:
        sides = f"{comparison.first} against {comparison.second}"
        fixed = [f"{axis}={value}" for axis, value in compared.condition.items()]
        show_title([comparison.task, sides, *fixed])
        if compared.paired.lengths:
            _show(columns_of_lines(compared))
        _show(columns_of_totals(comparison, compared))
    for note in factor_notes(compared.length for compared in comparison.conditions):
        tell(note)


def _show(columns: Iterable[ComparisonColumn], keys: int = 1) -> None:
    shown = [Column(one.head.split("\n"), _cells(one), _side(one)) for one in columns]
    show_blocks(shown[:keys], shown[keys:])


def _side(column: ComparisonColumn) -> Literal["left", "right"]:
    return "left" if column.is_text else "right"


def _cells(column: ComparisonColumn) -> list[Text]:
    """A number that is significant is bold."""
    numbers = column.numbers or [None] * len(column.cells)
    return [
        Text(cell, "bold" if number is not None and number < column.strong_below else "")
        for cell, number in zip(column.cells, numbers, strict=True)
    ]


def print_ranking(ranking: Ranking, margin: Margin) -> None:
    """Prints the runs by effective length under letters, then each pair of them."""
    names = letters(len(ranking.runs))
    task, count = ranking.runs[0].run.manifest.task, len(ranking.runs)
    varied = varied_axes(ranking.conditions)
    fixed = [
        f"{axis}={value}" for axis, value in ranking.conditions[0].items() if axis not in varied
    ]
    show_title([task, f"{count} runs by effective length", *fixed])
    _show([ComparisonColumn("", names, is_text=True), *columns_of_runs(ranking, margin, names)])
    for note in run_notes(ranking, margin, names):
        tell(note)
    show_title(pairs_title(ranking).split(" "), " ")
    _show(columns_of_pairs(ranking, names), keys=2)
    for note in factor_notes(comparison.length for comparison in ranking.comparisons.values()):
        tell(note)
