"""The waves of an adaptive run: each is chosen by the answers that the run's folder has by then.

A wave that was begun is asked to its end before the next one is chosen, also by a later command, so
a run that was killed asks the samples that it would have asked anyway.
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
    """What a chooser decides."""

    counts: Mapping[CellKey, int]
    """Cell -> its samples, in the plan with the next wave; as before where nothing more is to be
    asked."""
    known: str = ""
    """What is known before the wave, for a display."""


class Chooser(Protocol):
    """Chooses the next wave of a run."""

    def __call__(self, request: RunRequest, most: int | None) -> Wave:
        """A function of the run's folder and of `request` as the command made it; the wave has
        `most` new samples at most.
        """
        ...


def first_plan(request: RunRequest, choose: Chooser, budget: Budget) -> Plan:
    """The wave that an earlier command began, else a new one."""
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
    """The `present` plan with the next wave; `None` where nothing more is to be asked, or may be
    for what is left of the budget. `progress` is told what is known.
    """
    if budget.exhausted or not budget.has_requests:
        return None
    wave = choose(request, budget.requests)
    if progress is not None:
        progress.known = wave.known
    plan = request.plan.with_counts(wave.counts)
    return None if plan.sizes == present.sizes else plan
