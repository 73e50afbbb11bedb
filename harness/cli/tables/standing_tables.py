"""The models of each task by effective length, as tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.cli.findings import tell_findings
from eyechart.harness.cli.tables.layout import Column, show_blocks, show_title
from eyechart.harness.cli.terminal import echo, tell
from eyechart.harness.report.page.section import Section
from eyechart.harness.report.ranking.rank_table import KEYS, rank_tables


def print_standings(
    of_tasks: Sequence[Section], at: Sequence[int] = (), *, all_findings: bool = False
) -> None:
    """Prints the models of each task, sorted by effective length, with the ranks that each can have
    by the tests and its accuracy at each length in `at`. Tasks with a single model share one table.
    """
    for found in rank_tables(of_tasks, at):
        section = found.sections[0]
        titles = [section.name, section.of_standing]
        show_title(["tasks with one model"] if found.is_of_tasks else [*filter(None, titles)])
        columns = [
            Column([one.head], one.cells, "left" if one.name in KEYS[1:] else "right")
            for one in found.columns
        ]
        show_blocks(columns[: found.keys], columns[found.keys :])
        for note in found.notes:
            tell(note)
        tell_findings(found.findings, is_all=all_findings)
        echo("")
