"""The tables of a run that are printed in the terminal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from eyechart.harness.analysis.length.bands import ShownLine, is_banded, shown_lines
from eyechart.harness.analysis.length.capacity import STATISTIC, capacity
from eyechart.harness.analysis.length.overall import overall
from eyechart.harness.analysis.length.tokens_of_row import differ
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.analysis.tables.paper_text import interval_text, noted
from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.cli.tables.layout import (
    CellText,
    Column,
    blocks,
    fits,
    letters,
    show_blocks,
    show_title,
    table,
)
from eyechart.harness.cli.terminal import show, tell
from eyechart.harness.report.ranking.rank_table import RankColumn, RankLine, columns_of, line_of
from eyechart.harness.score.outcomes import NOT_SCORED, UNANSWERED, Outcome
from eyechart.harness.spec import Condition, Line, varied_axes, varied_label
from eyechart.harness.spec.unit import singular

if TYPE_CHECKING:
    import pandas as pd

GOOD, FAIR = 85, 50
"""Percentages from which an accuracy is green, or yellow."""
ACCURACY = "accuracy, %"
_SCORED = "n"
"""The header of the number of scored samples, beside an accuracy."""
_MOST_BLOCKS = 4
"""Most blocks of accuracies under letters that a reader can follow."""


@dataclass(frozen=True)
class _ShownCondition:
    """The texts of one condition in a table."""

    judged: JudgedCondition
    axes: dict[str, str]
    """The axes that vary in the table, and its values on them."""
    header: str
    """The headers of the accuracies; the same for all conditions of a table."""
    accuracies: list[Text]
    """The accuracy on each line; with the number of scored samples if that differs in the table."""
    summary: dict[str, CellText]
    """Name -> text; the same names for all conditions of a table."""


def print_table(
    run: JudgedRun,
    conditions: Collection[Condition] | None = None,
    *,
    at: Sequence[int] = (),
) -> None:
    """Prints on stdout, for each condition, or each of `conditions`, the accuracy on every line
    with the ends of its 95 % interval, the effective length, and the accuracy at each length `at`.
    If the accuracies have different numbers of samples, these are shown beside them.

    Conditions are columns if they fit, else rows under letters, with columns of accuracies below.
    Many blocks of these are not shown, but their file is named.
    """
    judged = run.shown(conditions)
    if not judged:  # a plan without cells, as of an import that was stopped
        show_title([run.manifest.task, run.manifest.model])
        return
    by_line = shown_lines(judged)
    lines = sorted({line for of_part in by_line for line in of_part})
    measured = [line_of(part, at, RankLine()) for part in judged]
    shown = _shown(judged, by_line, columns_of(measured, run.settings, at))
    show_title(_title(run, judged))
    if not (_show_columns(shown, lines) or _show_letters(shown, lines)):
        tell(
            f"{len(shown)} conditions, the longest effective length first; the accuracies on each "
            f"line are in {run.folder / TABLE}"
        )
    labels = [varied_label(part.condition, [one.condition for one in judged]) for part in judged]
    for note in noted(zip(labels, (line.note for line in measured), strict=True)):
        tell(note)
    if any(map(is_banded, judged)):
        tell(
            "Few rows have the same length, so lengths are shown in bands of half an octave; "
            f"{TABLE} has each length."
        )


def print_groups(run: JudgedRun, groups: pd.DataFrame) -> None:
    """Prints accuracy and number of scored samples for each condition and value of metadata."""
    axes = list(run.manifest.spec["axes"])
    rows = groups.to_dict("records")
    name = str(groups["metadata"].iloc[0])
    keys = [
        *(Column([axis], [str(row[axis]) for row in rows], "left") for axis in axes),
        Column([name], [str(row["metadata_value"]) for row in rows], "left"),
    ]
    measured = [
        Column([ACCURACY], [accuracy_text(row) for row in rows]),
        Column(["n"], [str(row["n"]) for row in rows]),
    ]
    show_title([run.manifest.task, run.manifest.model])
    show_blocks(keys, measured)


def accuracy_text(cell: Mapping[Any, Any]) -> Text:
    """The accuracy of a cell in percent with its interval; a dash if no prompt had room in the
    window, or nothing was scored.
    """
    if cell["n"] == cell[Outcome.OVERFLOW]:
        return Text("–", "dim")
    percent = 100 * cell["accuracy"]
    style = "green" if percent >= GOOD else "yellow" if percent >= FAIR else "red"
    return Text(interval_text(cell["accuracy"], cell["ci_low"], cell["ci_high"]), style)


def _title(run: JudgedRun, judged: Sequence[JudgedCondition]) -> list[str]:
    varied = varied_axes([part.condition for part in judged])
    fixed = [f"{axis}={name}" for axis, name in judged[0].condition.items() if axis not in varied]
    adaptive = ["adaptive"] if all(part.adaptive for part in judged) else []
    return [run.manifest.task, run.manifest.model, *adaptive, *fixed]


def _shown(
    judged: Sequence[JudgedCondition],
    by_line: Sequence[Mapping[Line, ShownLine]],
    measured: Sequence[RankColumn],
) -> list[_ShownCondition]:
    varied = varied_axes([part.condition for part in judged])
    unanswered = [name for name in UNANSWERED if any(part.cells[name].any() for part in judged)]
    any_missing = any(part.cells[list(NOT_SCORED)].any(axis=None) for part in judged)
    adaptive = [part.adaptive for part in judged]
    costs = [part.cost for part in judged]
    days = sorted({cost.of_day for cost in costs if cost is not None})
    lines = sorted({line for of_part in by_line for line in of_part})
    header, accuracies = _accuracies(by_line, lines)
    shown = []
    tokens = _tokens(judged)
    for place, (part, cost, of_part, of_tokens) in enumerate(
        zip(judged, costs, accuracies, tokens, strict=True)
    ):
        summary: dict[str, CellText] = {column.head: column.cells[place] for column in measured}
        if len(lines) > 1 and part.run.has_given_rows:  # others have the same total
            total = overall(part)
            summary["overall, %"] = (
                "–" if total is None else interval_text(total.accuracy, total.low, total.high)
            )
        summary |= of_tokens
        if STATISTIC in part.run.spec.statistics:
            found = capacity(part)
            summary[STATISTIC] = "–" if found is None else str(found.length)
        for day in days:
            summary[f"cost, prices of {day}"] = "–" if cost is None else str(cost)
        summary |= {name: _count(part.cells[[name]]) for name in unanswered}
        if any(adaptive) and not all(adaptive):
            summary["adaptive"] = "yes" if part.adaptive else ""
        if any_missing:
            summary["not scored"] = _count(part.cells[list(NOT_SCORED)])
        axes = {axis: part.condition[axis] for axis in varied}
        shown.append(_ShownCondition(part, axes, header, of_part, summary))
    return shown


def _tokens(judged: Sequence[JudgedCondition]) -> list[dict[str, CellText]]:
    """For each condition its tokens a symbol by their name; empty unless they differ, or
    neighbouring symbols share tokens.
    """
    tokens = [part.tokens_a_symbol for part in judged]
    if not differ(tokens) and not any(one and one.is_merged for one in tokens):
        return [{} for _ in judged]
    name = f"tokens a {singular(judged[0].run.spec.unit)}"
    return [{name: "–" if one is None else str(one)} for one in tokens]


def _accuracies(
    cells: Sequence[Mapping[Line, ShownLine]], lines: Sequence[Line]
) -> tuple[str, list[list[Text]]]:
    """The header of the accuracies, and those of each condition, line by line."""
    sizes = {int(row["n"]) for of_part in cells for row in of_part.values()}
    digits = max(map(len, map(str, sizes))) if len(sizes) > 1 else 0

    def text(row: ShownLine) -> Text:
        accuracy = accuracy_text(row)
        return accuracy.append(f"  {row['n']:>{digits}.0f}", "dim") if digits else accuracy

    accuracies = [
        [text(of_part[line]) if line in of_part else Text("") for line in lines]
        for of_part in cells
    ]
    return f"{ACCURACY}  {_SCORED:>{digits}}" if digits else ACCURACY, accuracies


def _count(part: pd.DataFrame) -> Text:
    count = int(part.sum().sum())
    return Text(f"{count:,}", "bold red" if count else "dim")


def _show_columns(shown: Sequence[_ShownCondition], lines: Sequence[Line]) -> bool:
    """Shows conditions as columns, if they fit; returns whether they do."""
    names = list(shown[0].summary)
    columns = [
        Column([*shown[0].axes, "length"], [*map(str, lines), *names]),
        *(
            Column([*part.axes.values(), part.header], [*part.accuracies, *part.summary.values()])
            for part in shown
        ),
    ]
    if len(shown) > 1 and not fits(columns):
        return False
    show(table(columns, [len(lines)]))
    return True


def _show_letters(shown: Sequence[_ShownCondition], lines: Sequence[Line]) -> bool:
    """Shows conditions under letters, the longest effective length first and those that are not
    ranked last: what sums each up, and then its accuracies, if the blocks are few; returns whether
    they are.
    """

    def rank(part: _ShownCondition) -> tuple[bool, float, int]:
        estimate = part.judged.effective_length()
        if estimate is None or estimate.length is None:
            return False, -1.0, 0
        return estimate.is_ranked, *estimate.length.order

    ranked = sorted(shown, key=rank, reverse=True)
    names = letters(len(ranked))
    accuracies = [
        Column([name, part.header], part.accuracies)
        for name, part in zip(names, ranked, strict=True)
    ]
    parts = list(blocks([Column(["length"], [*map(str, lines)])], accuracies))
    are_few = len(parts) <= _MOST_BLOCKS
    summary = [Column([name], [part.summary[name] for part in ranked]) for name in shown[0].summary]
    legend = blocks([Column([""], names, "left")], [*_axes(ranked), *summary])
    show(*map(table, (*legend, *(parts if are_few else ()))))
    return are_few


def _axes(shown: Sequence[_ShownCondition]) -> list[Column]:
    """A column for each axis that varies."""
    return [Column([axis], [part.axes[axis] for part in shown], "left") for axis in shown[0].axes]
