"""The tables of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from harness.analysis.details import RunDetails
from harness.analysis.diagnosis import error_growth
from harness.analysis.stats import Bound, Span, span_text
from harness.analysis.tables import diagnosis_table
from harness.columns import SIGNS
from harness.report.effects import Effect
from harness.report.reported import Reported
from harness.report.section import Section, key_of

Value: TypeAlias = str | int | float | list[Any] | None
"""What a field holds: a text, a number, nothing, or `[text, number to sort by]`."""


@dataclass(frozen=True)
class Listed:
    """One table; what is shown is what its CSV has."""

    name: str
    """Of the CSV file."""
    title: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Value, ...], ...]


def _listed(name: str, title: str, rows: Sequence[dict[str, Value]]) -> Listed:
    columns = tuple(rows[0]) if rows else ()
    numeric = tuple(
        any(isinstance(row[column], int | float | list) for row in rows) for column in columns
    )
    return Listed(name, title, columns, numeric, tuple(tuple(row.values()) for row in rows))


def _file(section: Section, name: str) -> str:
    return f"{section.name}-{name}".replace("/", "-")


def estimates_table(section: Section) -> Listed:
    """How far each model sees under each condition."""
    rows: list[dict[str, Value]] = []
    growths = {shown.name: _growths(shown, section) for shown in section.runs}
    for series in section.series:
        found = section.estimates.get(key_of(series))
        row: dict[str, Value] = {
            "model": series.shown.name,
            **{axis: series.condition[axis] for axis in section.varied},
            "scored": int(series.cells["n"].sum()),
        }
        if found is None:
            row |= dict.fromkeys(_ESTIMATE)
        else:
            low, high = (round(end, 3) for end in found.area_ci)
            row |= dict(
                zip(
                    _ESTIMATE,
                    (
                        _bound(found.length),
                        _span(found.length_ci),
                        _bound(found.crossing_length),
                        _span(found.crossing_length_ci),
                        round(found.area, 3),
                        low,
                        high,
                    ),
                    strict=True,
                )
            )
        if section.integer:
            model, label = key_of(series)
            row["error growth"] = growths[model][label]
        rows.append(row)
    return _listed(_file(section, "effective-length"), f"How far: {section.name}", rows)


_ESTIMATE = (
    "effective length",
    "95 % interval",
    "crossing length",
    "its interval",
    "area",
    "area low",
    "area high",
)


def _bound(bound: Bound) -> Value:
    return [str(bound), _place(bound)]


def _place(bound: Bound) -> float:
    """Where a table sorts it."""
    return bound.length + {"<": -0.5, "=": 0.0, ">": 0.5}[bound.sign]


def _span(span: Span) -> Value:
    return [span_text(span), _place(span[0])]


def _growths(shown: RunDetails, section: Section) -> dict[str, Value]:
    """How the error grows with length, by the condition's label."""
    if not section.integer:
        return {}
    errors = shown.run.diagnosis["median_abs_error"]
    growths: dict[str, Value] = {}
    for series in section.series:
        if series.shown is shown:
            places = list(series.judged.places)
            growth = error_growth(shown.run.cells["length"][places], errors[places])
            growths[key_of(series)[1]] = None if growth is None else round(growth, 2)
    return growths


def diagnosis_listed(section: Section) -> Listed:
    """How each cell goes wrong; columns that say nothing here are left out."""
    whole = pd.concat([diagnosis_table(shown.run) for shown in section.runs], ignore_index=True)
    whole["model"] = [shown.name for shown in section.runs for _ in shown.run.manifest.cells]
    empty = [name for name in SIGNS if whole[name].isna().all()]
    rows: list[dict[str, Value]] = [
        {str(name): _published(value) for name, value in row.items()}
        for row in whole.drop(columns=empty).to_dict("records")
        if len(empty) < len(SIGNS)
    ]
    return _listed(_file(section, "diagnosis"), f"How it goes wrong: {section.name}", rows)


def cells_table(section: Section) -> Listed:
    """`table.csv` of every run."""
    rows: list[dict[str, Value]] = []
    for shown in section.runs:
        for _, cell in shown.run.cells.iterrows():
            row = {str(name): _value(value) for name, value in cell.items()}
            rows.append({**row, "model": shown.name})
    return _listed(_file(section, "cells"), f"Cells: {section.name}", rows)


def _value(value: Any) -> Value:
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return None
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_IN_SCRIPTS else str(value)
    return int(value) if float(value).is_integer() else round(float(value), 4)


_LARGEST_IN_SCRIPTS = 2**53
"""The page's script rounds larger numbers."""


def pairs_table(section: Section, found: Sequence[Effect]) -> Listed:
    """Every paired difference at every length, and of the areas over all."""
    rows: list[dict[str, Value]] = []
    for effect in found:
        named: dict[str, Value] = {
            "model": effect.shown.name,
            "axis": effect.axis,
            "from": effect.baseline,
            "to": effect.value,
            "with": effect.where,
        }
        low, high = effect.area.difference_ci
        rows.append(
            {
                **named,
                "length": ["all (area)", 0],
                "pairs": sum(row.n for row in effect.compared.paired.lengths),
                "accuracy from": round(effect.area.second, 4),
                "accuracy to": round(effect.area.first, 4),
                "difference": round(effect.area.difference, 4),
                "low": round(low, 4),
                "high": round(high, 4),
                "p": None,
                "Holm p": None,
            }
        )
        for row, adjusted in zip(
            effect.compared.paired.lengths, effect.compared.p_values, strict=True
        ):
            low, high = row.difference_ci
            rows.append(
                {
                    **named,
                    "length": [str(row.length), row.length],
                    "pairs": row.n,
                    "accuracy from": round(row.second, 4),
                    "accuracy to": round(row.first, 4),
                    "difference": round(row.difference, 4),
                    "low": round(low, 4),
                    "high": round(high, 4),
                    "p": float(f"{row.p:.3g}"),
                    "Holm p": float(f"{adjusted:.3g}"),
                }
            )
    return _listed(_file(section, "differences"), f"Paired differences: {section.name}", rows)


def reported_table(file: Reported) -> Listed:
    """A file of published figures as it is."""
    rows: list[dict[str, Value]] = [
        {str(name): _published(value) for name, value in row.items()}
        for row in file.table.to_dict("records")
    ]
    return _listed(file.name, file.name, rows)


def _published(value: Any) -> Value:
    return value if isinstance(value, str) else _value(value)
