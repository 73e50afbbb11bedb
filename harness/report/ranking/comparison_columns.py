"""The tables of comparisons: what each column or row is, for the terminal, for papers, and for
pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from eyechart.harness.analysis.comparison.comparison import Comparison, ConditionComparison
from eyechart.harness.analysis.comparison.comparison_table import answers_of_sides, near_and_apart
from eyechart.harness.analysis.comparison.comparison_text import (
    factor_span,
    margin_text,
    number_text,
    p_text,
)
from eyechart.harness.analysis.comparison.family import Ranking, ranks_text
from eyechart.harness.analysis.comparison.length_difference import LengthDifference
from eyechart.harness.analysis.comparison.paired_curves import PairedArea
from eyechart.harness.analysis.comparison.signed_text import difference_text, points_text
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.length.effective_length import (
    NO_SINGLE_THRESHOLD,
    length_text,
    limited_by,
)
from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.analysis.order.words import words_of
from eyechart.harness.analysis.tables.paper_text import (
    NOTED,
    interval_text,
    length_cell,
    length_head,
    noted,
)
from eyechart.harness.settings.judging import Margin
from eyechart.harness.spec import varied_label

_NOT_COMPARABLE = "not comparable"
_OF_FACTORS = (
    "A factor has an estimate of its own, so it may differ from the ratio of the two effective "
    "lengths."
)


class ComparisonColumn(NamedTuple):
    head: str
    """Its lines, where a terminal shows more than one."""
    cells: Sequence[str]
    is_text: bool = False
    """Whether its cells are words, and no numbers."""
    numbers: Sequence[float | None] = ()
    """What a page sorts the cells by, if that is no text."""
    strong_below: float = 0.0
    """A number below it is significant."""
    name: str = ""
    """Columns of lines and of totals with one name stand below each other in one table."""


def columns_of_lines(
    compared: ConditionComparison, names: Sequence[str] = ("first", "second")
) -> list[ComparisonColumn]:
    """First and second on each line, and how many pairs that are, unless all lines have as many."""
    rows = [row for row, _ in compared.lines]
    (first, second), counts = names, []
    if not compared.is_paired:
        counts = [ComparisonColumn("n", [f"{row.n}, {row.scored_second}" for row in rows])]
    elif not _pairs(compared):
        counts = [ComparisonColumn("pairs", [str(row.n) for row in rows])]
    return [
        ComparisonColumn("length", [str(row.line) for row in rows], name="row"),
        *counts,
        ComparisonColumn(
            f"{first}, %", [_accuracy(row.first, row.n) for row in rows], name="first"
        ),
        ComparisonColumn(
            f"{second}, %",
            [_accuracy(row.second, row.scored_second) for row in rows],
            name="second",
        ),
        ComparisonColumn(
            "difference, points",
            [points_text(row.difference, row.difference_ci) for row in rows],
            name="difference",
        ),
        _p_column([p for _, p in compared.lines]),
    ]


def _pairs(compared: ConditionComparison) -> str:
    """How many pairs each line has, if all have as many."""
    counts = {row.n for row, _ in compared.lines}
    return "".join(f"{n} pair{'s' * (n != 1)} a line" for n in counts) if len(counts) == 1 else ""


def columns_of_totals(
    comparison: Comparison, compared: ConditionComparison
) -> list[ComparisonColumn]:
    """Below the lines: effective lengths and areas."""
    length = compared.length
    sides = [
        ", ".join(filter(None, (length_cell(estimate).rstrip(NOTED), limited_by(limit.by))))
        for estimate, limit in zip(compared.estimates, length.limits, strict=True)
    ]
    rows = [
        (length_head(comparison.threshold), *sides, factor_cell(length)),
        *_near_and_apart(compared),
        *area_rows(compared.area),
    ]
    key = _pairs(compared) if compared.is_paired else "unpaired"
    heads = {
        "row": key,
        "first": "first",
        "second": "second",
        "difference": "first against second",
    }
    return [
        ComparisonColumn(head, cells, is_text=name == "row", name=name)
        for (name, head), cells in zip(heads.items(), zip(*rows, strict=True), strict=True)
    ]


def columns_of_runs(
    ranking: Ranking, margin: Margin, names: Sequence[str]
) -> Iterator[ComparisonColumn]:
    """The runs by effective length, compared with the one that was named first, which a head calls
    as `names` do.
    """
    places = range(len(ranking.runs))
    others = dict(ranking.against_reference)
    reference = names[ranking.reference]
    yield ComparisonColumn("run", [one.name for one in ranking.runs], is_text=True)
    yield ComparisonColumn("rank", [ranks_text(ranking.ranks(place)) for place in places])
    head = length_head(ranking.runs[0].run.settings.threshold)
    for condition in ranking.conditions:
        label = varied_label(condition, ranking.conditions)
        yield ComparisonColumn(
            f"{head}\nwith {label}" if label else head,
            [length_cell(one.estimates[condition]) for one in ranking.runs],
        )
    areas = [others[place].area if place in others else None for place in places]
    if any(areas):
        yield ComparisonColumn(
            f"area in points\n({reference} minus it,\n90 % interval)",
            [
                "–" if area is None else points_text(area.difference, area.equivalence_ci, 1)
                for area in areas
            ],
        )
    changes = [others[place].change(margin) if place in others else "–" for place in places]
    yield ComparisonColumn(f"compared\nwith {reference}", changes, is_text=True)


def run_notes(ranking: Ranking, margin: Margin, names: Sequence[str]) -> list[str]:
    """What stands below `columns_of_runs`: what the signs behind lengths mean, and the margin."""
    conditions = ranking.conditions
    of_lengths = noted(
        (
            ", ".join(filter(None, (name, varied_label(condition, conditions)))),
            "" if estimate is None else estimate.note,
        )
        for name, one in zip(names, ranking.runs, strict=True)
        for condition, estimate in one.estimates.items()
    )
    compared = [comparison for _, comparison in ranking.against_reference]
    return [*of_lengths, f"The margin of the comparisons is {margin_text(margin, *compared)}."]


def pairs_title(ranking: Ranking) -> str:
    unpaired = sum(not comparison.is_paired for comparison in ranking.comparisons.values())
    tests, conditions = len(ranking.tested), len(ranking.conditions)
    said = {
        "factors between the effective lengths of each pair": True,
        f"p with Holm's correction for {tests:,} pairs and intervals without": tests > 1,
        f"{unpaired} unpaired, since the rows differ": unpaired,
        f"mean of {conditions} conditions": conditions > 1,
    }
    return ", ".join(text for text, is_so in said.items() if is_so)


def columns_of_pairs(ranking: Ranking, names: Sequence[str]) -> list[ComparisonColumn]:
    """Each pair of runs, which are called as `names` do."""
    places = list(ranking.comparisons)
    lengths = [comparison.length for comparison in ranking.comparisons.values()]
    factors = [length.factors[0] for length in lengths]
    return [
        ComparisonColumn("first", [names[left] for left, _ in places], is_text=True),
        ComparisonColumn("second", [names[right] for _, right in places], is_text=True),
        ComparisonColumn(
            "factor", ["–" if one is None else number_text(one) for one in factors], numbers=factors
        ),
        ComparisonColumn("95 % interval", [factor_span(length) for length in lengths]),
        _p_column([length.p for length in lengths]),
        ComparisonColumn(
            "found",
            [
                _found(length, names[left], names[right])
                for length, (left, right) in zip(lengths, places, strict=True)
            ],
            is_text=True,
        ),
    ]


def factor_notes(lengths: Iterable[LengthDifference]) -> list[str]:
    """What a factor is, if one is not the ratio of the two lengths beside it."""
    if all(length.is_the_ratio for length in lengths):
        return []
    return [_OF_FACTORS]


def _p_column(p_values: Sequence[float | None]) -> ComparisonColumn:
    cells = ["–" if p is None else p_text(p) for p in p_values]
    return ComparisonColumn("p (Holm)", cells, numbers=p_values, strong_below=SIGNIFICANT)


def _accuracy(share: float, n: int) -> str:
    """`100 (87–100)`, in percent."""
    low, high = wilson(round(share * n), n) or (math.nan, math.nan)
    return interval_text(share, low, high)


def factor_cell(length: LengthDifference) -> str:
    if length.is_limited:
        return _NOT_COMPARABLE
    if not length.one_threshold:
        return NO_SINGLE_THRESHOLD
    middle, span = length.factors[0], factor_span(length)
    return f"factor {span}" if middle is None else f"{number_text(middle)} times ({span})"


def area_rows(area: PairedArea | None) -> list[tuple[str, str, str, str]]:
    """A row with both areas and their difference, if there are areas."""
    if area is None:
        return []
    difference = difference_text(area.difference, area.difference_ci, 2)
    return [("area", f"{area.first:.2f}", f"{area.second:.2f}", difference)]


def _near_and_apart(compared: ConditionComparison) -> list[tuple[str, str, str, str]]:
    """`near (5 %)`, both lengths, and that they are not tested."""
    near = compared.sides[0].run.settings.near
    words = words_of(answers_of_sides(compared))
    heads = {"near_length": f"near ({100 * near:g} %)", "apart_length": words.apart_head}
    return [
        (heads[name], length_text(first), length_text(second), "not tested")
        for name, first, second in near_and_apart(compared)
    ]


def _found(length: LengthDifference, first: str, second: str) -> str:
    """What the test of two lengths found: `a is further`, `no difference found`."""
    if not length.is_comparable:
        return _NOT_COMPARABLE
    further = {1: first, -1: second}.get(length.further)
    return "no difference found" if further is None else f"{further} is further"
