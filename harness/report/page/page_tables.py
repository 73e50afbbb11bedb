"""The tables of a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

import pandas as pd

from eyechart.harness.analysis.comparison.comparison_table import condition_rows
from eyechart.harness.analysis.comparison.effects import Effect
from eyechart.harness.analysis.length.capacity import STATISTIC, capacity
from eyechart.harness.analysis.length.in_tokens import length_in_tokens
from eyechart.harness.analysis.length.interval import Bound, Span, span_text
from eyechart.harness.analysis.length.overall import overall
from eyechart.harness.analysis.ranking.standing import Standing
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.analysis.tables import tables
from eyechart.harness.report.page.section import Section, Series, key_of
from eyechart.harness.report.published.published_file import PublishedFile
from eyechart.harness.report.ranking.comparison_columns import columns_of_pairs
from eyechart.harness.spec.columns import COMPARISON, CONFIDENCE, D_PRIME, ORDER, SIGNS
from eyechart.harness.spec.unit import singular

Value: TypeAlias = str | int | float | list[Any] | None
"""The value of a field: a text, a number, `None`, or `[text, number to sort by]`."""


@dataclass(frozen=True)
class ReportTable:
    """One table of the page; its CSV file has the same contents."""

    name: str
    """The name of the CSV file, without its suffix."""
    title: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Value, ...], ...]


def report_table(name: str, title: str, rows: Sequence[dict[str, Value]]) -> ReportTable:
    """A table with a column for each key of its rows."""
    columns = tuple(rows[0]) if rows else ()
    numeric = tuple(
        any(isinstance(row[column], int | float | list) for row in rows) for column in columns
    )
    return ReportTable(name, title, columns, numeric, tuple(tuple(row.values()) for row in rows))


def file_name(section: Section, name: str) -> str:
    return f"{section.name}-{name}".replace("/", "-")


def estimates_table(section: Section) -> ReportTable:
    """The effective length of each model under each condition."""
    rows: list[dict[str, Value]] = []
    some_costs = any(series.judged.cost for series in section.series)
    some_adaptive = any(series.judged.adaptive for series in section.series)
    some_tokens = any(series.judged.tokens_a_symbol for series in section.series)
    for series in section.series:
        estimate = section.estimates.get(key_of(series))
        row: dict[str, Value] = {
            "model": series.run_details.name,
            **{axis: series.condition[axis] for axis in section.varied},
            **({"adaptive": "yes" if series.judged.adaptive else ""} if some_adaptive else {}),
            "scored": int(series.cells["n"].sum()),
            **_overall(series),
        }
        if estimate is None:
            row |= dict.fromkeys(_ESTIMATE)
        else:
            area: list[Value] = [None] * 3
            if not series.judged.adaptive:
                area = [round(value, 3) for value in (estimate.area, *estimate.area_ci)]
            row |= dict(
                zip(
                    _ESTIMATE,
                    (
                        _bound(estimate.length),
                        _span(estimate.length_ci),
                        estimate.limit.by,
                        "yes" if estimate.one_threshold else "no",
                        round(estimate.lapse, 3),
                        _bound(estimate.tested_length),
                        _span(estimate.tested_length_ci),
                        *area,
                    ),
                    strict=True,
                )
            )
        if some_tokens:
            row |= _tokens(section, series)
        if section.integer:
            growth = series.judged.error_growth
            row["error growth"] = None if growth is None else round(growth, 2)
        if STATISTIC in series.run_details.run.spec.statistics:
            found = capacity(series.judged)
            row[STATISTIC] = _bound(None if found is None else found.length)
        if some_costs:
            cost = series.judged.cost
            row["cost, $"] = None if cost is None else float(f"{cost.dollars:.4g}")
            row["prices of"] = "" if cost is None else cost.prices_of
        rows.append(row)
    return report_table(file_name(section, "effective-length"), f"How far: {section.name}", rows)


def _tokens(section: Section, series: Series) -> dict[str, Value]:
    """Tokens a symbol, where they come from, and the effective length in tokens."""
    tokens = series.judged.tokens_a_symbol
    length, interval = length_in_tokens(series.judged) or (None, None)
    return {
        f"tokens a {singular(section.unit)}": None if tokens is None else round(tokens.value, 3),
        "from": "" if tokens is None else tokens.source,
        "right to, tokens": _bound(length),
        "its interval, tokens": None if interval is None else _span(interval),
    }


def _overall(series: Series) -> dict[str, Value]:
    total = overall(series.judged)
    if total is None:
        return {"overall accuracy": None, "overall interval": None}
    low, high = round(total.low, 3), round(total.high, 3)
    return {
        "overall accuracy": round(total.accuracy, 3),
        "overall interval": [f"{low} to {high}", low],
    }


_ESTIMATE = (
    *("right to", "95 % interval", "limited by", "single threshold", "lapse rate"),
    *("tested length", "its interval", "area", "area low", "area high"),
)


def _bound(bound: Bound | None) -> Value:
    return None if bound is None else [str(bound), _sort_key(bound)]


def _sort_key(bound: Bound) -> float:
    return bound.length + {"<": -0.5, "=": 0.0, ">": 0.5}[bound.sign]


def _span(span: Span) -> Value:
    return [span_text(span), _sort_key(span[0])]


def cell_diagnosis_table(section: Section) -> ReportTable:
    """How each cell goes wrong, and how sure the model is; columns without a value are left out."""
    table = _of_runs(section, tables.diagnosis_table)
    signs = *SIGNS, *ORDER, *D_PRIME, *CONFIDENCE
    empty = [name for name in signs if table[name].isna().all()]
    rows = _rows_of(table.drop(columns=empty)) if len(empty) < len(signs) else []
    return report_table(file_name(section, "diagnosis"), f"How it goes wrong: {section.name}", rows)


def cells_table(section: Section) -> ReportTable:
    """`table.csv` of every run."""
    table = _of_runs(section, tables.cells_table)
    return report_table(file_name(section, "cells"), f"Cells: {section.name}", _rows_of(table))


def _of_runs(section: Section, of: Callable[[JudgedRun], pd.DataFrame]) -> pd.DataFrame:
    """A table with a row for each cell of a run, of all runs, by the names they have here."""
    table = pd.concat([of(one.run) for one in section.runs], ignore_index=True)
    table["model"] = [one.name for one in section.runs for _ in one.run.manifest.cells]
    return table


def _rows_of(table: pd.DataFrame) -> list[dict[str, Value]]:
    return [
        {str(name): _value(value) for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def _value(value: Any) -> Value:
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return None
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_IN_SCRIPTS else str(value)
    if float(value).is_integer():
        return int(value)
    return round(float(value), 4) if abs(value) >= _SMALL else float(f"{value:.3g}")


_LARGEST_IN_SCRIPTS = 2**53
"""The page's script rounds larger numbers."""
_SMALL = 0.001
"""Smaller numbers, as p-values may be, have three digits."""


def pairs_table(section: Section, all_effects: Sequence[Effect]) -> ReportTable:
    """The rows of every paired difference, as `bench compare -o` writes them. First is the value of
    the axis, or the model, that the change leads to.
    """
    rows = [
        {
            "model": effect.name,
            "axis": effect.axis,
            "first": effect.value,
            "second": effect.baseline,
            "with": effect.where,
            **row,
        }
        for effect in all_effects
        for row in condition_rows(effect.compared, section.unit)
    ]
    names = ["model", "axis", "first", "second", "with", *COMPARISON]
    table = pd.DataFrame(rows, columns=list(dict.fromkeys(names)))
    table = table.mask(table == "").dropna(axis="columns", how="all")
    return report_table(
        file_name(section, "differences"), f"Paired differences: {section.name}", _rows_of(table)
    )


def models_table(section: Section, standing: Standing) -> ReportTable:
    """Each pair that the standing compares. A factor is the median of the ratio of both lengths."""
    ranking = standing.ranking
    columns = columns_of_pairs(ranking, [one.name for one in ranking.runs])
    cells = [
        [
            cell if number is None else [cell, number]
            for cell, number in zip_longest(column.cells, column.numbers)
        ]
        for column in columns
    ]
    heads = [column.head for column in columns]
    return report_table(
        file_name(section, "models"),
        f"Models against each other: {section.name}",
        [dict(zip(heads, row, strict=True)) for row in zip(*cells, strict=True)],
    )


def reported_table(file: PublishedFile) -> ReportTable:
    """A file of published figures, unchanged."""
    return report_table(file.name, file.name, _rows_of(file.table))
