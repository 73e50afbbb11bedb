"""The chart of `bench rope`: similarity over distance, one line for each base."""

from __future__ import annotations

import altair as alt
import pandas as pd

_WIDTH, _HEIGHT = 560, 300
_NAMES = {"similarity": "equal", "gaussian": "Gaussian, drawn once"}


def similarity_svg(curves: pd.DataFrame, head_dim: int) -> str:
    """The chart as SVG text, from rows with base, distance, similarity and gaussian. The distances
    are drawn on a logarithmic axis, so distance 0 is left out.
    """
    import vl_convert  # noqa: PLC0415  an extra

    rows = curves[curves["distance"] > 0].melt(
        ["base", "distance"], list(_NAMES), "vectors", "value"
    )
    rows["vectors"] = rows["vectors"].map(_NAMES)
    rows["base"] = rows["base"].map("{:,.12g}".format)
    bases = list(dict.fromkeys(rows["base"]))
    lines = (
        alt.Chart(rows)
        .mark_line(strokeWidth=1)
        .encode(
            alt.X(
                "distance:Q",
                title="distance (tokens)",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(grid=False),
            ),
            alt.Y("value:Q", title="similarity"),
            alt.Color("base:N", scale=alt.Scale(domain=bases)),
            alt.StrokeDash(
                "vectors:N",
                title="query and key",
                scale=alt.Scale(domain=list(_NAMES.values()), range=[[1, 0], [2, 2]]),
            ),
            alt.Opacity(
                "vectors:N",
                legend=None,
                scale=alt.Scale(domain=list(_NAMES.values()), range=[1, 0.4]),
            ),
        )
    )
    zero = alt.Chart(pd.DataFrame({"value": [0]})).mark_rule(opacity=0.5).encode(y="value:Q")
    chart = alt.layer(zero, lines).properties(
        width=_WIDTH,
        height=_HEIGHT,
        title=f"Rotary positions: similarity of a query and a key, head width {head_dim}",
    )
    return vl_convert.vegalite_to_svg(chart.to_dict())
