"""`bench run --tier batch`: puts pending samples into batches, waits, and imports the replies.

A batch cannot be stopped midway, so under a budget only as much is submitted as the budget pays for
in the worst case; the rest of the budget goes into the next wave. An adaptive run goes through a
few batches, each chosen by the answers to the earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.batch.batch_run import BatchRun
from eyechart.harness.run.batch.context import FIRST_POLL_S, LONGEST_POLL_S, BatchContext, Clocks
from eyechart.harness.run.batch.files import FileLimits
from eyechart.harness.run.batch.pending import BatchJob
from eyechart.harness.run.chooser import next_plan
from eyechart.harness.run.engine import EngineContext
from eyechart.harness.run.first_replies import FirstStops
from eyechart.harness.run.progress import RunOutcome
from eyechart.harness.run.run_request import RunRequest
from eyechart.providers.base import BadReplyError, SampleError, SetupError, UnknownModelError
from eyechart.providers.batches import BatchForm, BatchService, BatchState

_SLOWER = 1.5
STAGES = 3
"""Most waves of an adaptive run in one command, since each may take a day."""
_ENDED = ("completed", "failed", "expired", "cancelled")


class BatchEngine:
    """Runs the runs of a command through a Batch API."""

    def __init__(
        self,
        asking: EngineContext,
        service: BatchService,
        form: BatchForm,
        limits: FileLimits = FileLimits(),  # noqa: B008  frozen
        clocks: Clocks = Clocks(),  # noqa: B008  frozen
    ) -> None:
        """The service is closed when `run` ends. `limits` are those of one file of requests."""
        self._asking = asking
        self._context = BatchContext(
            service, form, asking.budget, asking.say, asking.warn, limits, clocks
        )
        self._runs: dict[Path, BatchRun] = {}

    @property
    def outcomes(self) -> Sequence[RunOutcome]:
        return [run.outcome for run in self._runs.values()]

    async def run(self) -> None:
        """Submits what is pending, waits, and imports. After a failed batch nothing more is
        submitted, but the other batches are waited for.

        Raises:
            ProviderError: the service refuses or does not answer, or another model answers than
                before.
            JournalError: a run's folder cannot be used.
            TaskError: a sample cannot be made.
        """
        asking, context, runs = self._asking, self._context, self._runs
        stopped = FirstStops()
        runs.clear()
        with ExitStack() as stack:
            try:
                if asking.old_runs.any:
                    await _has_answered(context)
                    asking.old_runs.move_away()
                journals = {
                    request.folder: stack.enter_context(Journal(request.folder, context.warn))
                    for request in asking.requests
                }
                wanted = list(map(asking.first_request, asking.requests))
                for _ in range(STAGES):
                    for request in wanted:
                        folder = request.folder
                        runs[folder] = BatchRun(
                            request, journals[folder], context, asking.check_first
                        )
                    await _ask([runs[request.folder] for request in wanted], context, stopped)
                    wanted = self._next_requests(
                        [request for request in wanted if request.name not in stopped.names]
                    )
                    if not wanted:
                        break
                stopped.end()
            except SetupError:  # no run could be asked, so none has anything to show
                runs.clear()
                raise
            finally:
                for run in runs.values():
                    run.save()
                await context.service.aclose()

    def _next_requests(self, asked: Sequence[RunRequest]) -> list[RunRequest]:
        """The runs that still have samples to ask after these answers."""
        choose, folders = self._asking.choose, {request.folder for request in asked}
        requests: list[RunRequest] = []
        if choose is None:
            return requests
        for request in self._asking.requests:
            run = self._runs[request.folder]
            if request.folder not in folders or not run.may_grow:
                continue
            plan = next_plan(request, run.plan, choose, self._context.budget)
            if plan is not None:
                run.save()
                requests.append(replace(request, plan=plan))
        return requests


async def _ask(runs: Sequence[BatchRun], context: BatchContext, stopped: FirstStops) -> None:
    """Submits what is pending of `runs`, waits, and imports: first a small batch of each run whose
    first replies decide about the rest.
    """
    if all(run.is_complete for run in runs):
        return
    server = dict(await context.service.facts())
    begun = []
    for run in runs:
        with stopped.of(run.name):
            await run.begin(server)
            begun.append(run)
    for run in begun:
        await run.recover()
    await _run_waves(begun, context)
    go_on = []
    for run in begun:
        with stopped.of(run.name):
            if run.decide():
                await run.begin(server)
                go_on.append(run)
    if go_on:
        await _run_waves(go_on, context)


async def _has_answered(context: BatchContext) -> None:
    """Waits for any answer of the service; raises a `StopRunError` if it refuses the key."""

    async def look() -> None:
        with suppress(UnknownModelError, SampleError, BadReplyError):  # a service without a list
            await context.service.find("", context.clocks.now())

    await context.ask(look)


async def _run_waves(runs: Sequence[BatchRun], context: BatchContext) -> None:
    given_up: list[BatchJob] = []
    shown: dict[str, str] = {}
    refused = False
    while True:
        for run in [] if refused else runs:
            while batch := run.fill(_left(runs, context.budget)):
                await run.submit(batch)
            if run.next_line is not None:
                break  # the runs after this one wait until its requests are submitted
        live = [(run, batch) for run in runs for batch in run.batches.jobs if batch not in given_up]
        if not live:
            context.budget.full = not refused and any(run.next_line is not None for run in runs)
            return
        for run, batch, state in await _until_one_ends(live, context, shown):
            if not await run.collect(batch, state):
                given_up.append(batch)
            refused |= state.status == "failed"


def _left(runs: Sequence[BatchRun], budget: Budget) -> float | None:
    """Dollars of the budget that are neither spent nor reserved for batches under way."""
    if budget.limit is None:
        return None
    promised = sum(batch.most for run in runs for batch in run.batches.jobs)
    return budget.limit - budget.spent - promised


async def _until_one_ends(
    live: Sequence[tuple[BatchRun, BatchJob]], context: BatchContext, shown: dict[str, str]
) -> list[tuple[BatchRun, BatchJob, BatchState]]:
    """Asks for the states of batches, at growing intervals, until some have ended. Prints each
    changed state; `shown` has the last line of each batch.
    """
    wait_s = FIRST_POLL_S
    while True:
        ended = []
        for run, batch in live:
            state = await run.look(batch)
            failed = f", {state.failed:,} failed" if state.failed else ""
            done = f"{state.completed:,} of {state.total or batch.requests:,} answered{failed}"
            line = f"{run.name}: batch {state.id} is {state.status.replace('_', ' ')}, {done}"
            if shown.get(batch.token) != line:
                shown[batch.token] = line
                context.say(line)
            if state.status in _ENDED:
                ended.append((run, batch, state))
        if ended:
            return ended
        await context.clocks.sleep(wait_s)
        wait_s = min(_SLOWER * wait_s, LONGEST_POLL_S)
