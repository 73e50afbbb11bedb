"""Vega-Lite specs of a report's charts, made with Altair.

A spec is made once for a section and refers to its data by name; each panel has its own rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from eyechart.harness.report.charts.kept_specs import kept
from eyechart.harness.report.charts.looks import KNOWN_COLOURS, LABEL, OUTCOME_COLOURS, Look, Spec

WIDTH, HEIGHT = 300, 170
_ROW = 18
_AIR = 8
"""Pixels between the outermost marks and the edge."""
_APART, _MOST_APART = 2.2, 14
"""Pixels between equal curves, which are drawn above each other; and between all of them."""
_LANE, _LANES = 4.5, 0.7
"""Most pixels between marks that lie side by side; and the share of the room between two lengths
that the marks of all series may use."""
_TICK = 32
"""Pixels from the label of the longest tested length to that of a longer published one."""
_ENDS = (0.1, 0.2, 0.4, 0.6, 0.8, 1)
"""Least end of an axis of differences; on a shorter axis chance would look large."""
LARGEST = 1e12
"""Answers and errors beyond this are drawn at this value."""
MANY = 6
"""A model with more series than this has several charts; one of more models no fitted curves."""


def _x(
    field: str,
    lengths: Sequence[int],
    *,
    bare: bool = False,
    reach: Sequence[int] = (),
    title: str = "",
) -> alt.X:
    """The length axis; the page's script sets domain, ticks and title for another unit."""
    ends = _around([*lengths, *reach])
    scale = alt.Scale(type="log", nice=False, **longest_first(ends))
    if bare:
        axis = alt.Axis(labels=False, ticks=False, domain=False, grid=False, title=None)
    else:
        after = max(lengths) * (ends[1] / ends[0]) ** (_TICK / WIDTH)
        beyond = [x for x in _DECADES if after < x <= max(reach, default=0)]
        axis = alt.Axis(values=[*lengths, *beyond], grid=False, title=title)
    return alt.X(f"{field}:Q", scale=scale, axis=axis)


def longest_first(ascending: Sequence[float]) -> dict[str, Any]:
    """The domain of a scale, in an order that keeps the label of the longest length: where labels
    overlap, Vega hides the later one in the domain.
    """
    return {"domain": list(reversed(ascending)), "reverse": True}


def _around(ticks: Sequence[float]) -> list[float]:
    """The range of `ticks`, a little wider on both sides."""
    low, high = min(ticks), max(ticks)
    air = air_around(ticks)
    return [low / air, high * air]


def air_around(ticks: Sequence[float]) -> float:
    """How far the axis goes beyond the outermost of `ticks`, as a factor."""
    low, high = min(ticks), max(ticks)
    return float((high / low) ** 0.04) if high > low else 1.5


def dataset(name: str) -> alt.Chart:
    """A chart of the rows that a panel has under a name."""
    return alt.Chart(alt.NamedData(name=name))


def accuracy_axis() -> alt.Y:
    """The field `y`, an accuracy, from 0 to 100 %."""
    return alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1], title="accuracy"),
    )


def _dashed(name: str) -> alt.Chart:
    rule: alt.Chart = dataset(name).mark_rule(color="var(--soft)", strokeDash=[3, 3])
    return rule


def _beside(data: alt.Chart, look: Look, lengths: Sequence[int]) -> alt.Chart:
    """`data` with each row moved sideways to its lane, by few pixels."""
    low, *_, high = _around(lengths)
    series = len(look.colours) * max(1, len(look.dashes))
    nearest = min(
        (long / short for short, long in pairwise(sorted(set(lengths)))), default=high / low
    )
    lane = min((high / low) ** (_LANE / WIDTH), nearest ** (_LANES / series))
    return data.transform_calculate(x=f"datum.x * pow({lane:.5f}, datum.lane)")


_TIPS = {
    "where": alt.Tooltip("where:N", title="condition"),
    "length": alt.Tooltip("length:Q", title="length", format=","),
    "accuracy": alt.Tooltip("y:Q", title="accuracy", format=".1%"),
    "interval": alt.Tooltip("interval:N", title="95 % interval"),
    "n": alt.Tooltip("n:Q", title="scored", format=","),
}


def _tips(*names: str, **more: str) -> list[alt.Tooltip]:
    return [
        *(_TIPS[name] for name in names),
        *(alt.Tooltip(field, title=title.replace("_", " ")) for title, field in more.items()),
    ]


@kept
def accuracy_chart(look: Look, ticks: Sequence[int], rows: int, note: str, *, over: str) -> Spec:
    """Accuracy over length with its intervals and the fitted curve, and above it the effective
    length of each series.

    Data: `curve` (x, y, low, high, n, lane), `others` (x, y), `fit` (x, y), `estimate` (row, x,
    low, high, label, span, lapse), `threshold`. `note` is the meaning of a star after a label, or
    empty. `over` is the title of the x axis.
    """
    colour, dash, y = look.colour(), look.dash(), accuracy_axis()
    x = _x("x", ticks, title=over)
    curve = dataset("curve")
    apart = min(_APART, _MOST_APART / rows) / HEIGHT
    tips = _tips("where", "length", "accuracy", "interval", "n")
    curves = _layers(
        dataset("others")
        .mark_line(strokeWidth=1, color="var(--ghost)", opacity=0.45)
        .encode(x, y, alt.Detail(["colour:N", "dash:N"])),
        _beside(curve, look, ticks)
        .mark_rule(strokeWidth=1.5, opacity=0.45)
        .encode(x, alt.Y("low:Q", scale=y["scale"], axis=y["axis"]), alt.Y2("high:Q"), colour),
        _dashed("threshold").encode(y),
        dataset("fit")
        .mark_line(strokeWidth=0.8, opacity=0.7)
        .encode(x, y, colour, alt.Detail("dash:N")),
        curve.mark_line(strokeWidth=2, strokeJoin="round")
        .encode(x, alt.Y("drawn:Q", scale=y["scale"], axis=y["axis"]), colour, dash)
        .transform_calculate(drawn=f"datum.y + {apart:.4f} * datum.lane"),
        look.points(_beside(curve, look, ticks)).encode(x, y, tooltip=tips),
    )
    place = alt.Y("row:O", axis=None, scale=alt.Scale(domain=list(range(rows)), paddingOuter=0.4))
    hidden = _x("x", ticks, bare=True)
    estimate = dataset("estimate")
    strip = _layers(
        estimate.mark_rule(strokeWidth=3, opacity=0.35, strokeCap="round").encode(
            _x("low", ticks, bare=True), place, alt.X2("high:Q"), colour
        ),
        look.points(estimate).encode(
            hidden,
            place,
            tooltip=_tips("where", right_to="label:N", between="span:N", lapse_rate="lapse:N"),
        ),
        estimate.mark_text(align="left", dx=8, color="var(--ink)", fontSize=LABEL).encode(
            place, alt.Text("label:N"), x=alt.value("width")
        ),
        height=max(2, rows) * _ROW,
        title={
            "text": "Effective length and its 95 % interval" + (note and f" (*: {note})"),
            "anchor": "start",
            "color": "var(--soft)",
            "fontSize": LABEL,
            "fontWeight": "normal",
            "offset": 2,
        },
    )
    shared = {"scale": {"x": "shared"}}
    return {"vconcat": [strip, curves], "resolve": shared, "spacing": 8, **_SCHEMA}


def _stacked(
    name: str, field: str, colours: Mapping[str, str], ticks: Sequence[int], over: str
) -> tuple[alt.Chart, alt.X, alt.Y]:
    """Shares of the values of a field, stacked, by length; and the axes, without stacking."""
    names, inks = map(list, (colours, colours.values()))
    x = alt.X(
        "length:O",
        axis=alt.Axis(title=over, labelAngle=0),
        scale=alt.Scale(paddingInner=0.12, **longest_first(ticks)),
    )
    axis, scale = alt.Axis(format="%", title="samples", tickCount=3), alt.Scale(domain=[0, 1])
    bars = (
        dataset(name)
        .mark_bar(stroke="var(--paper)", strokeWidth=0.6)
        .encode(
            x,
            alt.Y("share:Q", stack="zero", axis=axis, scale=scale),
            alt.Color(f"{field}:N", scale=alt.Scale(domain=names, range=inks), legend=None),
            alt.Order("rank:Q"),
        )
    )
    return bars, x, alt.Y("share:Q", scale=scale, axis=axis)


@kept
def outcomes_chart(ticks: Sequence[int], over: str) -> Spec:
    """Shares of the outcomes, stacked, by length; `over` is the title of the x axis.

    Data: `outcomes` (length, outcome, n).
    """
    bars, _, _ = _stacked("outcomes", "outcome", OUTCOME_COLOURS, ticks, over)
    tips = _tips("length", outcome="outcome:N", samples="n:Q")
    return spec_of(bars.encode(tooltip=tips).properties(width=WIDTH, height=110))


@kept
def known_chart(ticks: Sequence[int], over: str) -> Spec:
    """Which of two readings of a model is right, as stacked shares by length, with a tick at which
    the second bar would end if the likelihood guessed; `over` is the title of the x axis.

    Data: `known` (length, reading, rank, n, share), `guesses` (length, share, n).
    """
    bars, x, y = _stacked("known", "reading", KNOWN_COLOURS, ticks, over)
    guesses = dataset("guesses").mark_tick(color="var(--ink)", thickness=2)
    return layered(
        bars.encode(tooltip=_tips("length", right="reading:N", pairs="n:Q")),
        guesses.encode(x, y, tooltip=_tips("length", guesses="n:Q")),
        height=110,
    )


@kept
def answers_chart(look: Look) -> Spec:
    """Answers against right ones.

    Data: `answers` (true, given, n, colour), `ends` (true, given).
    """
    true, given = _symlog("true", "right answer", alt.X), _symlog("given", "answer")
    size = alt.Size("n:Q", scale=alt.Scale(type="sqrt", range=[12, 260]), legend=None)
    tips = _tips("where", right_answer="true:Q", answer="given:Q", samples="n:Q")
    return layered(
        dataset("ends").mark_line(color="var(--soft)", strokeDash=[3, 3]).encode(true, given),
        dataset("answers")
        .mark_point(filled=True, opacity=0.55)
        .encode(true, given, look.colour(), look.shape(), size, tooltip=tips),
        height=220,
    )


_DECADES = sorted(
    sign * value
    for sign in (-1, 1)
    for value in [0, *(digit * 10**power for power in range(13) for digit in (1, 2, 5))]
    if sign > 0 or value
)


@kept
def common_answers_chart() -> Spec:
    """How often the commonest answers were given, and how often each was the right one.

    Data: `common` (answer, given, true).
    """
    y = alt.Y("answer:N", sort=None, axis=alt.Axis(title="answer", domain=False, ticks=False))
    tips = _tips(answer="answer:N", given="given:Q", true="true:Q")
    return layered(
        dataset("common")
        .mark_bar(color="var(--s1)", opacity=0.8, height={"band": 0.62})
        .encode(
            alt.X("given:Q", axis=alt.Axis(title="times given", tickMinStep=1)), y, tooltip=tips
        ),
        dataset("common")
        .mark_tick(color="var(--ink)", thickness=2, size=13)
        .encode(alt.X("true:Q"), y, tooltip=tips),
        height=220,
    )


@kept
def error_chart(look: Look, ticks: Sequence[int], over: str) -> Spec:
    """Median signed error over length and the middle 80 % of it; `over` is the title of the x axis.

    Data: `error` (x, y, low, high, n, lane).
    """
    data = _beside(dataset("error"), look, ticks)
    x, y = _x("x", ticks, title=over), _symlog("y", "answer − right answer")
    tips = _tips("where", "length", median="y:Q", middle_four_fifths="interval:N", answers="n:Q")
    return layered(
        _dashed("zero").encode(y),
        data.mark_rule(strokeWidth=5, opacity=0.22).encode(
            x, _symlog("low", "answer − right answer"), alt.Y2("high:Q"), look.colour()
        ),
        data.mark_line(strokeWidth=1.5).encode(x, y, look.colour(), look.dash()),
        look.points(data).encode(x, y, tooltip=tips),
    )


def _symlog(field: str, title: str, channel: type[alt.X | alt.Y] = alt.Y) -> alt.X | alt.Y:
    """A field of small and huge whole numbers."""
    scale = alt.Scale(type="symlog", constant=1, nice=False, padding=_AIR)
    axis = alt.Axis(title=title, values=_DECADES, labelOverlap="greedy", format="~s", grid=True)
    return channel(f"{field}:Q", scale=scale, axis=axis)


@kept
def published_chart(look: Look, ticks: Sequence[int], reach: Sequence[int], over: str) -> Spec:
    """Mean size of the error: our measurements in colour, published ones in grey behind them, out
    to `reach`. `over` is the title of the x axis.

    Data: `published` (x, y, model, note, mark), `names` (x, y, label), `error` (x, y, n, lane).
    """
    x, y = _x("x", ticks, reach=reach, title=over), _symlog("y", "mean |error|")
    tips = _tips(published="model:N", at="x:Q", error="y:Q", note="note:N")
    published = dataset("published")
    measured = dataset("error")
    spec = layered(
        published.mark_line(color="var(--ghost)", strokeWidth=1).encode(
            x, y, alt.Detail("model:N")
        ),
        published.mark_text(color="var(--ghost)", fontSize=LABEL).encode(
            x, y, alt.Text("mark:N"), tooltip=tips
        ),
        dataset("names")
        .mark_text(color="var(--soft)", fontSize=LABEL, align="left", dx=8)
        .encode(x, y, alt.Text("label:N")),
        measured.mark_line(strokeWidth=2).encode(x, y, look.colour(), look.dash()),
        look.points(_beside(measured, look, ticks)).encode(
            x, y, tooltip=_tips("where", at="x:Q", error="y:Q", answers="n:Q")
        ),
        height=HEIGHT + 40,
    )
    # room for the names on the right: the page fits the drawing without them
    return {**spec, "padding": {"left": 5, "top": 5, "bottom": 5, "right": 48}}


@kept
def published_accuracy_chart(
    look: Look, ticks: Sequence[int], reach: Sequence[int], over: str
) -> Spec:
    """Accuracy over length: our measurements in colour, published ones in grey, each mark over its
    range of lengths. `over` is the title of the x axis.

    Data: `published` (x, x2, y, model, mark), `curve` (x, y, n, lane).
    """
    x, y = _x("x", ticks, reach=reach, title=over), accuracy_axis()
    published, measured = dataset("published"), dataset("curve")
    middle = published.transform_calculate(middle="sqrt(datum.x * datum.x2)")
    return layered(
        published.mark_rule(color="var(--ghost)").encode(x, y, alt.X2("x2:Q")),
        measured.mark_line(strokeWidth=2).encode(x, y, look.colour(), look.dash()),
        look.points(_beside(measured, look, ticks)).encode(
            x, y, tooltip=[*_tips("where", length="x:Q"), _TIPS["accuracy"], *_tips("n")]
        ),
        middle.mark_text(color="var(--soft)", fontSize=LABEL + 2).encode(
            _x("middle", ticks, reach=reach, title=over),
            y,
            alt.Text("mark:N"),
            tooltip=[*_tips(published="model:N", length="x:Q", to="x2:Q"), _TIPS["accuracy"]],
        ),
    )


@kept
def published_rows_chart(
    look: Look, rows: Sequence[str], title: str, *, measured: bool = True, truth: bool = True
) -> Spec:
    """A chart with one row for each model, or for another name: published values in grey, our
    measurements in colour.

    Data: `published` (row, x). With `measured` also a data set `measured` (row, x, n); with `truth`
    a data set `truth` (x) for a line; with both a data set `silent` (row, note) for rows without a
    value.
    """
    x = _symlog("x", title, alt.X)
    if not measured:
        x = alt.X("x:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title=title))
    y = alt.Y(
        "row:N",
        scale=alt.Scale(domain=list(rows)),
        axis=alt.Axis(title=None, domain=False, ticks=False, labelLimit=160),
    )
    layers: list[alt.Chart] = [
        dataset("published")
        .mark_tick(color="var(--ghost)", thickness=3, size=12)
        .encode(x, y, tooltip=_tips(published="row:N", value="x:Q"))
    ]
    if truth:
        layers.insert(0, _dashed("truth").encode(x))
    if measured and truth:
        silent = dataset("silent").mark_text(color="var(--soft)", fontSize=LABEL, align="left")
        layers.append(silent.encode(y, alt.Text("note:N"), x=alt.value(4)))
    if measured:
        size = alt.Size("n:Q", scale=alt.Scale(type="sqrt", range=[24, 160]), legend=None)
        points = dataset("measured").mark_point(filled=True, opacity=0.6)
        tips = _tips("where", value="x:Q", samples="n:Q")
        layers.append(points.encode(x, y, look.colour(), look.shape(), size, tooltip=tips))
    return layered(*layers, height=_ROW * len(rows))


@kept
def inside_chart(
    look: Look,
    ticks: Sequence[int],
    title: str,
    *,
    over: str,
    is_log: bool,
    is_share: bool,
    are_intervals: bool = False,
) -> Spec:
    """Values measured inside a model, by length, with the effective lengths as vertical lines. The
    axis of a share goes from 0 to 1. `over` is the title of the x axis; `are_intervals` says
    that `low` and `high` are those of an interval, otherwise of the values.

    Data: `inside` (x, y, low, high, n, lane), `estimate` (x), `line` (y).
    """
    inside, x = _beside(dataset("inside"), look, ticks), _x("x", ticks, title=over)
    scale = alt.Scale(type="log" if is_log else "linear", zero=False)
    if is_share:
        scale = alt.Scale(domain=[0, 1])
    axis = alt.Axis(title=title, format="~r", tickCount=4)
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=axis) for field in ("y", "low"))
    ends = {"from": "low:Q", "to": "high:Q"}
    if not are_intervals:
        ends = {"smallest": "low:Q", "largest": "high:Q"}
    tips = _tips("where", "length", mean="y:Q", **ends, samples="n:Q")
    return layered(
        _dashed("line").encode(y),
        dataset("estimate").mark_rule(strokeWidth=1, strokeDash=[2, 2]).encode(x, look.colour()),
        inside.mark_rule(strokeWidth=5, opacity=0.22).encode(
            x, low, alt.Y2("high:Q"), look.colour()
        ),
        inside.mark_line(strokeWidth=1.5).encode(x, y, look.colour(), look.dash()),
        look.points(inside).encode(x, y, tooltip=tips),
    )


@kept
def effects_chart(look: Look, ticks: Sequence[int], largest: float, over: str) -> Spec:
    """Paired differences from the first value of an axis, with intervals, at each length. The
    y axis is symmetric around 0 and shows `largest`, the farthest end of an interval. `over` is the
    title of the x axis.

    Data: `effects` (x, y, low, high, n, colour, lane).
    """
    data = _beside(dataset("effects"), look, ticks)
    x = _x("x", ticks, title=over)
    end = next(end for end in _ENDS if end >= min(largest, 1))
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[-end, end]),
        axis=alt.Axis(
            labelExpr="datum.value ? format(datum.value, '+.0%') : '0'",
            values=[-end, -end / 2, 0, end / 2, end],
            title="difference",
        ),
    )
    low = alt.Y("low:Q", scale=y["scale"], axis=y["axis"])
    tips = _tips("length", compared="where:N", difference="difference:N", pairs="n:Q", Holm_p="p:N")
    return layered(
        _dashed("zero").encode(y),
        data.mark_line(strokeWidth=1, opacity=0.5).encode(x, y, look.colour(), look.dash()),
        data.mark_rule(strokeWidth=2).encode(x, low, alt.Y2("high:Q"), look.colour()),
        look.points(data).encode(x, y, tooltip=tips),
    )


_SCHEMA = {"$schema": alt.SCHEMA_URL}


def spec_of(chart: alt.TopLevelMixin) -> Spec:
    """The chart as Vega-Lite, without the configuration that Altair adds.

    The spec is not validated here, because that takes as long as the rest of a page; tests do it.
    """
    spec: Spec = chart.to_dict(validate=False)
    spec.pop("config", None)
    return spec


def layered(*charts: alt.Chart, **properties: Any) -> Spec:
    """Charts above each other, as Vega-Lite; `alt.layer` copies them five times, which is slow."""
    return {**_layers(*charts, **properties), **_SCHEMA}


def _layers(
    *charts: alt.Chart, width: int = WIDTH, height: int = HEIGHT, **properties: Any
) -> Spec:
    """`layered` as a part of a spec. Data that all charts share stand once."""
    layers = [chart.to_dict(validate=False, context={"top_level": False}) for chart in charts]
    properties |= {"width": width, "height": height}
    if all(chart.data is charts[0].data for chart in charts):
        *_, properties["data"] = [layer.pop("data") for layer in layers]
    return {"layer": layers, **dict(sorted(properties.items()))}
