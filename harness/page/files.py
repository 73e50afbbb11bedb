"""Charts as files for papers: one a panel, with title and legend in it."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from pathlib import Path

import vl_convert

from harness.page.looks import LIGHT, Spec, config, inked
from harness.page.panels import Figure, Panel

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_SCALE = 3.0
"""Pixels of a PNG per unit of its drawing."""


def write_charts(
    studies: Sequence[tuple[str, Sequence[Figure]]], folder: Path, formats: Sequence[str]
) -> list[Path]:
    """Every panel as `<folder>/<task>/<model>/<chart>.<format>`; the paths."""
    written = []
    for name, figures in studies if formats else ():
        for figure in figures:
            for panel in figure.panels:
                spec = whole(name, figure, panel)
                parts = [_safe(name), _safe(panel.model)]
                stem = "-".join(filter(None, (figure.kind, _safe(panel.title))))
                path = folder.joinpath(*parts, stem)
                path.parent.mkdir(parents=True, exist_ok=True)
                written += [_write(spec, path, kind) for kind in formats]
    return written


def _safe(name: str) -> str:
    return re.sub(r"[^\w.=+@-]+", "-", name, flags=re.ASCII).strip("-.")


def _write(spec: Spec, path: Path, kind: str) -> Path:
    target = path.with_name(f"{path.name}.{kind}")
    if kind == "svg":
        target.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    else:
        target.write_bytes(vl_convert.vegalite_to_png(spec, scale=_SCALE))
    return target


def whole(study: str, figure: Figure, panel: Panel) -> Spec:
    """A panel's spec with its rows, title, legend and colours."""
    spec = copy.deepcopy(figure.spec)
    spec["datasets"] = {name: _in_symbols(rows) for name, rows in panel.data.items()}
    spec["title"] = {
        "text": f"{study}: {figure.title[0].lower()}{figure.title[1:]}",
        "subtitle": ", ".join(filter(None, (panel.model, panel.title))),
        "anchor": "start",
        "offset": 12,
    }
    spec["config"] = {**config(_FONT), "background": "white"}
    spec["padding"] = 12
    _show_legends(spec, figure)
    return inked(spec, LIGHT)


def _in_symbols(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return [
        {
            name.removesuffix("@symbols"): value
            for name, value in row.items()
            if "@" not in name or name.endswith("@symbols")
        }
        for row in rows
    ]


def _show_legends(spec: object, figure: Figure) -> None:
    """Gives the scales that tell series apart their legends back."""
    titles = {"outcome": "outcome"}
    if figure.look is not None and len(figure.look.colours) > 1:
        titles["colour"] = figure.look.colour_title.replace("_", " ")
        if figure.look.dashes:
            titles["dash"] = figure.look.dash_title.replace("_", " ")
    if isinstance(spec, dict):
        for channel in ("color", "shape", "strokeDash"):
            encoded = spec.get("encoding", {}).get(channel)
            if isinstance(encoded, dict) and encoded.get("field") in titles:
                encoded["legend"] = {"title": titles[encoded["field"]], "symbolOpacity": 1}
        for value in spec.values():
            _show_legends(value, figure)
    elif isinstance(spec, list):
        for value in spec:
            _show_legends(value, figure)
