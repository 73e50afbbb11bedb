"""What a command that made several runs ends with: a row for each, and what differs from a plain
result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eyechart.harness.analysis.comparison.family import is_default
from eyechart.harness.analysis.findings.finding import Finding, below_a_table, of_several
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.right_to import RIGHT_TO
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.analysis.tables.paper_text import length_cell, length_head, noted
from eyechart.harness.cli.tables.layout import Column, show_blocks
from eyechart.harness.cli.terminal import echo, tell
from eyechart.harness.cli.work.next_command import score_command
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Condition, varied_label

_KEYS = ("task", "model", "condition")
_SIDES: Sequence[Literal["left", "right"]] = ("left", "right")


@dataclass(frozen=True, slots=True)
class Headline:
    """The effective length of a run under its default condition; without one under the first
    condition that is no control.
    """

    folder: Path
    cells: dict[str, str]
    """Column -> text; a long name has two lines, so that a narrow terminal has one table."""
    note: str
    """The note on the length; mostly empty."""
    findings: Sequence[Finding]
    """Those that `_is_told` says."""


def headline(run: JudgedRun, conditions: Collection[Condition]) -> Headline:
    """The headline of a run, of which a command asked these conditions."""
    shown = run.shown(conditions)
    judged = min(shown, key=lambda one: (not is_default(one), one.control), default=None)
    estimate = judged and judged.effective_length()
    label = varied_label(judged.condition, [one.condition for one in shown]) if judged else ""
    cells = {
        "task": run.manifest.task,
        "model": run.manifest.model,
        "condition": label,
        length_head(run.settings.threshold).replace(" (", "\n("): length_cell(estimate or None),
        "cost": "" if run.cost is None else str(run.cost),
    }
    found = findings(run, conditions)
    note = estimate.note if estimate else ""
    return Headline(run.folder, cells, note, [one.shortened() for one in found if _is_told(one)])


def _is_told(one: Finding) -> bool:
    """Whether a finding is more than what the row says: a number may be wrong or is missing, or
    the model is shown to be right further under another condition than the default.
    """
    if one.kind != RIGHT_TO.name:
        return one.level == "warning"
    return bool(one.facts["further_than"]) and one.facts["longest"] != one.facts["default"]


def print_headlines(headlines: Sequence[Headline], judging: JudgeSettings) -> None:
    """Prints one table of several runs, without columns that would be empty, and what is told of
    each; of one run its own table is the last.
    """
    if len(headlines) <= 1:
        return
    rows = [one.cells for one in headlines]
    keys, values = (
        [
            Column(name.split("\n"), [row[name] for row in rows], side)
            for name in rows[0]
            if (name in _KEYS) == (side == "left") and any(row[name] for row in rows)
        ]
        for side in _SIDES
    )
    show_blocks(keys, values)
    for note in noted(
        (f"{row.cells['model']}, {row.cells['task']}", row.note) for row in headlines
    ):
        tell(note)
    found = [(f"{row.cells['task']} {row.cells['model']}", row.findings) for row in headlines]
    lines, more = below_a_table(of_several(found))
    for line in filter(None, (*lines, more)):
        tell(line)
    command = score_command([one.folder for one in headlines], judging)
    tell(f"Accuracies and all findings: {command}")
    echo("")
