"""The work of `bench figure`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyechart.harness.cli.documents import print_files
from eyechart.harness.cli.outputs import check_drawing
from eyechart.harness.cli.parsing.options import listed
from eyechart.harness.cli.readable import readable_runs
from eyechart.harness.cli.terminal import say, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, UsageError
from eyechart.harness.face.panels import sorted_out
from eyechart.harness.report.page.section import sections
from eyechart.harness.settings.figure import DRAWN, FigureStyle
from eyechart.harness.settings.judging import JudgeSettings


def figure(
    kind: str,
    folders: Sequence[Path],
    output: Path | None,
    formats: Sequence[str],
    *,
    style: FigureStyle,
    judging: JudgeSettings,
    as_json: bool,
) -> int:
    """Draws the figures of a kind, prints their paths, and what their captions must say."""
    from eyechart.harness.report.paper.figures import check_kind, paper_figures
    from eyechart.harness.report.paper.files import write_figures

    check_kind(kind)
    stem, kinds = _files(output or Path(kind), formats)
    named, beside = sorted_out(folders, warn)
    unread: list[str] = []
    runs = [*readable_runs(named, judging, unread)]
    draw_more = [source.read(mine, runs, warn) for source, mine in beside]
    found = paper_figures(kind, sections(runs, judging.threshold), style, draw_more)
    for one in kinds:  # behind all that is read: an extra must not be installed for wrong input
        check_drawing("--format", one)
    print_files(write_figures(found, stem, kinds), as_json=as_json)
    for drawing in found:
        say(*(f"{drawing.title}: {note}" for note in drawing.notes))
    return INCOMPLETE if unread else COMPLETE


def _files(output: Path, formats: Sequence[str]) -> tuple[Path, list[str]]:
    """The path of the files without their endings, and the endings: those of `--format`, else that
    of the path, else `pdf`; raises `UsageError` if there is no such format.
    """
    ending = output.suffix.removeprefix(".").lower()
    kinds = listed(formats)
    for kind in kinds:
        if kind not in DRAWN:
            raise UsageError(f"--format is one of {', '.join(DRAWN)}, not {kind!r}")
    if ending in DRAWN:
        return output.with_suffix(""), kinds or [ending]
    if ending and not kinds:
        raise UsageError(
            f"-o {str(output)!r} must end in .pdf, .png or .svg; or name the formats with --format"
        )
    return output, kinds or ["pdf"]
