"""Figures for papers as files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.files import is_another, replace_file
from eyechart.harness.report.charts.files import drawn, in_xml
from eyechart.harness.report.paper.figures import PaperFigure
from eyechart.harness.settings.figure import DRAWN, INCH

DOTS = 300
"""Pixels of a PNG in an inch."""
MOST = 24
"""Most figures that are drawn below each other in one file."""
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
_ID = re.compile(r'(?<=\bid=")|(?<=url\(#)|(?<=href="#)')
_HEAD = 1.6
"""Height of the line above each of several figures, in font sizes."""


def write_figures(figures: Sequence[PaperFigure], out: Path, formats: Sequence[str]) -> list[Path]:
    """Writes `out` with the ending of each format, and returns the paths. Several figures stand
    below each other, each with its name above it.

    Raises:
        JournalError: a file cannot be written.
        UsageError: `out` is a folder, or there are more figures than a file has room for.
    """
    if len(figures) > MOST:
        raise UsageError(
            f"these are {len(figures)} figures, and a file has room for {MOST}; name fewer runs"
        )
    several_tasks = len({figure.task for figure in figures}) > 1
    names = [figure.title if several_tasks else figure.name for figure in figures]
    content = {kind: _file(figures, names, kind) for kind in formats}
    return write_files(content, out, DRAWN)


def write_files(
    content: Mapping[str, bytes], out: Path, beginnings: Mapping[str, bytes]
) -> list[Path]:
    """Writes `out` with each ending, and returns the paths. A file there that does not begin as
    such a file does is kept.

    Raises:
        JournalError: a file cannot be written.
        UsageError: `out` is a folder, or a file of another kind.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot write {out}: {error.strerror}") from error
    paths = {kind: out.with_name(f"{out.name}.{kind}") for kind in content}
    for kind, path in paths.items():
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name another file")
        if is_another(path, beginnings[kind]):
            raise UsageError(f"{path} is no {kind} file, and would be lost; name another file")
        replace_file(path, content[kind])
    return list(paths.values())


def _file(figures: Sequence[PaperFigure], names: Sequence[str], kind: str) -> bytes:
    """The file of the figures."""
    if len(figures) == 1:
        content = drawn(figures[0].spec, kind, dots=DOTS)
        return _in_inches(content.decode()).encode() if kind == "svg" else content
    import vl_convert  # noqa: PLC0415  an extra

    svg = _below_each_other(figures, names)
    if kind == "svg":
        return _in_inches(svg).encode()
    if kind == "pdf":
        return vl_convert.svg_to_pdf(svg)
    return vl_convert.svg_to_png(svg, ppi=DOTS)


def _below_each_other(figures: Sequence[PaperFigure], names: Sequence[str]) -> str:
    """One drawing of several, as wide as the widest."""
    parts, wide, high = [], 0.0, 0.0
    for place, (figure, name) in enumerate(zip(figures, names, strict=True)):
        config = figure.spec["config"]
        size, font = config["text"]["fontSize"], escape(config["font"])
        svg = _ID.sub(f"of{place}-", drawn(figure.spec, "svg").decode())
        found = _SIZE.search(svg)
        assert found is not None
        look = f'font-family="{font}" font-size="{size:g}" font-weight="bold"'
        head = f'<text x="2" y="{high + size * (_HEAD - 0.4):g}" {look}>'
        high += _HEAD * size
        parts += [f"{head}{escape(in_xml(name))}</text>"]
        parts += [svg.replace("<svg ", f'<svg y="{high:g}" ', 1)]
        wide, high = max(wide, float(found[1])), high + float(found[2])
    box = f'width="{wide:g}" height="{high:g}" viewBox="0 0 {wide:g} {high:g}"'
    back = f'<rect width="{wide:g}" height="{high:g}" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{back}{"".join(parts)}</svg>'


def _in_inches(svg: str) -> str:
    """The SVG with its size in inches, so that it has the same in every program."""
    return re.sub(
        r'(<svg [^>]*?)width="([\d.]+)" height="([\d.]+)"',
        lambda found: (
            f'{found[1]}width="{float(found[2]) / INCH:.4g}in" '
            f'height="{float(found[3]) / INCH:.4g}in"'
        ),
        svg,
        count=1,
    )
