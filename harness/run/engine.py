"""Asks the runs of a command one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from eyechart.harness.journal.record import Warn
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.chooser import Chooser, first_plan, next_plan
from eyechart.harness.run.fresh import OldRuns
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.outcome import RunOutcome
from eyechart.harness.run.progress import Progress
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.task_run import TaskRun
from eyechart.harness.run.writer import Judge
from eyechart.providers.base import Provider
from eyechart.providers.plugins import fault_of


class Engine(Protocol):
    """Asks the runs of a command, by single requests or in batches."""

    @property
    def outcomes(self) -> Sequence[RunOutcome]:
        """The runs that were begun so far, also after `run` raised an error or was cancelled."""
        ...

    async def run(self) -> None:
        """Asks everything that is pending, once."""
        ...


class Display(Protocol):
    """Shows a run while it goes on."""

    def judge(self, request: RunRequest) -> Judge | None:
        """The function that counts correct answers; `None` if the display does not show them."""
        ...

    def show(self, request: RunRequest, progress: Progress) -> AbstractContextManager[object]:
        """Shows the run until the context ends."""
        ...


class RunEngine:
    """Sends request by request, with one provider for all runs of a command."""

    def __init__(
        self,
        requests: Sequence[RunRequest],
        provider: Provider,
        *,
        limits: RunLimits,
        budget: Budget,
        old_runs: OldRuns,
        display: Display,
        warn: Warn,
        choose: Chooser | None = None,
    ) -> None:
        """The provider is closed when `run` ends; `old_runs` are moved when the server has
        answered. With `choose` the runs are adaptive.
        """
        self._requests = requests
        self._provider = provider
        self._limits = limits
        self._budget = budget
        self._old_runs = old_runs
        self._display = display
        self._warn = warn
        self._choose = choose
        self._runs: list[TaskRun] = []

    @property
    def outcomes(self) -> Sequence[RunOutcome]:
        """The runs that were begun so far."""
        return [run.outcome for run in self._runs]

    async def run(self) -> None:
        """Asks everything that is pending, until the budget is spent; of an adaptive run, wave
        after wave.

        Raises:
            ProviderError: the server refuses or is not there, or another model answers than before.
            JournalError: a run's folder cannot be used.
            TaskError: a sample cannot be made.
        """
        try:
            if self._old_runs.any:
                await self._provider.facts()  # raises where there is no server
                self._old_runs.move_away()
            for request in self._requests:
                if self._budget.exhausted or not self._budget.has_requests:
                    return
                await self._run_one(request)
        except asyncio.CancelledError:
            if (fault := fault_of(self._provider)) is not None:  # a plugin cancelled the run
                raise fault from None
            raise
        finally:
            await self._provider.aclose()

    async def _run_one(self, request: RunRequest) -> None:
        choose, first = self._choose, request
        with Journal(request.folder, self._warn) as run_journal:
            if choose is not None:
                first = replace(request, plan=first_plan(request, choose, self._budget))
            run = TaskRun(
                first,
                run_journal,
                self._provider,
                warn=self._warn,
                budget=self._budget,
                judge=self._display.judge(request),
            )
            await run.begin()
            self._runs.append(run)
            limits = self._limits
            if any(earlier.progress.answered for earlier in self._runs):  # the server is there
                limits = replace(limits, connect_timeout_s=limits.outage_timeout_s)
            with self._display.show(request, run.progress):
                await run.ask(self._provider, limits)
                if choose is not None:
                    await self._ask_on(run, request, choose)

    async def _ask_on(self, run: TaskRun, request: RunRequest, choose: Chooser) -> None:
        """Asks the waves after the first one, until a wave gets no answer.

        A wave whose samples were asked by an earlier plan is known already.
        """
        while plan := next_plan(request, run.plan, choose, self._budget, run.progress):
            before = run.new
            run.grow(plan)
            await run.begin()
            await run.ask(self._provider, self._limits)
            if run.pending and run.new == before:
                return
