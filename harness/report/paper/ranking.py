"""Tables of several runs that `bench compare` ranks, for papers."""

from __future__ import annotations

from collections.abc import Iterator

from eyechart.harness.analysis.comparison.comparison_cells import (
    OF_FACTORS,
    factor_span,
    factor_text,
    found_text,
)
from eyechart.harness.analysis.comparison.comparison_text import margin_text, p_text
from eyechart.harness.analysis.comparison.family import Ranking, ranks_text
from eyechart.harness.analysis.findings.ranks import of_ranking
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.tables.paper_text import length_cell, notes
from eyechart.harness.report.paper.tables import PaperTable, comparison_tables, notes_of
from eyechart.harness.settings.judging import Margin
from eyechart.harness.spec import varied_axes, varied_label


def ranking_tables(ranking: Ranking, margin: Margin) -> Iterator[PaperTable]:
    """The runs by effective length with the ranks that the tests allow, each pair of them, and then
    the lines of each pair, see `comparison_tables`.
    """
    yield _runs(ranking, margin)
    yield _pairs(ranking)
    for comparison in ranking.comparisons.values():
        yield from comparison_tables(comparison, margin)


def _runs(ranking: Ranking, margin: Margin) -> PaperTable:
    runs, conditions = ranking.runs, ranking.conditions
    first = next(iter(ranking.comparisons.values()))
    changes = {place: one.change(margin) for place, one in ranking.against_reference}
    columns = {
        "run": [one.name for one in runs],
        "rank": [ranks_text(ranking.ranks(place)) for place in range(len(runs))],
    }
    of_notes: dict[str, EffectiveLength | None] = {}
    for condition in conditions:
        label = varied_label(condition, conditions)
        head = ", ".join(filter(None, (label, f"effective length ({ranking.unit})")))
        columns[head] = [length_cell(one.estimates[condition]) for one in runs]
        of_notes |= {
            ", ".join(filter(None, (one.name, label))): one.estimates[condition] for one in runs
        }
    columns[f"compared with {runs[ranking.reference].name}"] = [
        changes.get(place, "–") for place in range(len(runs))
    ]
    varied = varied_axes(conditions)
    fixed = ", ".join(
        f"{axis} {value}" for axis, value in conditions[0].items() if axis not in varied
    )
    return PaperTable(
        f"{len(runs)} runs on {first.task} by effective length at an accuracy of "
        f"{threshold_text(first.threshold)}{f' with {fixed}' if fixed else ''}, with 95 % "
        f"intervals and the ranks that the tests allow; the margin is "
        f"{margin_text(margin, *(one for _, one in ranking.against_reference))}.",
        tuple(columns),
        tuple(zip(*columns.values(), strict=True)),
        1,
        notes=(
            *notes(of_notes),
            *notes_of(of_ranking(ranking, margin)),
        ),
        words=1,
    )


def _pairs(ranking: Ranking) -> PaperTable:
    comparisons = list(ranking.comparisons.values())
    lengths = [one.length for one in comparisons]
    mean = f", mean of {count} conditions" if (count := len(ranking.conditions)) > 1 else ""
    return PaperTable(
        f"Factors between the effective lengths of each pair{mean}, with 95 % intervals and Holm's "
        f"correction for {len(ranking.tested):,} tests.",
        ("first", "second", "factor", "95 % interval", "p (Holm)", "found"),
        tuple(
            (
                one.first,
                one.second,
                factor_text(one.length),
                factor_span(one.length),
                "–" if one.length.p is None else p_text(one.length.p),
                found_text(one.length, one.first, one.second),
            )
            for one in comparisons
        ),
        2,
        notes=() if all(length.is_the_ratio for length in lengths) else (OF_FACTORS,),
        words=1,
    )
