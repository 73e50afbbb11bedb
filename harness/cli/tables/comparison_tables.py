"""The tables of comparisons that are printed in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from eyechart.harness.analysis.comparison.beside import beside_rows
from eyechart.harness.analysis.comparison.comparison import Comparison, ConditionComparison
from eyechart.harness.analysis.comparison.comparison_cells import (
    OF_FACTORS,
    accuracy_cell,
    area_rows,
    factor_cell,
    factor_span,
    factor_text,
    found_text,
    points_cell,
    seen_cell,
)
from eyechart.harness.analysis.comparison.comparison_text import margin_text
from eyechart.harness.analysis.comparison.comparison_text import p_text as in_text
from eyechart.harness.analysis.comparison.family import Ranking, ranks_text
from eyechart.harness.analysis.comparison.length_difference import LengthDifference
from eyechart.harness.analysis.comparison.paired_curves import LineDifference, PairedArea
from eyechart.harness.analysis.comparison.signed_text import points_text
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.tables.paper_text import length_head
from eyechart.harness.cli.tables.layout import Column, letters, show_blocks, show_title
from eyechart.harness.cli.tables.run_tables import INTERVAL
from eyechart.harness.cli.terminal import tell
from eyechart.harness.settings.judging import Margin
from eyechart.harness.spec import varied_axes


def print_comparison(comparison: Comparison) -> None:
    """Prints for each condition its lines, and effective lengths and areas."""
    for compared in comparison.conditions:
        sides = f"{comparison.first} against {comparison.second}"
        fixed = [f"{axis}={value}" for axis, value in compared.condition.items()]
        show_title([comparison.task, sides, *fixed])
        if compared.paired.lengths:
            first, *columns = _lines(compared)
            show_blocks([first], columns)
        first, *columns = _lengths(comparison, compared)
        show_blocks([first], columns)
    _tell_of_factors(compared.length for compared in comparison.conditions)


def _lines(compared: ConditionComparison) -> list[Column]:
    rows = [row for row, _ in compared.lines]
    counts = ["pairs", *map(str, (row.n for row in rows))]
    if not compared.is_paired:
        counts = ["n", *(f"{row.n}, {row.scored_second}" for row in rows)]
    elif _pairs(rows) is not None:
        counts = []
    return [
        Column(["length"], [str(row.line) for row in rows]),
        *([Column(counts[:1], counts[1:])] if counts else []),
        Column(["first, %"], [accuracy_cell(row.first, row.n) for row in rows]),
        Column(["second, %"], [accuracy_cell(row.second, row.scored_second) for row in rows]),
        Column(["difference, points"], [points_cell(row) for row in rows]),
        Column(["p (Holm)"], [p_text(p) for _, p in compared.lines]),
    ]


def _pairs(rows: list[LineDifference]) -> int | None:
    """The number of pairs on every line; `None` if it differs between lines."""
    counts = {row.n for row in rows}
    return counts.pop() if len(counts) == 1 else None


def p_text(p: float | None) -> Text:
    """A corrected p-value, bold where it is significant; a dash without one."""
    if p is None:
        return Text("–")
    return Text(in_text(p), "bold" if p < SIGNIFICANT else "")


def _lengths(comparison: Comparison, compared: ConditionComparison) -> list[Column]:
    length = compared.length
    rows = [
        (
            length_head(comparison.threshold),
            seen_cell(length.first, length.limits[0]),
            seen_cell(length.second, length.limits[1]),
            factor_cell(length),
        ),
        *beside_rows(compared),
        *area_rows(compared.area),
    ]
    pairs = _pairs([row for row, _ in compared.lines]) if compared.is_paired else None
    header = "" if pairs is None else f"{pairs} pair{'s' * (pairs != 1)} a line"
    header = header if compared.is_paired else "unpaired"
    names = (header, "first", "second", f"first against second ({INTERVAL})")
    return [
        Column([name], cells, "right" if place else "left")
        for place, (name, cells) in enumerate(zip(names, zip(*rows, strict=True), strict=True))
    ]


def _tell_of_factors(lengths: Iterable[LengthDifference]) -> None:
    """Explains what a factor is, if one is not the ratio of the two lengths beside it."""
    if not all(length.is_the_ratio for length in lengths):
        tell(OF_FACTORS)


def print_ranking(ranking: Ranking, margin: Margin) -> None:
    """Prints the runs by effective length under letters, then each pair of them, then the verdict
    on each run compared with the one named first.
    """
    names = letters(len(ranking.runs))
    task, count = ranking.runs[0].run.manifest.task, len(ranking.runs)
    varied = varied_axes(ranking.conditions)
    fixed = [
        f"{axis}={value}" for axis, value in ranking.conditions[0].items() if axis not in varied
    ]
    show_title([task, f"{count} runs by effective length", *fixed])
    show_blocks([Column([""], names, "left")], list(_ranked(ranking)))
    pairs = list(ranking.comparisons.items())
    apart = sum(not comparison.is_paired for _, comparison in pairs)
    title = "each pair on the same samples"
    if (tests := len(ranking.tested)) > 1:
        title += f", Holm's correction for {tests:,} pairs"
    if apart:
        title = title.replace("on the same samples", f"({apart} unpaired, since the rows differ)")
    if len(ranking.conditions) > 1:
        title += f", mean of {len(ranking.conditions)} conditions"
    show_title(title.split(" "), " ")
    keys = Column(
        ["pair"], [f"{names[left]}, {names[right]}" for (left, right), _ in pairs], "left"
    )
    show_blocks([keys], _pair_columns(names, ranking))
    reference = names[ranking.reference]
    others = list(ranking.against_reference)
    title = f"compared with {reference}, the first run; the margin is "
    title += margin_text(margin, *(comparison for _, comparison in others))
    show_title(title.split(" "), " ")
    columns = [
        Column(["is"], [comparison.change(margin) for _, comparison in others], "left"),
        Column(
            [f"area, points ({reference} minus it, 90 % interval)"],
            [_area_points(comparison.area) for _, comparison in others],
        ),
    ]
    show_blocks([Column([""], [names[place] for place, _ in others], "left")], columns)
    _tell_of_factors(comparison.length for comparison in ranking.comparisons.values())


def _area_points(area: PairedArea | None) -> str:
    """The difference of two areas, with the interval that decides equivalence."""
    return "–" if area is None else points_text(area.difference, area.equivalence_ci, 1)


def _ranked(ranking: Ranking) -> Iterator[Column]:
    yield Column(["run"], [ranked.name for ranked in ranking.runs], "left")
    yield Column(["rank"], [ranks_text(ranking.ranks(place)) for place in range(len(ranking.runs))])
    estimates = [list(ranked.estimates.values()) for ranked in ranking.runs]
    compared = next(iter(ranking.comparisons.values()))
    head = length_head(compared.threshold)
    for place, condition in enumerate(ranking.conditions):
        values = [f"{axis}={condition[axis]}" for axis in varied_axes(ranking.conditions)]
        column = [of_run[place] for of_run in estimates]
        yield Column(
            [*values, head, INTERVAL],
            ["–" if estimate is None else str(estimate) for estimate in column],
        )


def _pair_columns(names: list[str], ranking: Ranking) -> list[Column]:
    pairs = list(ranking.comparisons.items())
    lengths = [comparison.length for _, comparison in pairs]
    verdicts = [
        found_text(comparison.length, names[left], names[right])
        for (left, right), comparison in pairs
    ]
    return [
        Column(["factor"], [factor_text(length) for length in lengths]),
        Column([INTERVAL], [factor_span(length) for length in lengths]),
        Column(["p (Holm)"], [p_text(length.p) for length in lengths]),
        Column(["found"], verdicts, "left"),
    ]
