"""The waves of an adaptive run. Each is chosen by the answers that the run's folder has at that
time.

A wave that was begun is asked to its end before the next one is chosen, also by a later command. So
a run that was killed asks the same samples as one that was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.progress import Progress
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import CellKey


@dataclass(frozen=True, slots=True)
class Wave:
    """The decision of a chooser."""

    counts: Mapping[CellKey, int]
    """Cell -> its samples, with the next wave; unchanged if nothing more is to be asked."""
    known: str = ""
    """What is known before the wave, as text for a display."""


class Chooser(Protocol):
    """Chooses the next wave of a run."""

    def __call__(self, request: RunRequest, most: int | None) -> Wave:
        """Chooses at most `most` new samples, by the run's folder and the command's `request`."""
        ...


def first_plan(request: RunRequest, choose: Chooser, budget: Budget) -> Plan:
    """The wave that an earlier command began, or else a new one."""
    if (request.folder / MANIFEST).exists():
        manifest = read_manifest(request.folder, to_continue=True)
        begun = request.plan.with_counts(
            {
                cell.key: cell.samples
                for cell in manifest.cells
                if cell.condition in manifest.adaptive
            }
        )
        if begun.size:
            return begun
    return request.plan.with_counts(choose(request, budget.requests).counts)


def next_plan(
    request: RunRequest,
    present: Plan,
    choose: Chooser,
    budget: Budget,
    progress: Progress | None = None,
) -> Plan | None:
    """The `present` plan with the next wave; `None` if nothing more is to be asked, or the budget
    does not allow more. Shows in `progress` what is known.
    """
    if budget.exhausted or not budget.has_requests:
        return None
    wave = choose(request, budget.requests)
    if progress is not None:
        progress.known = wave.known
    plan = request.plan.with_counts(wave.counts)
    return None if plan.sizes == present.sizes else plan
