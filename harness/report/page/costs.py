"""Effective length against the tokens or dollars of a sample: one point for each model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from eyechart.harness.analysis.length.interval import Z95
from eyechart.harness.report.charts.charts import HEIGHT, dataset, layered, longest_first
from eyechart.harness.report.charts.kept_specs import kept
from eyechart.harness.report.charts.looks import LABEL, Spec
from eyechart.harness.report.charts.panels import Figure, Panel, Rows
from eyechart.harness.report.page.section import Section, Series, key_of

_NAMED = 12
"""With more models than this, names are in the tooltips only."""


@dataclass(frozen=True)
class _Measure:
    """Tokens or dollars of a sample."""

    kind: str
    title: str
    axis: str
    per: int
    """Number of samples that a value is for."""


_TOKENS = _Measure("tokens", "Effective length against tokens", "tokens a sample", 1)
_DOLLARS = _Measure(
    "dollars", "Effective length against dollars", "US dollars for 1,000 samples", 1000
)


_HINT = (
    "One point for each model, with 95 % intervals of both: prompt and reply, as the mean of the "
    "lengths that all models of a chart were asked. An effective length beyond what was tested is "
    "drawn at the end of the tested range."
)


def cost_figures(section: Section) -> list[Figure]:
    """Effective length against tokens and against dollars, a panel for each condition; empty
    unless two models have replies with usage at the same lengths.
    """
    figures = []
    for measure in (_TOKENS, _DOLLARS):
        panels = []
        for title, panel_series in _by_condition(section).items():
            rows = _rows(section, measure, panel_series)
            if len(rows) > 1:
                names = rows if len(rows) <= _NAMED else []
                panels.append(Panel("", title, {"models": rows, "names": names}))
        if panels:
            lists = sorted({details.run.prices_of for details in section.runs} - {""})
            is_priced = measure is _DOLLARS and lists
            note = f"Dollars are at the prices of {', '.join(lists)}." if is_priced else ""
            spec = _chart(measure, section.lengths, section.unit)
            figures.append(
                Figure(
                    measure.kind,
                    measure.title,
                    spec,
                    tuple(panels),
                    lengths=False,
                    note=note,
                    hint=_HINT,
                    least=360,
                )
            )
    return figures


def _by_condition(section: Section) -> dict[str, list[Series]]:
    conditions: dict[str, list[Series]] = {}
    for series in section.series:
        conditions.setdefault(series.label(section.varied), []).append(series)
    return conditions


def _rows(section: Section, measure: _Measure, panel_series: Sequence[Series]) -> Rows:
    """A row for each model with an effective length and usage, at the lengths they all have."""
    used: list[tuple[Series, dict[int, tuple[float, float, int]]]] = []
    for series in panel_series:
        if key_of(series) not in section.estimates:
            continue
        spent = _spent(series, measure)
        if spent:
            used.append((series, spent))
    common = sorted(set.intersection(*(set(spent) for _, spent in used))) if used else []
    if not common:
        return []
    rows = []
    for series, spent in used:
        means, variances, counts = np.array([spent[length] for length in common]).T
        mean = float(means.mean()) * measure.per
        error = math.sqrt(float((variances / counts).sum())) / len(common) * measure.per
        estimate = section.estimates.get(key_of(series))
        if mean <= 0 or estimate is None or estimate.length is None or not estimate.is_ranked:
            continue
        low, high = estimate.length_ci
        rows.append(
            {
                "model": series.run_details.name,
                "x": mean,
                "x_low": max(mean - Z95 * error, mean / 100),
                "x_high": mean + Z95 * error,
                "y": estimate.length.length,
                "y_low": low.length,
                "y_high": high.length,
                "label": str(estimate),
                "cost": f"{mean:,.3g} ({max(mean - Z95 * error, 0):,.3g}"
                f" to {mean + Z95 * error:,.3g})",
                "n": int(counts.sum()),
                "lengths": len(common),
            }
        )
    return rows


def _spent(series: Series, measure: _Measure) -> dict[int, tuple[float, float, int]]:
    """Length -> mean, variance and number of its samples whose tokens or dollars are known."""
    taken = ["cost"] if measure is _DOLLARS else ["prompt_tokens", "output_tokens"]
    values = np.sum([series.samples[name].to_numpy() for name in taken], axis=0)
    known = ~np.isnan(values)
    if not known.any():
        return {}
    grouped = pd.Series(values[known]).groupby(series.samples["length"].to_numpy()[known])
    variances = grouped.var().fillna(0.0)
    means, counts = grouped.mean(), grouped.count()
    return dict(zip(means.index, zip(means, variances, counts, strict=True), strict=True))


@kept
def _chart(measure: _Measure, lengths: Sequence[int], unit: str) -> Spec:
    """Data: `models` (model, x, y, their ends, label, cost, n, lengths), `names`: all or none."""
    models, names = dataset("models"), dataset("names")
    scale = alt.Scale(type="log", nice=False, padding=20)
    ends = min(lengths) / 1.1, max(lengths) * 1.1
    lines = alt.Scale(type="log", nice=False, clamp=True, **longest_first(ends))
    x_axis = alt.Axis(title=measure.axis, grid=False, tickCount=5, format="~g")
    y_axis = alt.Axis(title=f"effective length ({unit})", values=list(lengths))
    x = alt.X("x:Q", scale=scale, axis=x_axis)
    y = alt.Y("y:Q", scale=lines, axis=y_axis)
    tips = [
        alt.Tooltip("model:N"),
        alt.Tooltip("label:N", title="right to"),
        alt.Tooltip("cost:N", title=measure.axis),
        alt.Tooltip("n:Q", title="samples with usage", format=","),
        alt.Tooltip("lengths:Q", title="lengths"),
    ]
    return layered(
        models.mark_rule(color="var(--s1)", strokeWidth=2, opacity=0.35).encode(
            x, alt.Y("y_low:Q", scale=lines, axis=y_axis), alt.Y2("y_high:Q")
        ),
        models.mark_rule(color="var(--s1)", strokeWidth=2, opacity=0.35).encode(
            alt.X("x_low:Q", scale=scale, axis=x_axis), y, alt.X2("x_high:Q")
        ),
        models.mark_point(color="var(--s1)", filled=True, opacity=1, size=50).encode(
            x, y, tooltip=tips
        ),
        names.mark_text(
            color="var(--ink)", fontSize=LABEL, align="left", baseline="bottom", dx=6, dy=-3
        ).encode(x, y, alt.Text("model:N")),
        height=HEIGHT + 50,
    )
