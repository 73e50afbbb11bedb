"""Charts as files for papers: one file for each panel, with its title and legend."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from eyechart.harness.report.charts.looks import LIGHT, Look, Spec, config, inked
from eyechart.harness.report.charts.panels import Figure, Panel, Rows
from eyechart.harness.report.page.section import UNITS
from eyechart.harness.settings.figure import FONT

_LONGEST = 200
"""Bytes of a name; file systems take 255, with a number and an ending."""
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SCALE = 3.0
"""Pixels of a PNG per unit of its drawing."""


def write_charts(
    sections: Sequence[tuple[str, Sequence[Figure]]], folder: Path, formats: Sequence[str]
) -> list[Path]:
    """Writes every panel as `<folder>/<task>/<model>/<chart>.<format>`, without a folder of a model
    if it shows several; returns the paths.
    """
    written = []
    names = Names()
    for name, figures in sections if formats else ():
        for figure in figures:
            for panel in figure.panels:
                spec = complete_spec(name, figure, panel)
                stem = "-".join(filter(None, (figure.kind, panel.title)))
                path = folder
                for part in filter(None, (name, panel.model, stem)):
                    path = names.path(path, part)
                path.parent.mkdir(parents=True, exist_ok=True)
                written += [_write(spec, path, kind) for kind in formats]
    return written


@dataclass(frozen=True)
class Names:
    """The paths of files, a different path for each name in a folder."""

    paths: dict[tuple[Path, str], Path] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Paths in use, in lower case, because some file systems ignore case."""

    def path(self, folder: Path, name: str) -> Path:
        """The path for `name` in `folder`; names that would get the same path get a number."""
        earlier = self.paths.get((folder, name))
        if earlier is not None:
            return earlier
        plain = _safe(name)
        candidates = (f"{plain}-{place}" if place > 1 else plain for place in count(1))
        free = next(
            path
            for candidate in candidates
            if str(path := folder / candidate).casefold() not in self.taken
        )
        self.taken.add(str(free).casefold())
        self.paths[folder, name] = free
        return free


def _safe(name: str) -> str:
    plain = re.sub(r"[^\w.=+@-]+", "-", name).strip("-.") or "-"
    return plain.encode()[:_LONGEST].decode(errors="ignore")


def _write(spec: Spec, path: Path, kind: str) -> Path:
    target = path.with_name(f"{path.name}.{kind}")
    target.write_bytes(drawn(spec, kind, scale=_SCALE))
    return target


def drawn(spec: Spec, kind: str, *, scale: float = 1, dots: float = 72) -> bytes:
    """The chart as a file of this kind: `pdf`, `png` or `svg`. Of 72 units of the drawing a PNG has
    `scale` times `dots` pixels.
    """
    import vl_convert  # noqa: PLC0415  an extra

    compiled = vl_convert.vegalite_to_vega(in_xml(spec))
    _outline_legends(compiled)
    if kind == "svg":
        return vl_convert.vega_to_svg(compiled).encode()
    if kind == "pdf":
        return vl_convert.vega_to_pdf(compiled)
    return vl_convert.vega_to_png(compiled, scale=scale, ppi=dots)


def in_xml(part: Any) -> Any:
    """A part of a spec, with characters that XML cannot have as escapes, such as a name of a model
    may have: the converter, which draws from XML, aborts the process at one.
    """
    if isinstance(part, str):
        return _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), part)
    if isinstance(part, Mapping):
        return {in_xml(name): in_xml(value) for name, value in part.items()}
    return list(map(in_xml, part)) if isinstance(part, list | tuple) else part


def _outline_legends(compiled: object) -> None:
    """Gives marks in legends solid outlines; Vega-Lite dashes them like the lines."""
    if isinstance(compiled, dict):
        for legend in compiled.get("legends", ()):
            if "fill" in legend:
                legend.pop("strokeDash", None)
        for value in compiled.values():
            _outline_legends(value)
    elif isinstance(compiled, list):
        for value in compiled:
            _outline_legends(value)


def complete_spec(section: str, figure: Figure, panel: Panel) -> Spec:
    """The spec of a panel with its rows, title, legends and colours."""
    spec = copy.deepcopy(figure.spec)
    spec["datasets"] = {name: in_task_unit(rows) for name, rows in panel.data.items()}
    spec["title"] = {
        "text": f"{section}: {figure.title[0].lower()}{figure.title[1:]}",
        "subtitle": _subtitle(figure, panel),
        "anchor": "start",
        "offset": 12,
    }
    spec["config"] = {**config(FONT), "background": "white"}
    spec["padding"] = {"left": 12, "top": 12, "bottom": 12, "right": 24}
    show_legends(spec, figure.look, panel.data)
    return inked(spec, LIGHT)


def _subtitle(figure: Figure, panel: Panel) -> str | list[str]:
    """Model and title, and on a second line the source of the grey marks."""
    shown = ", ".join(filter(None, (panel.model, panel.title)))
    return [*filter(None, [shown]), f"grey: {figure.source}"] if figure.source else shown


def in_task_unit(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with lengths in the task's unit alone."""
    return [
        {
            name.removesuffix(f"@{UNITS[0]}"): value
            for name, value in row.items()
            if "@" not in name or name.endswith(f"@{UNITS[0]}")
        }
        for row in rows
    ]


def show_legends(spec: object, look: Look | None, data: Mapping[str, Rows]) -> None:
    """Adds legends to the scales that distinguish the series, of the series that `data` has; the
    page draws legends of its own.
    """
    legends: dict[str, Spec] = {"outcome": {"title": "outcome"}, "reading": {"title": "right"}}
    if look is not None and len(look.colours) > 1:
        legends["colour"] = {"title": look.colour_title.replace("_", " ")}
        if look.dashes:
            legends["dash"] = {"title": look.dash_title.replace("_", " ")}
        for field, values in (("colour", look.colours), ("dash", look.dashes)):
            shown = drawn_values(values, field, data)
            if field in legends and shown != values:
                legends[field]["values"] = list(shown)
    _add_legends(spec, legends)


def drawn_values(values: tuple[str, ...], field: str, data: Mapping[str, Rows]) -> tuple[str, ...]:
    """Those of `values` that a row of a chart has in `field`, in their order; all where no row has
    any. Curves behind the others are grey, and so have none.
    """
    rows = (row for name, found in data.items() if name != "others" for row in found)
    drawn_here = {row[field] for row in rows if field in row}
    return tuple(value for value in values if value in drawn_here) or values


def _add_legends(spec: object, legends: Mapping[str, Spec]) -> None:
    """Adds a legend to each scale of a field of `legends`."""
    if isinstance(spec, dict):
        for channel in ("color", "shape", "strokeDash"):
            encoded = spec.get("encoding", {}).get(channel)
            if isinstance(encoded, dict) and encoded.get("field") in legends:
                encoded["legend"] = {**legends[encoded["field"]], "symbolOpacity": 1}
        for value in spec.values():
            _add_legends(value, legends)
    elif isinstance(spec, list):
        for value in spec:
            _add_legends(value, legends)
