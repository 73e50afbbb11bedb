"""Accuracy by position or depth and length: one panel for each model and each other condition."""

from __future__ import annotations

import altair as alt

from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.report.charts.charts import dataset, layered, longest_first
from eyechart.harness.report.charts.kept_specs import kept
from eyechart.harness.report.charts.looks import LABEL, Spec
from eyechart.harness.report.charts.panels import Figure, Panel, Rows
from eyechart.harness.report.page.section import Section

AXES = ("depth", "position")
"""Axes of a task that give a place: of the row in its context, or of what is asked in the row. The
first one that is varied is drawn."""
_ROW = 26
_FAINT, _FULL = 0.05, 0.5
"""Opacities of the colour at accuracies 0 and 1; at both, the number in the cell is readable."""


def heat_map_figure(section: Section) -> Figure | None:
    """Accuracy by place and length; `None` unless a task ran at several places."""
    axis = next((axis for axis in AXES if len(section.axes.get(axis, [])) > 1), None)
    if axis is None:
        return None
    others = [other for other in section.varied if other != axis]
    panels: dict[tuple[str, str], Rows] = {}
    for series in section.series:
        where = ", ".join(f"{other} {series.condition[other]}" for other in others)
        rows = panels.setdefault((series.run_details.name, where), [])
        # lines with the same nominal length are one cell
        counts = series.cells.groupby("length")[["n", "correct"]].sum()
        for length, n, correct in counts.itertuples():
            interval = wilson(int(correct), int(n))
            if interval is None:
                continue
            low, high = interval
            rows.append(
                {
                    axis: series.condition[axis],
                    "length": int(length),
                    "y": correct / n,
                    "percent": f"{100 * correct / n:.0f}",
                    "n": int(n),
                    "interval": f"{100 * low:.1f} to {100 * high:.1f} %",
                }
            )
    made = tuple(
        Panel(model, where, {"cells": rows}) for (model, where), rows in panels.items() if rows
    )
    if not made:
        return None
    spec = _heat_map(axis, section.axes[axis], section.every_length, section.over)
    return Figure(
        "position",
        f"Accuracy by {axis} and length",
        spec,
        made,
        lengths=False,
        hint="Numbers are the accuracy in percent; the fuller the colour, the higher.",
        least=360,
        below=30,
    )


@kept
def _heat_map(axis: str, places: list[str], lengths: list[int], over: str) -> Spec:
    """Data: `cells` (the axis's own name, length, y, percent, n, interval)."""
    cells = dataset("cells")
    x = alt.X(
        "length:O",
        scale=alt.Scale(**longest_first(lengths)),
        axis=alt.Axis(title=over, labelAngle=0),
    )
    y = alt.Y(
        f"{axis}:N",
        scale=alt.Scale(domain=places),
        axis=alt.Axis(title=axis, domain=False, ticks=False),
    )
    # one colour whose opacity varies: a CSS variable cannot be mixed with another by Vega
    colour = alt.Opacity(
        "y:Q",
        scale=alt.Scale(domain=[0, 1], range=[_FAINT, _FULL]),
        legend=alt.Legend(
            title="accuracy",
            format="%",
            values=[0, 0.25, 0.5, 0.75, 1],
            symbolType="square",
            symbolFillColor="var(--s1)",
            symbolSize=160,
            columns=5,
        ),
    )
    tips = [
        alt.Tooltip(f"{axis}:N"),
        alt.Tooltip("length:Q", format=","),
        alt.Tooltip("y:Q", title="accuracy", format=".1%"),
        alt.Tooltip("interval:N", title="95 % interval"),
        alt.Tooltip("n:Q", title="scored", format=","),
    ]
    return layered(
        cells.mark_rect(fill="var(--s1)", stroke="var(--line)", strokeWidth=1).encode(
            x, y, colour, tooltip=tips
        ),
        cells.mark_text(color="var(--ink)", fontSize=LABEL - 1).encode(
            x, y, alt.Text("percent:N"), tooltip=tips
        ),
        height=_ROW * len(places),
    )
