"""The table at the end of a command that made several runs: a row for each run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from eyechart.harness.analysis.family import is_default
from eyechart.harness.analysis.judged_run import JudgedRun
from eyechart.harness.analysis.paper_text import length_cell, length_head, noted
from eyechart.harness.cli.layout import Column, show_blocks, show_title
from eyechart.harness.cli.terminal import echo, tell
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Condition, varied_label


@dataclass(frozen=True, slots=True)
class Headline:
    """The effective length of a run under its default condition; without one under the first
    condition that is no control.
    """

    task: str
    model: str
    condition: str
    """Its values on the axes that vary in the run; `-` if none does."""
    seen: str
    """See `length_cell`."""
    note: str
    """The note on it; mostly empty."""


def headline(run: JudgedRun, conditions: Collection[Condition]) -> Headline:
    """The headline of a run, of which a command asked these conditions."""
    shown = run.shown(conditions)
    judged = min(shown, key=lambda one: (not is_default(one), one.control), default=None)
    estimate = judged and judged.effective_length(THRESHOLD)
    label = varied_label(judged.condition, [one.condition for one in shown]) if judged else ""
    return Headline(
        run.manifest.task,
        run.manifest.model,
        label or "-",
        length_cell(estimate or None),
        estimate.note if estimate else "",
    )


def print_headlines(headlines: Sequence[Headline]) -> None:
    """Prints the headlines of several runs; of one run its own table is the last."""
    if len(headlines) == 1:
        return
    columns = [
        Column([name], [getattr(one, name) for one in headlines], "left")
        for name in ("task", "model", "condition")
    ]
    seen = Column([length_head(THRESHOLD)], [one.seen for one in headlines], "left")
    show_title([f"{len(headlines)} runs, with 95 % intervals"])
    show_blocks(columns, [seen])
    for note in noted((f"{one.model}, {one.task}", one.note) for one in headlines):
        tell(note)
    echo("")
