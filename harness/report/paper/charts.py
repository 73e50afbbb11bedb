"""Vega-Lite specs of figures for papers: without a title, and readable in grey."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from eyechart.harness.report.charts.charts import (
    accuracy_axis,
    air_around,
    dataset,
    layered,
    longest_first,
)
from eyechart.harness.report.charts.files import drawn_values, in_task_unit, show_legends
from eyechart.harness.report.charts.kept_specs import kept
from eyechart.harness.report.charts.looks import Look, Spec, inked
from eyechart.harness.report.charts.panels import Rows
from eyechart.harness.report.paper.style import INKS, config
from eyechart.harness.settings.figure import FigureStyle

_APART, _LANES = 0.014, 0.6
"""Between marks of two series at one length, as a share of the axis, at most; and the share of the
room between two lengths that the marks of all series may use."""
_DASH = 2.2
"""Length of a line of a legend, in font sizes."""
_LETTER = 0.54
"""Width of a letter of a legend, in font sizes, rather too wide."""
_MARK = 0.42
"""Area of a mark, as a share of its area on a page."""
_PADDING = 2
"""Points between the labels and the edge."""
_ABOVE, _GAP = 0.58, 6
"""Height of a curve above another chart, as a share of both; and points between them."""
_EXTENT = 4.2
"""Width of the labels of two y axes above each other, in font sizes."""
_ROW = 2.5
"""Height of a row of effective lengths, in font sizes; there is text above each mark."""
_LABEL = 0.5
"""Width of the names of rows, as a share of the figure's width, at most."""
_LEGEND_ROW = 1.4
"""Height of a row of a legend, in font sizes."""
NAMED = "\u2063"
"""What stands before it in the name of a row is not shown at the axis."""
_OUTER = 1 / 3
"""Text above a mark in this share of the axis, at either end, begins or ends at the mark."""
_STROKE = 0.9
"""Width of the line of a mark, in pixels."""


def accuracy_spec(
    look: Look, ticks: Sequence[int], data: Mapping[str, Rows], style: FigureStyle, over: str
) -> Spec:
    """Accuracy over length with 95 % intervals, and the threshold as a thin line. `over` is the
    title of the x axis.

    Data: `curve` (x, y, low, high, n, lane), `threshold` (y).
    """
    spec = _curves(look, ticks, over) | {
        "width": style.points_wide,
        "height": style.points_high(),
        "autosize": {"type": "fit", "contains": "padding"},
    }
    _add_legends(spec, look, data, style)
    return _finished(spec, _curve_data(data, ticks), style)


@kept
def _curves(look: Look, ticks: Sequence[int], over: str | None) -> Spec:
    hidden: dict[str, Any] = {"labels": False, "ticks": False} if over is None else {}
    x = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", nice=False, **longest_first(_ends(ticks))),
        axis=alt.Axis(values=list(ticks), grid=False, title=over, **hidden),
    )
    y = accuracy_axis()
    low = alt.Y("low:Q", scale=y["scale"], axis=y["axis"])
    curve, colour = dataset("curve"), look.colour()
    return layered(
        dataset("threshold").mark_rule(color=INKS["ghost"], strokeWidth=0.6).encode(y),
        curve.mark_rule(strokeWidth=0.8).encode(x, low, alt.Y2("high:Q"), colour),
        curve.mark_line(strokeWidth=1.1, strokeJoin="round").encode(x, y, colour, look.dash()),
        look.points(curve, stroke=_STROKE).encode(x, y),
    )


def _curve_data(data: Mapping[str, Rows], ticks: Sequence[int]) -> dict[str, Rows]:
    """The rows of curves, each moved sideways to its lane, with smaller marks."""
    low, high = _ends(ticks)
    lanes = {row["lane"] for row in data["curve"]}
    ratios = (long / short for short, long in pairwise(sorted(set(ticks))))
    nearest = min(ratios, default=high / low)
    lane = min((high / low) ** _APART, nearest ** (_LANES / max(1, len(lanes))))
    rows = _small(in_task_unit(data["curve"]))
    curve: Rows = [row | {"x": row["x"] * lane ** row["lane"]} for row in rows]
    return {"curve": curve, "threshold": list(data["threshold"])}


def lengths_spec(
    look: Look, ticks: Sequence[int], rows: Rows, style: FigureStyle, over: str
) -> Spec:
    """Lengths with 95 % intervals: a band for each model, in it a row for each condition, or for
    each kind of length, with the numbers above its mark. An arrow is an end beyond the lengths
    asked, other than an open mark. The name of a band is what follows `NAMED` in `model`, or all of
    it, line by line.

    Data: `estimate` (model, lane, colour, dash, size, solid, x, low, high, is_below, is_above,
    label); where a length is not known, x, low and high are null.
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    lanes = sorted({row["lane"] for row in rows})
    low, high = _ends(ticks)
    scale = alt.Scale(type="log", nice=False, clamp=True, **longest_first([low, high]))
    axis = alt.Axis(values=list(ticks), grid=True, title=over)

    def along(name: str) -> alt.X:
        return alt.X(f"{name}:Q", scale=scale, axis=axis)

    y = alt.Y(
        "model:N",
        sort=models,
        axis=alt.Axis(
            title=None,
            domain=False,
            ticks=False,
            labelExpr=f"split(peek(split(datum.label, '{NAMED}')), '\\n')",
            labelFontWeight=_weight(models),
            labelLimit=_LABEL * style.points_wide,
        ),
        scale=alt.Scale(paddingInner=0.1, paddingOuter=0.05),
    )
    place: list[Any] = [y]
    if len(lanes) > 1:
        place.append(alt.YOffset("lane:N", sort=lanes))
    estimate, colour = dataset("estimate"), look.colour()
    arrows = [
        estimate.transform_filter(f"datum.{is_open}")
        .mark_point(shape=shape, filled=True, size=3 * style.font_size, opacity=1)
        .encode(along(end), *place, colour)
        for end, is_open, shape in (
            ("low", "is_below", "triangle-left"),
            ("high", "is_above", "triangle-right"),
        )
    ]
    texts = [
        estimate.transform_filter(f"datum.align == '{align}'")
        .mark_text(align=align, dy=-0.8 * style.font_size, fontSize=0.9 * style.font_size)
        .encode(along("text_x"), *place, alt.Text("label:N"))
        for align in ("left", "center", "right")
    ]
    marked = estimate.transform_filter("isValid(datum.x)")
    layers = layered(
        marked.mark_rule(strokeWidth=1.1).encode(along("low"), alt.X2("high:Q"), *place, colour),
        *arrows,
        look.points(marked, stroke=_STROKE).encode(along("x"), *place),
        *texts,
    )
    shown = drawn_values(look.colours, "colour", {"estimate": rows})
    columns = _columns(look.colour_title, shown, style)
    legend = _LEGEND_ROW * (math.ceil(len(shown) / columns) - 1)
    tall = (len(models) * len(lanes) * _ROW + 5 + legend) * style.font_size
    spec = layers | {
        "width": style.points_wide,
        "height": style.points_high(tall),
        "autosize": {"type": "fit", "contains": "padding"},
    }
    _add_legends(spec, look, {"estimate": rows}, style)
    placed: Rows = [_with_text(row, low, high) for row in _small(rows)]
    return _finished(spec, {"estimate": placed}, style)


def _weight(models: Sequence[str]) -> Any:
    """Names of models are bold where there are conditions' names below them."""
    if not any(NAMED in model for model in models):
        return "normal"
    test = f"indexof(datum.value, '{NAMED}') < 0"
    return {"condition": {"test": test, "value": "bold"}, "value": "normal"}


def _with_text(row: dict[str, Any], low: float, high: float) -> dict[str, Any]:
    """A row with the place of its text, which follows from where its mark is on the axis."""
    if row["x"] is None:
        return row | {"text_x": low, "align": "left"}
    share = math.log(row["x"] / low) / math.log(high / low)
    align = "left" if share < _OUTER else "right" if share > 1 - _OUTER else "center"
    return row | {"text_x": row["x"], "align": align}


def above_spec(
    look: Look,
    ticks: Sequence[int],
    curves: Mapping[str, Rows],
    below: tuple[Spec, Mapping[str, Rows]],
    style: FigureStyle,
) -> Spec:
    """The curves of `accuracy_spec` above another chart over the same lengths (spec and data)."""
    extent = _EXTENT * style.font_size
    left = extent + 3 + 1.2 * style.font_size
    rest = 4 * style.font_size + (1.8 * style.font_size if len(look.colours) > 1 else 0)
    width = style.points_wide - left - 2 * _PADDING
    high = style.points_high(style.points_wide) - rest - _GAP - 2 * _PADDING
    upper = _curves(look, ticks, None)
    _add_legends(upper, look, curves, style)
    lower = copy.deepcopy(below[0])
    for part, share in ((upper, _ABOVE), (lower, 1 - _ABOVE)):
        part.pop("$schema", None)
        part |= {"width": round(width, 1), "height": round(high * share, 1)}
    scales = dict.fromkeys(("color", "stroke", "shape", "strokeDash"), "independent")
    spec = {"vconcat": [upper, lower], "spacing": _GAP, "resolve": {"scale": scales}}
    shown = {name: _small(in_task_unit(rows)) for name, rows in below[1].items()}
    shown |= _curve_data(curves, ticks)
    finished = _finished(spec, shown, style)
    finished["config"]["axisY"] = {"minExtent": extent, "maxExtent": extent, "labelLimit": extent}
    return finished


def _add_legends(spec: Spec, look: Look, data: Mapping[str, Rows], style: FigureStyle) -> None:
    """Adds the legends, of dashes below the chart, and in as many rows as the width asks for."""
    show_legends(spec, look, data)
    for field, values in (("colour", look.colours), ("dash", look.dashes)):
        for encoded in _encodings(spec):
            legend = encoded.get("legend")
            if legend and encoded.get("field") == field:
                shown = drawn_values(values, field, data)
                legend["columns"] = _columns(str(legend["title"]), shown, style)
                if field == "dash":  # a line that is long enough to show its dashes
                    size = round((_DASH * style.font_size) ** 2)
                    legend |= {"symbolType": "stroke", "symbolSize": size, "orient": "bottom"}


def _encodings(spec: Spec) -> Iterator[dict[str, Any]]:
    """The encodings of scales that have legends, in the layers of a chart."""
    for layer in spec["layer"]:
        for channel in ("color", "shape", "strokeDash"):
            if channel in layer["encoding"]:
                yield layer["encoding"][channel]


def _columns(title: str, values: Sequence[str], style: FigureStyle) -> int:
    """How many entries of a legend stand side by side."""
    letter, mark = _LETTER * style.font_size, 2.2 * style.font_size
    room = style.points_wide - letter * len(title) - 2 * style.font_size
    widths = [mark + letter * len(value) for value in values]
    if sum(widths) <= room:
        return len(values)
    return max(1, min(len(values), int(room / max(widths))))


def _small(rows: Rows) -> Rows:
    """The rows with marks of the size that a figure has room for."""
    return [row | ({"size": _MARK * row["size"]} if "size" in row else {}) for row in rows]


def _finished(spec: Spec, data: Mapping[str, Rows], style: FigureStyle) -> Spec:
    padded = {"padding": _PADDING, "config": config(style), "datasets": dict(data)}
    return inked(spec | padded, INKS)


def _ends(ticks: Sequence[int]) -> tuple[float, float]:
    air = air_around(ticks)
    return min(ticks) / air, max(ticks) * air
