"""Comparisons as a table: the rows of the file that `bench compare -o` writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from eyechart.harness.analysis.comparison.comparison import Comparison, ConditionComparison
from eyechart.harness.analysis.comparison.length_difference import LengthDifference
from eyechart.harness.analysis.comparison.paired_curves import LineDifference, PairedArea
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.length.tokens_of_row import PairTokens
from eyechart.harness.analysis.order.words import answers_of
from eyechart.harness.analysis.tables.cell_table import line_columns
from eyechart.harness.settings.judging import Margin
from eyechart.harness.spec.columns import COMPARISON, DIGITS, LINE

ALL = "all"
"""The value of `condition` in the rows of a whole pair."""


def comparison_table(comparisons: Sequence[Comparison], margin: Margin) -> pd.DataFrame:
    """See `sized_table`."""
    return sized_table(comparisons, margin)[0]


def sized_table(
    comparisons: Sequence[Comparison], margin: Margin
) -> tuple[pd.DataFrame, Sequence[int]]:
    """The rows of all comparisons, and how many of them each one has, in their order. One table of
    thousands of comparisons is made much faster than one of each.

    The columns `COMPARISON`: for each condition one row for each line, one for its effective
    length (the difference is in octaves), one each for the near and the apart length where answers
    count (no difference), and one for its area, if neither side is adaptive. Then
    the rows of the pair as a whole, of effective lengths and areas, with the verdicts.

    `…_bound` is `<` or `>` where a length lies below or above the tested range, or where a
    difference or an end of its interval has no limit in that direction and so is empty; `?` where
    not even the sign of the difference is known. Effective lengths that cannot be compared have no
    p-value.
    """
    of_each = [list(_rows(comparison, margin)) for comparison in comparisons]
    rows = [
        {
            "task": comparison.task,
            "task_version": comparison.task_version,
            "first": comparison.first,
            "second": comparison.second,
            **row,
        }
        for comparison, its_rows in zip(comparisons, of_each, strict=True)
        for row in its_rows
    ]
    table = pd.DataFrame(rows, columns=list(COMPARISON))
    counts = [*LINE, "n", "n_second", "only_first", "only_second"]
    table[counts] = table[counts].astype("Int64")
    rounded = ["value_first", "value_second", "difference"]
    rounded += ["ci_low", "ci_high", "ci90_low", "ci90_high"]
    table[rounded] = table[rounded].astype(float).round(DIGITS)
    bounds = [name for name in COMPARISON if name.endswith("_bound")]
    table[bounds] = table[bounds].fillna("")
    return table, list(map(len, of_each))


def _rows(comparison: Comparison, margin: Margin) -> Iterator[dict[str, Any]]:
    for compared in comparison.conditions:
        for row in condition_rows(compared, comparison.unit):
            yield {"condition": compared.condition.label, **row}
    length, area = comparison.length, comparison.area
    points = comparison.points(margin)
    verdict = {
        "condition": ALL,
        "second_is": comparison.change(margin),
        "margin": round(points, DIGITS) if math.isfinite(points) else None,
        "margin_factor": comparison.factor(margin),
    }
    lengths = _values(length.first, length.second) if len(comparison.conditions) == 1 else {}
    yield {
        **verdict,
        **_of_length(length, comparison.unit),
        **lengths,
        "p_holm": length.p,
        "further": {1: comparison.first, -1: comparison.second}.get(length.further),
    }
    if area is not None:
        pairs = sum(line.n for line, _ in comparison.lines)
        yield {**verdict, **_of_area(area, pairs)}


def condition_rows(compared: ConditionComparison, unit: str) -> Iterator[dict[str, Any]]:
    """The rows of a condition, without the names of the comparison."""
    for row, corrected in compared.lines:
        yield {
            "measure": "accuracy",
            **line_columns(row.line),
            "n": row.n,
            "n_second": row.n_second,
            **_difference(row),
            "only_first": row.only_first,
            "only_second": row.only_second,
            "p_holm": corrected,
        }
    yield {
        **_of_length(compared.length, unit),
        **_values(compared.length.first, compared.length.second),
        **_tokens(compared.tokens),
    }
    for name, first, second in near_and_apart(compared):
        yield {"measure": name, "unit": unit, **_values(first, second)}
    if area := compared.area:
        yield _of_area(area, sum(row.n for row in compared.paired.lengths))


def near_and_apart(
    compared: ConditionComparison,
) -> Iterator[tuple[str, Bound | None, Bound | None]]:
    """`near_length` and `apart_length` of both sides, which no test compares; `None` where they are
    not known. Left out where the answers of a side have none. A saved baseline has no answers.
    """
    if len(answers_of_sides(compared)) != 1:
        return
    near = [side.near_length for side in compared.sides]
    orders = [side.order for side in compared.sides]
    if None not in near:
        first, second = (one.length for one in near if one)
        yield "near_length", first, second
    if None not in orders:
        first, second = (one.apart.length for one in orders if one)
        yield "apart_length", first, second


def answers_of_sides(compared: ConditionComparison) -> set[str]:
    return {answers_of(side.scored) for side in compared.sides if side.scored}


def _of_length(length: LengthDifference, unit: str) -> dict[str, Any]:
    """A difference of effective lengths, in octaves and as a factor."""
    ends = dict(zip(("difference", "ci_low", "ci_high"), length.shown, strict=True))
    names = ("factor", "factor_ci_low", "factor_ci_high")
    return {
        "measure": "effective_length",
        "unit": unit,
        **{name: end if math.isfinite(end) else None for name, end in ends.items()},
        **{f"{name}_bound": _direction(end) for name, end in ends.items()},
        **dict(zip(names, length.factors, strict=True)),
        "limited_by_first": length.limits[0].by,
        "limited_by_second": length.limits[1].by,
    }


def _values(first: Bound | None, second: Bound | None) -> dict[str, Any]:
    """The lengths of both sides."""
    sides = ("first", first), ("second", second)
    return {
        **{f"value_{name}": None if one is None else one.length for name, one in sides},
        **{f"value_{name}_bound": "" if one is None else one.side for name, one in sides},
    }


def _tokens(tokens: PairTokens) -> dict[str, Any]:
    """Tokens a symbol on both sides, and where they come from."""
    first, second = tokens.first, tokens.second
    return {
        "tokens_a_symbol_first": first and round(first.value, DIGITS),
        "tokens_a_symbol_second": second and round(second.value, DIGITS),
        "tokens_a_symbol_source": " ".join(sorted({one.source for one in (first, second) if one})),
    }


def _of_area(area: PairedArea, pairs: int) -> dict[str, Any]:
    return {
        "measure": "area",
        "n": pairs,
        **_difference(area),
        "ci90_low": area.equivalence_ci[0],
        "ci90_high": area.equivalence_ci[1],
    }


def _difference(found: LineDifference | PairedArea) -> dict[str, Any]:
    return {
        "value_first": found.first,
        "value_second": found.second,
        "difference": found.difference,
        **dict(zip(("ci_low", "ci_high"), found.difference_ci, strict=True)),
        "p": found.p,
    }


def _direction(octaves: float) -> str:
    """On which side a value has no limit; empty if it is limited."""
    if math.isfinite(octaves):
        return ""
    return "?" if math.isnan(octaves) else ">" if octaves > 0 else "<"
