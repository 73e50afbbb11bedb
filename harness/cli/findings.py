"""Findings below the tables of the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.analysis.findings.finding import Finding, below_a_table
from eyechart.harness.cli.terminal import tell

ALL = "--all-findings"


def tell_findings(found: Sequence[Finding], *, is_all: bool, rest: str = ALL) -> None:
    """Prints all findings if `is_all`, else those of `below_a_table`, and then how many are left
    out; `rest` is the command or the option that prints all.
    """
    lines, more = ([*map(str, found)], "") if is_all else below_a_table(found)
    for line in lines:
        tell(line)
    if more:
        tell(f"{more}: {rest}")
