"""The work of `bench rope`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.outputs import check_drawing, check_output
from eyechart.harness.cli.tables.layout import Column, show_blocks, show_title, table
from eyechart.harness.cli.terminal import echo, show
from eyechart.harness.errors import COMPLETE, UsageError
from eyechart.harness.journal import replace_file
from eyechart_lab.probe.rope import (
    SEARCHED,
    decay_bound,
    drawn_distances,
    drawn_similarity,
    first_negative,
    least_base,
    similarity,
)

_SHOWN = 4
"""Ratio of neighbouring distances in the printed curve."""
_LARGEST = 1e12
_MOST = 100
"""Bases and contexts of one command; one context can take a minute."""
_ENDINGS = {".csv": b"base,head_dim,", ".svg": b"<svg"}
_WIDTH, _HEIGHT = 560, 300
"""Of the chart, in pixels."""
_NAMES = {"similarity": "equal", "gaussian": "Gaussian, drawn once", "bound": "upper bound"}
"""Column of the curves -> what the chart calls its vectors."""


def rope(
    bases: Sequence[str],
    head_dim: int,
    contexts: Sequence[str],
    longest: int,
    outputs: Sequence[Path],
    *,
    as_json: bool,
) -> int:
    """Prints where the similarity of `bases` first is negative, which base each context needs, and
    the curves; writes `outputs`. Returns the exit code.
    """
    if head_dim % 2:
        raise UsageError(f"--head-dim {head_dim} is odd, and rotary positions turn pairs")
    for option, given in (("--base", bases), ("--context", contexts)):
        if len(given) > _MOST:
            raise UsageError(f"{option} has {len(given):,} numbers; give at most {_MOST}")
    read_bases = list(dict.fromkeys(map(_read_base, bases)))
    read_contexts = [_read_context(given) for given in contexts]
    for path in outputs:
        if path.suffix not in _ENDINGS:
            raise UsageError(f"--output {str(path)!r}: its name must end in .csv or .svg")
        check_output("--output", path, _ENDINGS[path.suffix])
        check_drawing("--output", path.suffix.removeprefix("."))
    curves = _curves(read_bases, head_dim, longest)
    negative = {base: first_negative(base, head_dim) for base in read_bases}
    bounds = {context: least_base(context, head_dim) for context in read_contexts}
    if as_json:
        print_document(_document(head_dim, curves, negative, bounds, outputs))
    else:
        _show(head_dim, negative, bounds, longest)
    for path in outputs:
        text = (
            curves.to_csv(index=False, float_format="%.6g", lineterminator="\n")
            if path.suffix == ".csv"
            else _svg(curves, head_dim)
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
        if not as_json:
            echo(str(path))
    return COMPLETE


def _read_base(given: str) -> float:
    try:
        base = float(given)
    except ValueError:
        base = 0
    if not 1 < base <= _LARGEST:
        raise UsageError(f"--base must be a number above 1 and at most 1e12, not {given!r}")
    return base


def _read_context(given: str) -> int:
    digits = given.isascii() and given.isdigit() and len(given) <= len(str(SEARCHED))
    if not digits or not 1 <= int(given) <= SEARCHED:
        raise UsageError(f"--context must be tokens from 1 to {SEARCHED:,}, not {given!r}")
    return int(given)


def _curves(bases: Sequence[float], head_dim: int, longest: int) -> pd.DataFrame:
    """Rows of the CSV file: base, head_dim, distance, similarity, gaussian, bound."""
    distances = drawn_distances(longest)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "base": base,
                    "head_dim": head_dim,
                    "distance": distances,
                    "similarity": similarity(base, head_dim, distances),
                    "gaussian": drawn_similarity(base, head_dim, distances),
                    "bound": decay_bound(base, head_dim, distances),
                }
            )
            for base in bases
        ],
        ignore_index=True,
    )


def _svg(curves: pd.DataFrame, head_dim: int) -> str:
    """The chart as SVG text, from rows with base, distance, similarity, gaussian and bound. The
    distances are drawn on a logarithmic axis, so distance 0 is left out.
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
            alt.Y("value:Q", title="similarity, or share of the bound"),
            alt.Color("base:N", scale=alt.Scale(domain=bases)),
            alt.StrokeDash(
                "vectors:N",
                title="query and key",
                scale=alt.Scale(domain=list(_NAMES.values()), range=[[1, 0], [2, 2], [8, 3]]),
            ),
            alt.Opacity(
                "vectors:N",
                title="query and key",
                scale=alt.Scale(domain=list(_NAMES.values()), range=[1, 0.4, 0.7]),
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


def _document(
    head_dim: int,
    curves: pd.DataFrame,
    negative: dict[float, int | None],
    bounds: dict[int, float | None],
    outputs: Sequence[Path],
) -> dict[str, Any]:
    return {
        "head_dim": head_dim,
        "searched": SEARCHED,
        "bases": [
            {
                "base": base,
                "first_negative": found,
                "curve": curves.loc[curves["base"] == base, ["distance", *_NAMES]].to_dict(
                    "records"
                ),
            }
            for base, found in negative.items()
        ],
        "contexts": [
            {"context": context, "least_base": bound} for context, bound in bounds.items()
        ],
        "files": list(outputs),
    }


def _show(
    head_dim: int, negative: dict[float, int | None], bounds: dict[int, float | None], longest: int
) -> None:
    names = [f"{base:,.12g}" for base in negative]
    show_title([f"rotary positions  head width {head_dim}"])
    found = [f"> {SEARCHED:,}" if one is None else f"{one:,}" for one in negative.values()]
    show(table([Column(["base"], names), Column(["first negative distance"], found)]))
    needed = ["-" if bound is None else f"{bound:,.0f}" for bound in bounds.values()]
    if bounds:
        lengths = [f"{context:,}" for context in bounds]
        show(table([Column(["context, tokens"], lengths), Column(["least base"], needed)]))
    distances = [0, *(_SHOWN**power for power in range(20) if _SHOWN**power <= longest)]
    columns = [
        Column(
            [f"base {name}"],
            [f"{value:.3f}" for value in similarity(base, head_dim, np.array(distances))],
        )
        for name, base in zip(names, negative, strict=True)
    ]
    show_blocks([Column(["distance"], [f"{one:,}" for one in distances])], columns)
