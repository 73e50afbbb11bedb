"""The verdicts that came with recorded replies beside our own: how many agree, and which differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from eyechart.harness.analysis.samples.judged_run import JudgedRun, each_counted
from eyechart.harness.analysis.samples.shortening import shortened
from eyechart.harness.analysis.samples.verdicts import reason
from eyechart.harness.cli.tables.layout import Column, table
from eyechart.harness.cli.terminal import show, tell
from eyechart.harness.score.outcomes import Outcome

_SHOWN = 10
"""Most differing replies that are printed."""
_LONGEST = 200
"""Characters of a printed reply."""
THEIRS = ("correct", "incorrect")
"""The verdicts that a row may have."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A reply that we judge otherwise than its row does."""

    id: str
    theirs: str
    ours: str
    why: str
    reply: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """The verdicts of the rows against ours."""

    counts: Counter[tuple[str, str]]
    """(verdict of the row, our outcome) -> number of replies."""
    differing: tuple[Differing, ...]

    @property
    def compared(self) -> int:
        """The replies whose row has a verdict."""
        return sum(self.counts.values())


def agreement(run: JudgedRun) -> Agreement:
    """Compares the verdicts of the rows with ours. Every outcome but `correct` agrees with
    `incorrect`; failed requests are left out.
    """
    counts: Counter[tuple[str, str]] = Counter()
    differing, seen = [], set()
    for _, record in each_counted(run):
        theirs = record.recorded_verdict
        if theirs is None or record.is_error or record.id in seen:
            continue
        seen.add(record.id)
        verdict = run.judge.verdict(record)
        counts[theirs, verdict.outcome.value] += 1
        if (theirs == "correct") != (verdict.outcome is Outcome.CORRECT):
            why = reason(verdict, record.target)
            reply = record.reply or ""
            differing.append(Differing(record.id, theirs, verdict.outcome.value, why, reply))
    return Agreement(counts, tuple(differing))


def print_agreement(found: Agreement) -> None:
    """Prints the table of agreement and the first differing replies; nothing without verdicts."""
    if not found.compared:
        return
    ours = [one.value for one in Outcome if any(found.counts[row, one.value] for row in THEIRS)]
    columns = [
        Column(["by the row"], THEIRS, "left"),
        *(
            Column([name], [f"{found.counts[theirs, name]:,}" for theirs in THEIRS])
            for name in ours
        ),
    ]
    show(table(columns))
    same = found.compared - len(found.differing)
    tell(
        f"{same:,} of {found.compared:,} verdicts agree with those of the rows "
        f"({100 * same / found.compared:.1f} %)."
    )
    for line in _lines(found.differing):
        tell(line)


def _lines(differing: tuple[Differing, ...]) -> Iterator[str]:
    for one in differing[:_SHOWN]:
        yield f"{one.id}: {one.theirs} by its row, {one.ours} here ({one.why})"
        yield f"  {shortened(one.reply, _LONGEST)!r}"
    if len(differing) > _SHOWN:
        yield f"… and {len(differing) - _SHOWN:,} more"
