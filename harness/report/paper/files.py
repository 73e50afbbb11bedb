"""Figures for papers as files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.files import is_another, replace_file
from eyechart.harness.report.charts.files import Names, drawn
from eyechart.harness.report.charts.looks import Spec
from eyechart.harness.report.paper.figures import PaperFigure
from eyechart.harness.settings.figure import DRAWN, INCH

DOTS = 300
"""Pixels of a PNG in an inch."""


def write_figures(figures: Sequence[PaperFigure], out: Path, formats: Sequence[str]) -> list[Path]:
    """Writes `out` with the ending of each format; of several figures each has its name after a
    hyphen. Returns the paths.

    Raises:
        JournalError: a file cannot be written.
        UsageError: `out` is a folder.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot write {out}: {error.strerror}") from error
    several_tasks = len({figure.task for figure in figures}) > 1
    names = Names()
    written = []
    for figure in figures:
        parts = (figure.task if several_tasks else "", figure.name)
        name = "-".join(filter(None, map(_plain, parts if len(figures) > 1 else ())))
        stem = names.path(out.parent, f"{out.name}-{name}" if name else out.name)
        for kind in formats:
            path = stem.with_name(f"{stem.name}.{kind}")
            if path.is_dir():
                raise UsageError(f"{path} is a folder; name another file")
            if is_another(path, DRAWN[kind]):
                raise UsageError(f"{path} is no {kind} file, and would be lost; name another file")
            replace_file(path, _file(figure.spec, kind))
            written.append(path)
    return written


def _plain(name: str) -> str:
    return re.sub(r"[^\w.=@]+", "-", name.lower()).strip("-.")


def _file(spec: Spec, kind: str) -> bytes:
    content = drawn(spec, kind, dots=DOTS)
    return _in_inches(content.decode()).encode() if kind == "svg" else content


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
