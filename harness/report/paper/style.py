"""How a figure for a paper looks: its inks, and the configuration of Vega-Lite."""

from __future__ import annotations

from eyechart.harness.report.charts.looks import LIGHT, Spec
from eyechart.harness.settings.figure import FigureStyle

INKS = {**LIGHT, "soft": "#333333", "line": "#e6e6e6", "ghost": "#666666", "ink": "#000000"}
"""Text and axes are darker than on a page: they are printed thin and small."""


def config(style: FigureStyle) -> Spec:
    small = {"labelFontSize": style.font_size, "titleFontSize": style.font_size}
    inked = {"labelColor": INKS["ink"], "titleColor": INKS["ink"], "titleFontWeight": "normal"}
    return {
        "background": "white",
        "font": style.font,
        "view": {"stroke": None},
        "axis": {
            **small,
            **inked,
            "gridColor": INKS["line"],
            "gridWidth": 0.5,
            "domainColor": INKS["ghost"],
            "domainWidth": 0.6,
            "tickColor": INKS["ghost"],
            "tickWidth": 0.6,
            "tickSize": 3,
            "labelPadding": 2,
            "titlePadding": 3,
            "labelOverlap": "greedy",
            "labelLimit": round(style.points_wide * 0.4),
        },
        "axisX": {"labelSeparation": 3, "labelFlush": False},
        "legend": {
            **small,
            **inked,
            "orient": "top",
            "direction": "horizontal",
            "offset": 2,
            "columnPadding": 6,
            "rowPadding": 1,
            "titlePadding": 4,
            "titleOrient": "left",
            "symbolSize": round(style.font_size * 4),
            "symbolStrokeWidth": 1,
            "labelLimit": round(style.points_wide * 0.6),
        },
        "text": {"fontSize": style.font_size, "fill": INKS["ink"]},
    }
