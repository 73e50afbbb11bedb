"""Tables of comparisons and leaderboards for papers, in Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eyechart.harness.cli.terminal import echo
from eyechart.harness.errors import UsageError
from eyechart.harness.report.paper.tables import PaperTable
from eyechart.harness.settings.figure import TABLE_FORMS


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
    for place, table in enumerate(table for tables in groups for table in tables):
        echo(*[""] * (place > 0), *table.text(form).split("\n"))
