"""The figure of accuracy over length: the rows behind its charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.analysis.interval import Bound
from harness.report import charts
from harness.report.panels import Figure, Panel, Rows, look_of, marks_of, panels_of, units_of
from harness.report.section import UNITS, Section, Series, key_of


def accuracy_figure(section: Section) -> Figure:
    """Accuracy over length and effective length."""
    look = look_of(section)
    panels = []
    most = 1
    for model, title, panel_series in panels_of(section):
        data: dict[str, Rows] = {
            "curve": [],
            "fit": [],
            "estimate": [],
            "threshold": _thresholds(section, panel_series),
        }
        for row, series in enumerate(panel_series):
            data["curve"] += _curve_rows(section, series)
            data["estimate"] += _estimate_rows(section, series, row)
            if len(panel_series) <= charts.MANY:
                data["fit"] += _fit_rows(section, series)
        most = max(most, len(panel_series))
        panels.append(Panel(model, title, data))
    notes = {estimate.note for estimate in section.estimates.values()} - {""}
    spec = charts.accuracy_chart(look, section.lengths, most, "".join(notes))
    return Figure("accuracy", "Accuracy by length", spec, tuple(panels), look)


def _curve_rows(section: Section, series: Series) -> Rows:
    return [
        {
            **marks_of(section, series),
            **units_of(series.at(row["length"]), "x"),
            "length": int(row["length"]),
            "y": row["accuracy"],
            "low": row["ci_low"],
            "high": row["ci_high"],
            "n": int(row["n"]),
            "interval": f"{100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f} %",
        }
        for _, row in series.cells.iterrows()
        if row["n"]
    ]


def _estimate_rows(section: Section, series: Series, row: int) -> Rows:
    estimate = section.estimates.get(key_of(series))
    if estimate is None:
        return []
    low, high = estimate.length_ci
    values: dict[str, Any] = {**marks_of(section, series), "row": row}
    for name, bound in (("x", estimate.length), ("low", low), ("high", high)):
        values |= units_of(series.at(bound.length), name)
    for unit in UNITS:
        values[f"label@{unit}"] = _in_unit(estimate.length, series, unit) + "*" * bool(
            estimate.note
        )
        ends = [_in_unit(low, series, unit), _in_unit(high, series, unit)]
        span = " to ".join(dict.fromkeys(ends))
        values[f"span@{unit}"] = ", ".join(filter(None, (span, estimate.note)))
    return [values | {"lapse": f"{100 * estimate.lapse:.0f} %"}]


def _fit_rows(section: Section, series: Series) -> Rows:
    """The fitted curve; no rows where no falling curve fits."""
    estimate = section.estimates.get(key_of(series))
    if estimate is None or not estimate.one_threshold:
        return []
    marks = {name: marks_of(section, series)[name] for name in ("colour", "dash")}
    return [
        {
            **marks,
            **units_of(series.at(estimate.fit.bins.length(place)), "x"),
            "y": round(float(accuracy), 4),
        }
        for place, accuracy in enumerate(estimate.fit.accuracy)
    ]


def _in_unit(bound: Bound, series: Series, unit: str) -> str:
    value = series.at(bound.length)[unit]
    if value is None:
        return ""
    text = f"{value:,.0f}"
    return text if bound.sign == "=" else f"{bound.sign} {text}"


def _thresholds(section: Section, panel_series: Sequence[Series]) -> Rows:
    threshold = section.threshold
    if not threshold.relative:
        return [{"y": threshold.share}]
    estimates = [section.estimates.get(key_of(series)) for series in panel_series]
    return [{"y": estimate.fit.required} for estimate in estimates if estimate is not None]
