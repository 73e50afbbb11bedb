"""The chart of a run in notebooks."""

from __future__ import annotations

import altair as alt
import pandas as pd

from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.spec.unit import length_title

WIDTH, HEIGHT = 480, 280


def accuracy_chart(run: JudgedRun) -> alt.LayerChart:
    """Accuracy over length with its intervals, a line for each condition; and each effective length
    with its interval, at the threshold. An end of an interval outside the tested lengths is drawn
    at the nearest of them.
    """
    curves = pd.concat(
        judged.scored_cells.query("length > 0").assign(condition=judged.label)[
            ["condition", "length", "n", "accuracy", "ci_low", "ci_high"]
        ]
        for judged in run.conditions.values()
    )
    tested = sorted({int(length) for length in curves["length"]})
    domain: list[float] = [tested[0], tested[-1]]
    if len(tested) == 1:
        domain = [tested[0] / 2, tested[0] * 2]
    x = alt.X(
        "length:Q",
        title=length_title([run.spec.unit]),
        # the longest first: where labels overlap, Vega hides the later one in this order
        scale=alt.Scale(
            type="log", domain=domain[::-1], reverse=True, nice=False, clamp=True, padding=8
        ),
        axis=alt.Axis(values=tested, grid=False),
    )
    y = alt.Y(
        "accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")
    )
    low, high = alt.Y("ci_low:Q", title="accuracy"), alt.Y2("ci_high:Q", title="")
    labels = [judged.label for judged in run.conditions.values()]
    colour = alt.Color(
        "condition:N",
        scale=alt.Scale(domain=labels),
        legend=alt.Legend(symbolOpacity=1) if len(labels) > 1 else None,
    )
    base = alt.Chart(curves)
    tooltip = [
        *("condition:N", "length:Q", alt.Tooltip("accuracy:Q", format=".1%")),
        alt.Tooltip("ci_low:Q", format=".1%", title="95 % interval from"),
        alt.Tooltip("ci_high:Q", format=".1%", title="to"),
        alt.Tooltip("n:Q", title="scored"),
    ]
    seen = alt.Chart(_estimates(run, domain))
    at = alt.Y("accuracy:Q", title="accuracy")
    chart: alt.LayerChart = (
        alt.layer(
            base.mark_area(opacity=0.12).encode(x, low, high, colour),
            base.mark_line(strokeWidth=2).encode(x, y, colour),
            base.mark_point(filled=True, size=40).encode(x, y, colour, tooltip=tooltip),
            seen.mark_rule(strokeWidth=3, opacity=0.5).encode(
                alt.X("low:Q"), alt.X2("high:Q"), at, colour
            ),
            seen.mark_point(shape="diamond", filled=True, size=110, opacity=1).encode(
                alt.X("length:Q"), at, colour, tooltip=["condition:N", "right_to:N"]
            ),
        )
        .properties(width=WIDTH, height=HEIGHT, title=f"{run.manifest.task}, {run.manifest.model}")
        .resolve_scale(x="shared", y="shared", color="shared")
    )
    return chart


def _estimates(run: JudgedRun, domain: list[float]) -> pd.DataFrame:
    """A row for each effective length: its place in the chart, and its text."""
    rows = []
    for judged in run.conditions.values():
        estimate = judged.effective_length()
        if estimate is None or judged.curve is None or estimate.length is None:
            continue
        low, high = estimate.length_ci
        rows.append(
            {
                "condition": judged.label,
                "length": _within(estimate.length.length, domain),
                "low": _within(low.length, domain),
                "high": _within(high.length, domain),
                "accuracy": run.settings.threshold,
                "right_to": str(estimate),
            }
        )
    return pd.DataFrame(rows)


def _within(length: float, domain: list[float]) -> float:
    return min(max(length, domain[0]), domain[1])
