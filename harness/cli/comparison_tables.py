"""The tables of comparisons that are printed in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from rich.text import Text

from eyechart.harness.analysis.comparison import AnyLength, Comparison, ConditionComparison
from eyechart.harness.analysis.comparison_text import finding
from eyechart.harness.analysis.comparison_text import p_text as in_text
from eyechart.harness.analysis.curve import SIGNIFICANT
from eyechart.harness.analysis.effective_length import (
    NO_SINGLE_THRESHOLD,
    few,
    length_text,
    limited_by,
)
from eyechart.harness.analysis.factor import NOTE, differs_from_ratio, factors, number_text
from eyechart.harness.analysis.family import Ranking
from eyechart.harness.analysis.further import LengthDifference
from eyechart.harness.analysis.in_tokens import no_tokens
from eyechart.harness.analysis.interval import Bound, wilson
from eyechart.harness.analysis.limit import Limit
from eyechart.harness.analysis.paired import PairedArea
from eyechart.harness.analysis.paper_text import interval_text
from eyechart.harness.analysis.run_text import ranking_finding, ranking_notes
from eyechart.harness.analysis.signed import signed
from eyechart.harness.analysis.tokens_text import unit_note
from eyechart.harness.analysis.unpaired import UnpairedLength
from eyechart.harness.cli.layout import Column, blocks, joined, letters, table
from eyechart.harness.cli.tables import INTERVAL, bold, sees_text
from eyechart.harness.cli.terminal import show, tell
from eyechart.harness.spec import varied_axes

_NOT_COMPARABLE = "not comparable"


def print_comparison(comparison: Comparison, margin: float) -> None:
    """Prints for each condition its lines, and effective lengths and areas; then the finding."""
    for compared in comparison.conditions:
        sides = f"{comparison.first} against {comparison.second}"
        fixed = [f"{axis}={value}" for axis, value in compared.condition.items()]
        show(*map(bold, joined([comparison.task, sides, *fixed])))
        if compared.paired.lengths:
            first, *columns = _lines(compared)
            for block in blocks([first], columns):
                show(table(block))
        first, *columns = _lengths(comparison, compared)
        for block in blocks([first], columns):
            show(table(block))
        pairs = sum(row.n for row, _ in compared.lines)
        if compared.is_paired and (note := few(pairs, compared.rows)):
            tell(f"Each of the two effective lengths is {note}.")
    _tell_of_factors(compared.length for compared in comparison.conditions)
    tell(finding(comparison, margin))


def _lines(compared: ConditionComparison) -> list[Column]:
    rows = [row for row, _ in compared.lines]
    counts = ["pairs", *map(str, (row.n for row in rows))]
    if not compared.is_paired:
        counts = ["n", *(f"{row.n}, {_second(row)}" for row in rows)]
    elif _pairs(rows) is not None:
        counts = []
    return [
        Column(["length"], [str(row.line) for row in rows]),
        *([Column(counts[:1], counts[1:])] if counts else []),
        Column(["first, %"], [_accuracy(row.first, row.n) for row in rows]),
        Column(["second, %"], [_accuracy(row.second, _second(row)) for row in rows]),
        Column(["difference, points"], [_points(row) for row in rows]),
        Column(["p (Holm)"], [p_text(p) for _, p in compared.lines]),
    ]


def _second(row: AnyLength) -> int:
    """Scored samples of the second side."""
    return row.n_second if isinstance(row, UnpairedLength) else row.n


def _pairs(rows: list[AnyLength]) -> int | None:
    """The number of pairs on every line; `None` if it differs between lines."""
    counts = {row.n for row in rows}
    return counts.pop() if len(counts) == 1 else None


def _accuracy(share: float, n: int) -> str:
    low, high = wilson(round(share * n), n) or (math.nan, math.nan)
    return interval_text(share, low, high)


def _points(row: AnyLength) -> str:
    low, high = row.difference_ci
    return f"{signed(100 * row.difference)} ({signed(100 * low)} to {signed(100 * high)})"


def p_text(p: float | None) -> Text:
    """A corrected p-value, bold where it is significant; a dash without one."""
    if p is None:
        return Text("-")
    return Text(in_text(p), "bold" if p < SIGNIFICANT else "")


def _lengths(comparison: Comparison, compared: ConditionComparison) -> list[Column]:
    length = compared.length
    rows = [
        (
            sees_text(comparison.threshold, in_tokens=comparison.in_tokens),
            _seen(length.first, length.limits[0]),
            _seen(length.second, length.limits[1]),
            _factor_cell(length),
        ),
        *_areas(compared.area),
    ]
    pairs = _pairs([row for row, _ in compared.lines]) if compared.is_paired else None
    header = "" if pairs is None else f"{pairs} pair{'s' * (pairs != 1)} a line"
    header = header if compared.is_paired else "unpaired"
    names = (header, "first", "second", f"first against second ({INTERVAL})")
    return [
        Column([name], cells, "right" if place else "left")
        for place, (name, cells) in enumerate(zip(names, zip(*rows, strict=True), strict=True))
    ]


def _seen(length: Bound | None, limit: Limit) -> str:
    """`28`, `> 20, limited by room`."""
    return ", ".join(filter(None, (length_text(length), limited_by(limit.by))))


def _areas(area: PairedArea | None) -> list[tuple[str, str, str, str]]:
    """A row with both areas and their difference, if there are areas."""
    if area is None:
        return []
    low, high = area.difference_ci
    difference = f"{signed(area.difference, 2)} ({signed(low, 2)} to {signed(high, 2)})"
    return [("area", f"{area.first:.2f}", f"{area.second:.2f}", difference)]


def _factor_cell(length: LengthDifference) -> str:
    """The factor between two lengths with its interval."""
    if length.is_limited:
        return _NOT_COMPARABLE
    if not length.one_threshold:
        return NO_SINGLE_THRESHOLD
    middle, span = factor_text(length), factor_span(length)
    return f"factor {span}" if middle == "-" else f"{middle} times ({span})"


def factor_text(length: LengthDifference) -> str:
    """The factor between two lengths; a dash if it is not limited."""
    middle = factors(length)[0]
    return "-" if middle is None else number_text(middle)


def factor_span(length: LengthDifference) -> str:
    """The interval of the factor between two lengths."""
    _, low, high = factors(length)
    if low is not None and high is not None:
        return f"{number_text(low)} to {number_text(high)}"
    if low is not None:
        return f"at least {number_text(low)}"
    return "not limited" if high is None else f"at most {number_text(high)}"


def _tell_of_factors(lengths: Iterable[LengthDifference]) -> None:
    """Explains what a factor is, if one is not the ratio of the two lengths beside it."""
    if differs_from_ratio(lengths):
        tell(NOTE)


def print_ranking(ranking: Ranking, margin: float) -> None:
    """Prints the runs by effective length under letters, then each pair of them, then the verdict
    on each run compared with the one named first, and the finding.
    """
    names = letters(len(ranking.runs))
    task, count = ranking.runs[0].run.manifest.task, len(ranking.runs)
    varied = varied_axes(ranking.conditions)
    fixed = [
        f"{axis}={value}" for axis, value in ranking.conditions[0].items() if axis not in varied
    ]
    show(*map(bold, joined([task, f"{count} runs by effective length", *fixed])))
    for block in blocks([Column([""], names, "left")], list(_ranked(ranking))):
        show(table(block))
    pairs = list(ranking.comparisons.items())
    apart = sum(not comparison.is_paired for _, comparison in pairs)
    title = "each pair on the same samples"
    if (tests := len(ranking.tested)) > 1:
        title += f", Holm's correction for {tests} pairs"
    if apart:
        title = title.replace("on the same samples", f"({apart} unpaired, since the rows differ)")
    if len(ranking.conditions) > 1:
        title += f", mean of {len(ranking.conditions)} conditions"
    show(*map(bold, joined(title.split(" "), " ")))
    keys = Column(
        ["pair"], [f"{names[left]}, {names[right]}" for (left, right), _ in pairs], "left"
    )
    for block in blocks([keys], _pair_columns(names, ranking)):
        show(table(block))
    reference = names[ranking.reference]
    title = f"compared with {reference}, which is named first; margin {100 * margin:g} points"
    show(*map(bold, joined(title.split(" "), " ")))
    others = list(ranking.against_reference)
    columns = [
        Column(["is"], [comparison.change(margin) for _, comparison in others], "left"),
        Column(
            [f"area, points ({reference} minus it, 90 % interval)"],
            [_area_points(comparison.area) for _, comparison in others],
        ),
    ]
    for block in blocks([Column([""], [names[place] for place, _ in others], "left")], columns):
        show(table(block))
    _tell_of_factors(comparison.length for comparison in ranking.comparisons.values())
    tell(ranking_finding(ranking))
    if pairs[0][1].in_tokens:
        judged = [
            ranked.run.conditions[condition]
            for ranked in ranking.runs
            for condition in ranking.conditions
        ]
        tokens = [one.tokens_a_symbol or no_tokens(one) for one in judged]
        tell(unit_note(tokens, ranking.runs[0].run.spec.unit))
    for note in ranking_notes(ranking):
        tell(note)


def _area_points(area: PairedArea | None) -> str:
    """The difference of two areas, with the interval that decides equivalence."""
    if area is None:
        return "-"
    low, high = area.equivalence_ci
    return f"{signed(100 * area.difference, 1)} ({signed(100 * low, 1)} to {signed(100 * high, 1)})"


def _ranked(ranking: Ranking) -> Iterator[Column]:
    yield Column(["run"], [ranked.name for ranked in ranking.runs], "left")
    estimates = [list(ranked.estimates.values()) for ranked in ranking.runs]
    compared = next(iter(ranking.comparisons.values()))
    sees = sees_text(compared.threshold, in_tokens=compared.in_tokens)
    for place, condition in enumerate(ranking.conditions):
        values = [f"{axis}={condition[axis]}" for axis in varied_axes(ranking.conditions)]
        column = [of_run[place] for of_run in estimates]
        yield Column(
            [*values, sees, INTERVAL],
            ["-" if estimate is None else str(estimate) for estimate in column],
        )


def _pair_columns(names: list[str], ranking: Ranking) -> list[Column]:
    pairs = list(ranking.comparisons.items())
    lengths = [comparison.length for _, comparison in pairs]
    verdicts = [
        {1: f"{names[left]} sees further", -1: f"{names[right]} sees further"}.get(
            comparison.length.further,
            "no difference found" if comparison.length.is_comparable else _NOT_COMPARABLE,
        )
        for (left, right), comparison in pairs
    ]
    return [
        Column(["factor"], [factor_text(length) for length in lengths]),
        Column([INTERVAL], [factor_span(length) for length in lengths]),
        Column(["p (Holm)"], [p_text(length.p) for length in lengths]),
        Column(["found"], verdicts, "left"),
    ]
