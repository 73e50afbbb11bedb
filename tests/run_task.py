"""Asks one run as an engine does."""

from __future__ import annotations

from eyechart.harness.journal.record import Warn
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.progress import RunOutcome
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.task_run import TaskRun
from eyechart.providers.base import Provider


async def run_task(
    request: RunRequest,
    provider: Provider,
    *,
    limits: RunLimits,
    warn: Warn,
    budget: Budget | None = None,
) -> RunOutcome:
    """Begins one run and asks its pending samples; raises what `TaskRun` does."""
    with Journal(request.folder, warn, request.journal) as run_journal:
        run = TaskRun(request, run_journal, provider, warn=warn, budget=budget)
        await run.begin()
        await run.ask(provider, limits)
        return run.outcome
