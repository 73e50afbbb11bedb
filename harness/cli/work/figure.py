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
from eyechart.harness.face.panels import added_kinds, sorted_out
from eyechart.harness.report.page.section import sections
from eyechart.harness.settings.figure import CHARTS, DRAWN, TABLE, TABLES, FigureStyle
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
    """Draws the figures of a kind, or writes its table, prints the paths of the files, and what
    captions of figures must say.
    """
    if kind == TABLE:
        return _table(folders, output, formats, style=style, judging=judging, as_json=as_json)
    from eyechart.harness.report.paper.figures import check_kind, paper_figures
    from eyechart.harness.report.paper.files import write_figures

    added = {} if kind in CHARTS else added_kinds()
    check_kind(kind, added)
    stem, kinds = _files(output or Path(kind), formats, [*DRAWN])
    named, beside = sorted_out(folders, warn)
    unread: list[str] = []
    runs = [*readable_runs(named, judging, unread)]
    draw_more = [source.read(mine, runs, warn) for source, mine in beside]
    found = paper_figures(kind, sections(runs), style, draw_more, added)
    for one in kinds:  # behind all that is read: an extra must not be installed for wrong input
        check_drawing("--format", one)
    print_files(write_figures(found, stem, kinds), as_json=as_json)
    for drawing in found:
        say(*(f"{drawing.title}: {note}" for note in drawing.notes))
    return INCOMPLETE if unread else COMPLETE


def _table(
    folders: Sequence[Path],
    output: Path | None,
    formats: Sequence[str],
    *,
    style: FigureStyle,
    judging: JudgeSettings,
    as_json: bool,
) -> int:
    """Writes the tables of the tasks of runs in one file."""
    from eyechart.harness.report.paper.files import write_files
    from eyechart.harness.report.paper.tables import BEGINNINGS, paper_table

    if style != FigureStyle(style.width):
        raise UsageError(
            "a table has the height and the font of its paper; leave out --height, --font and "
            "--font-size"
        )
    stem, kinds = _files(output or Path(TABLE), formats, [*TABLES])
    named, _ = sorted_out(folders, warn)
    unread: list[str] = []
    runs = [*readable_runs(named, judging, unread)]
    found = [paper_table(one, style.width) for one in sections(runs)]
    content = {
        kind: ("\n\n".join(table.text(TABLES[kind]) for table in found) + "\n").encode()
        for kind in kinds
    }
    print_files(write_files(content, stem, BEGINNINGS), as_json=as_json)
    return INCOMPLETE if unread else COMPLETE


def _files(output: Path, formats: Sequence[str], known: Sequence[str]) -> tuple[Path, list[str]]:
    """The path of the files without their endings, and the endings: those of `--format`, else that
    of the path, else the first of `known`; raises `UsageError` for one that is not among `known`.
    """
    ending = output.suffix.removeprefix(".").lower()
    kinds = listed(formats)
    for kind in kinds:
        if kind not in known:
            raise UsageError(f"--format is one of {', '.join(known)}, not {kind!r}")
    if ending in known:
        return output.with_suffix(""), kinds or [ending]
    if ending and not kinds:
        *others, last = (f".{one}" for one in known)
        raise UsageError(
            f"-o {str(output)!r} must end in {', '.join(others)} or {last}; or name the formats "
            "with --format"
        )
    return output, kinds or [known[0]]
