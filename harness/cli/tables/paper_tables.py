"""Tables of runs, comparisons and leaderboards for papers, in Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from eyechart.harness.analysis.tables.results import change_lines, write_results
from eyechart.harness.cli.readable import readable_runs
from eyechart.harness.cli.terminal import echo, say
from eyechart.harness.errors import COMPLETE, INCOMPLETE, UsageError
from eyechart.harness.report.page.section import sections
from eyechart.harness.report.paper.tables import PaperTable, paper_tables
from eyechart.harness.settings.figure import TABLE_FORMS
from eyechart.harness.settings.judging import JudgeSettings


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
