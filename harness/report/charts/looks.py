"""The look of a report's charts: colours, shapes, dashes, and their meaning.

Colours are CSS variables, so that one spec serves light, dark and print; `inked` replaces them by
real colours for files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import altair as alt

from eyechart.harness.score.outcomes import Outcome

Spec: TypeAlias = dict[str, Any]

SERIES_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colours of Okabe and Ito, the most visible on white first; without yellow."""
SERIES_DARK = ("#56B4E9", "#E69F00", "#2DBE94", "#CC79A7", "#F0E442", "#E8752C", "#F5F5F5")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
DASHES: tuple[tuple[int, ...], ...] = (
    (1, 0),
    (6, 3),
    (2, 2),
    (8, 3, 2, 3),
    (4, 1),
    (1, 3),
    (10, 4),
)
OUTCOME_COLOURS = {
    outcome.value: f"var(--s{outcome.about.ink})" if outcome.about.ink else "var(--ghost)"
    for outcome in Outcome
}
KNOWN_COLOURS = {
    "both": "var(--s1)",
    "only the likelihood": "var(--s2)",
    "only the reply": "var(--s3)",
    "neither": "var(--line)",
}
"""Which of two readings is right -> its colour, from the bottom of a bar to its top."""
LIGHT = {
    "ink": "#1c2024",
    "soft": "#5c6670",
    "line": "#e3e6e9",
    "ghost": "#9aa3ab",
    "paper": "#ffffff",
    **{f"s{place}": colour for place, colour in enumerate(SERIES_LIGHT, start=1)},
}
DARK = {
    "ink": "#e8eaec",
    "soft": "#a3acb5",
    "line": "#2c3238",
    "ghost": "#77818b",
    "paper": "#14171a",
    **{f"s{place}": colour for place, colour in enumerate(SERIES_DARK, start=1)},
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
LABEL = 11
"""Font size of all small text, in pixels."""
_LARGEST, _SMALLEST = 64, 30
"""Areas of marks, in square pixels."""


@dataclass(frozen=True)
class Look:
    """How the series of a section differ: one axis by colour and shape, another by dashes."""

    colours: tuple[str, ...]
    dashes: tuple[str, ...]
    """Empty if only one axis varies; its dashes then follow its colours."""
    colour_title: str = ""
    dash_title: str = ""

    def colour(self) -> alt.Color:
        """The colour of a series; only files get a legend."""
        inks = [ink(place) for place in range(len(self.colours))]
        scale = alt.Scale(domain=list(self.colours), range=inks)
        return alt.Color("colour:N", scale=scale, legend=None)

    def shape(self) -> alt.Shape:
        shapes = [SHAPES[place % len(SHAPES)] for place in range(len(self.colours))]
        scale = alt.Scale(domain=list(self.colours), range=shapes)
        return alt.Shape("colour:N", scale=scale, legend=None)

    def dash(self) -> alt.StrokeDash:
        values = self.dashes or self.colours
        ranges = [list(DASHES[place % len(DASHES)]) for place in range(len(values))]
        scale = alt.Scale(domain=list(values), range=ranges)
        return alt.StrokeDash("dash:N", scale=scale, legend=None)

    def points(self, data: alt.Chart, *, stroke: float = 1.5) -> alt.Chart:
        """Marks, each colour's smaller, so that none hides another; `stroke` in pixels."""
        colour = self.colour()
        marks: alt.Chart = data.mark_point(filled=True, opacity=1, strokeWidth=stroke).encode(
            colour,
            self.shape(),
            alt.Stroke("colour:N", scale=colour["scale"], legend=None),
            alt.FillOpacity("solid:Q", scale=None),
            alt.Size("size:Q", scale=None),
        )
        return marks

    def solid(self, dash: str) -> float:
        """Opacity of a mark's filling, which differs between dashes: full, open, or in between."""
        place = self.dashes.index(dash) if self.dashes else 0
        return (1.0, 0.0, 0.4)[place % 3]

    def size(self, colour: str) -> float:
        """The area of a mark, in square pixels."""
        place = self.colours.index(colour) / max(len(self.colours) - 1, 1)
        return round(_LARGEST - (_LARGEST - _SMALLEST) * place)

    def marks(self, name: str, more: str = "") -> dict[str, str | float]:
        """The fields of every row of a series that its name alone tells apart."""
        ways: dict[str, str | float] = {"colour": name, "dash": name, "size": self.size(name)}
        return {**ways, "solid": 1.0, "where": name + more}


def ink(place: int) -> str:
    """The colour of the series at `place`, from 0."""
    return f"var(--s{place % len(SERIES_LIGHT) + 1})"


def config(font: str = FONT) -> Spec:
    """The Vega-Lite configuration of every chart."""
    text = {"labelColor": "var(--soft)", "titleColor": "var(--soft)", "titleFontWeight": "normal"}
    small = {"labelFontSize": LABEL, "titleFontSize": LABEL}
    return {
        "background": "transparent",
        "font": font,
        "view": {"stroke": None},
        "axis": {
            **text,
            **small,
            "gridColor": "var(--line)",
            "domainColor": "var(--ghost)",
            "tickColor": "var(--ghost)",
            "labelOverlap": "greedy",
            "labelPadding": 4,
        },
        "axisY": {"domain": False, "ticks": False, "minExtent": 34, "titlePadding": 4},
        "axisX": {"labelSeparation": 4, "labelFlush": False},
        "legend": {**text, **small, "orient": "bottom", "columns": 4},
        "title": {"color": "var(--ink)", "subtitleColor": "var(--soft)"},
    }


def inked(spec: Spec, inks: Mapping[str, str]) -> Spec:
    """`spec` with the colours of `inks` in place of CSS variables."""
    text = json.dumps(spec)
    for name, colour in inks.items():
        text = text.replace(f"var(--{name})", colour)
    coloured: Spec = json.loads(text)
    return coloured
