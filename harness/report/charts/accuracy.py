"""The figure of accuracy over length: the rows behind its charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from eyechart.harness.analysis.length.bands import shown_lines
from eyechart.harness.analysis.length.effective_length import (
    FEW_ROWS,
    NO_SINGLE_THRESHOLD,
    EffectiveLength,
)
from eyechart.harness.analysis.length.in_tokens import length_in_tokens
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.ranking.standing import Standing
from eyechart.harness.report.charts import charts
from eyechart.harness.report.charts.looks import SERIES_LIGHT, Look, Spec
from eyechart.harness.report.charts.panels import (
    Figure,
    Panel,
    Rows,
    look_of,
    marks_of,
    panels_of,
    told_apart,
    units_of,
)
from eyechart.harness.report.page.section import UNITS, Section, Series, key_of
from eyechart.harness.spec import Condition

Marks: TypeAlias = dict[str, str | float]
"""The fields of every row of a series: colour, dash, marks, name in tooltips."""
_FEW_CURVES = 4
"""So many curves can be read in a small panel."""
_BEYOND = {("low", "<"): -1, ("high", ">"): 1}
"""Open ends of an interval, which are drawn to the edge of the chart."""
MOST_TOGETHER = len(SERIES_LIGHT)
"""Models in one panel: each has a colour and a shape of its own."""


def accuracy_figures(section: Section, standing: Standing) -> list[Figure]:
    """Accuracy over length, and effective lengths: one panel of all models under one condition, and
    one panel of each model under all its conditions, if there are several.
    """
    models = [place.name for place in standing.places if place.estimate is not None]
    if len(models) < 2:  # noqa: PLR2004  nothing to put together
        return [accuracy_figure(section)]
    together = _together(section, standing.condition, models[:MOST_TOGETHER], len(models))
    if not section.varied and len(models) <= MOST_TOGETHER:
        return [together]
    return [together, accuracy_figure(section)]


def _together(section: Section, condition: Condition, models: Sequence[str], of: int) -> Figure:
    """The first models of a standing in one panel."""
    look = Look(tuple(models), (), "model")
    by_name = {
        series.run_details.name: series
        for series in section.series
        if series.condition == condition
    }
    marked = [
        (by_name[name], look.marks(name, ", adaptive" * by_name[name].judged.adaptive))
        for name in models
    ]
    values = condition.only(section.varied)
    title = ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in values.items())
    which = "all models" if len(models) == of else f"the first {len(models)} of {of} models"
    panel = Panel(which, title, panel_rows(section, marked))
    spec = _spec(section, look, len(models))
    return Figure("together", "Accuracy by length", spec, (panel,), look, least=420)


def accuracy_figure(section: Section) -> Figure:
    """Accuracy over length, and effective lengths, in panels for each model. Where a panel would
    have more than `charts.MANY` curves, each colour has a panel of its own, in which the other
    curves are grey.
    """
    look = look_of(section)
    panels = []
    most = 1
    for model, title, panel_series in panels_of(section):
        marked = [(series, marks_of(section, series)) for series in panel_series]
        for name, shown in _parts(look, marked):
            most = max(most, len(shown))
            others = [one for one in marked if one not in shown]
            data = panel_rows(section, shown) | {"others": _other_rows(others)}
            panels.append(Panel(model, ", ".join(filter(None, (name, title))), data))
    curves = max((len(panel.data["estimate"]) for panel in panels), default=0)
    return Figure(
        "accuracy",
        "Accuracy by length",
        _spec(section, look, most),
        tuple(panels),
        look,
        least=280 if curves <= _FEW_CURVES else 440,
    )


def _parts(
    look: Look, marked: Sequence[tuple[Series, Marks]]
) -> list[tuple[str, Sequence[tuple[Series, Marks]]]]:
    """The series of each panel, with what they have in common; all together where they are few."""
    if len(marked) <= charts.MANY:
        return [("", marked)]
    named = look.colour_title.replace("_", " ")
    parts = [
        (colour, [one for one in marked if one[1]["colour"] == colour]) for colour in look.colours
    ]
    return [(f"{named} {colour}", part) for colour, part in parts if part]


def _other_rows(others: Sequence[tuple[Series, Marks]]) -> Rows:
    """The curves behind those of a panel."""
    names = "colour", "dash", "y", *(f"x@{unit}" for unit in UNITS)
    return [{name: row[name] for name in names} for one in others for row in _curve_rows(*one)]


def _spec(section: Section, look: Look, rows: int) -> Spec:
    estimates = section.estimates.values()
    uneven = not all(estimate.one_threshold for estimate in estimates)
    limited = not all(estimate.limit.is_ranked for estimate in estimates)
    few = any(estimate.few for estimate in estimates)
    notes = [NO_SINGLE_THRESHOLD] * uneven + ["not limited by sight"] * limited
    notes += [f"of fewer than {FEW_ROWS} rows"] * few
    return charts.accuracy_chart(
        look, section.lengths, rows, ", or ".join(notes), over=section.over
    )


def panel_rows(section: Section, marked: Sequence[tuple[Series, Marks]]) -> dict[str, Rows]:
    """The rows of one panel, of each series with its marks."""
    data: dict[str, Rows] = {
        "curve": [],
        "fit": [],
        "estimate": [],
        "threshold": [{"y": section.judging.threshold}],
        "others": [],
    }
    for row, (series, marks) in enumerate(marked):
        data["curve"] += _curve_rows(series, marks)
        data["estimate"] += _estimate_rows(section, series, marks, row)
        if len(marked) <= charts.MANY:
            data["fit"] += _fit_rows(section, series, marks)
    data["curve"] = told_apart(data["curve"])
    return data


def _curve_rows(series: Series, marks: Marks) -> Rows:
    return [
        {
            **marks,
            **units_of(series.at(row["length"]), "x"),
            "length": int(row["length"]),
            "y": row["accuracy"],
            "low": row["ci_low"],
            "high": row["ci_high"],
            "n": int(row["n"]),
            "interval": f"{100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f} %",
        }
        for row in shown_lines([series.judged])[0].values()
        if row["n"] and row["length"]
    ]


def _estimate_rows(section: Section, series: Series, marks: Marks, row: int) -> Rows:
    estimate = section.estimates.get(key_of(series))
    if estimate is None or estimate.length is None:
        return []
    is_bound = estimate.length.sign != "="
    values: dict[str, Any] = {**marks, "row": row} | ({"solid": 0.0} if is_bound else {})
    for unit, bounds in _in_units(series, estimate).items():
        for name, bound in zip(("x", "low", "high"), bounds, strict=True):
            end = None if bound is None else bound.length
            if bound is not None and (name, bound.sign) in _BEYOND:
                end = bound.length * charts.air_around(section.lengths) ** _BEYOND[name, bound.sign]
            values |= units_of({unit: end}, name)
        length, *ends = ("" if bound is None else str(bound) for bound in bounds)
        values[f"label@{unit}"] = length + "*" * bool(estimate.note)
        span = " to ".join(dict.fromkeys(ends))
        values[f"span@{unit}"] = ", ".join(filter(None, (span, estimate.note)))
    return [values | {"lapse": f"{100 * estimate.lapse:.0f} %"}]


def _in_units(series: Series, estimate: EffectiveLength) -> dict[str, list[Bound | None]]:
    """Unit -> the effective length and both ends of its interval; `None` where not known."""
    in_task = [estimate.length, *estimate.length_ci]
    in_tokens = length_in_tokens(series.judged)
    own, characters, tokens = UNITS
    values = [None if bound is None else series.at(bound.length)[characters] for bound in in_task]
    return {
        own: in_task,
        characters: [
            None if bound is None or value is None else Bound(bound.sign, round(value))
            for bound, value in zip(in_task, values, strict=True)
        ],
        tokens: [None] * 3 if in_tokens is None else [in_tokens[0], *in_tokens[1]],
    }


def _fit_rows(section: Section, series: Series, marks: Marks) -> Rows:
    """The fitted curve; no rows where no falling curve fits."""
    estimate = section.estimates.get(key_of(series))
    if estimate is None or not estimate.one_threshold:
        return []
    return [
        {
            "colour": marks["colour"],
            "dash": marks["dash"],
            **units_of(series.at(estimate.fit.bins.length(place)), "x"),
            "y": round(float(accuracy), 4),
        }
        for place, accuracy in enumerate(estimate.fit.accuracy)
    ]
