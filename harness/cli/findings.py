"""Findings below the tables of the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.analysis.findings.finding import Finding, below_a_table
from eyechart.harness.cli.terminal import tell

ALL = "--all-findings"


def tell_findings(found: Sequence[Finding], *, is_all: bool, rest: str = ALL) -> None:
    """Prints findings, those of `below_a_table` unless `is_all`, and how many `rest` would print in
    full besides.
    """
    lines, hidden = ([*map(str, found)], 0) if is_all else below_a_table(found)
    for line in lines:
        tell(line)
    if hidden:
        tell(f"{hidden} more finding{'s' * (hidden > 1)}: {rest}")
