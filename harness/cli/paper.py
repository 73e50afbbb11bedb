"""Figures and tables for papers: the work of the verb `figure`, and of `score --format`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from eyechart.harness.analysis.results import change_lines, write_results
from eyechart.harness.cli.options import listed
from eyechart.harness.cli.readable import readable_runs
from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.cli.verbs import check_drawing
from eyechart.harness.errors import COMPLETE, INCOMPLETE, UsageError
from eyechart.harness.face.panels import sorted_out
from eyechart.harness.report.paper.tables import PaperTable, paper_tables
from eyechart.harness.report.section import sections
from eyechart.harness.settings.figure import DRAWN, TABLE_FORMS, FigureStyle
from eyechart.harness.settings.judging import JudgeSettings


def figure(
    kind: str,
    folders: Sequence[Path],
    output: Path | None,
    formats: Sequence[str],
    *,
    style: FigureStyle,
    judging: JudgeSettings,
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
    echo(*map(str, write_figures(found, stem, kinds)))
    for drawing in found:
        say(*(f"{drawing.title}: {note}" for note in drawing.notes))
    return INCOMPLETE if unread else COMPLETE


def tables(folders: Sequence[Path], form: str, judging: JudgeSettings) -> int:
    """Judges runs again and rewrites their tables, as `bench score` does, and prints them in LaTeX
    or Markdown.
    """
    unread: list[str] = []
    runs = [*readable_runs(dict.fromkeys(folders), judging, unread)]
    for run in runs:
        say(*change_lines(run))
        write_results(run)
    print_tables(map(paper_tables, sections(runs, judging.threshold)), form)
    return INCOMPLETE if unread or any(run.missing for run in runs) else COMPLETE


def check_form(form: str, others: Mapping[str, object]) -> None:
    """Raises `UsageError` if tables have no such form, or for another option that is given, of
    which there can be only one.
    """
    if wrong := next((option for option, value in others.items() if value), None):
        raise UsageError(f"--format does not go together with {wrong}; leave out one of them")
    if form not in TABLE_FORMS:
        raise UsageError(f"--format is one of {', '.join(TABLE_FORMS)}, not {form!r}")


def print_tables(groups: Iterable[Iterable[PaperTable]], form: str) -> None:
    """Prints tables with an empty line between."""
    texts = [table.text(form) for tables in groups for table in tables]
    echo(*"\n\n".join(texts).split("\n"))


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
