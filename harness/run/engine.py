"""Asks the runs of a command one after another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from eyechart.harness.journal.record import Warn
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.chooser import Chooser, first_plan, next_plan
from eyechart.harness.run.first_replies import FirstCheck, FirstRepliesError, FirstStops
from eyechart.harness.run.fresh import OldRuns
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.progress import Progress, RunOutcome
from eyechart.harness.run.room import Room
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.task_run import TaskRun
from eyechart.harness.run.writer import Judge
from eyechart.providers.base import Facts, Provider

_UNHEARD_ATTEMPTS = 3
"""Most attempts at a sample before the server has answered anything in a command."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContext:
    """The runs of a command for one model, and what an engine needs to ask them."""

    requests: Sequence[RunRequest]
    limits: RunLimits
    budget: Budget
    old_runs: OldRuns
    """Moved away when the server has answered."""
    display: Display
    say: Warn
    warn: Warn
    choose: Chooser | None = None
    """With it the runs are adaptive."""
    check_first: FirstCheck | None = None
    """Judges the first replies of each run; without it all samples are asked."""

    def first_request(self, request: RunRequest) -> RunRequest:
        """The run as it is asked first: of an adaptive one the first wave."""
        if self.choose is None:
            return request
        return replace(request, plan=first_plan(request, self.choose, self.budget))

    def run_of(
        self, request: RunRequest, run_journal: Journal, model: Facts, room: Room | None = None
    ) -> TaskRun:
        """The run of a `first_request`."""
        return TaskRun(
            request,
            run_journal,
            model,
            warn=self.warn,
            budget=self.budget,
            judge=self.display.judge(request),
            room=room,
            check_first=self.check_first,
        )


class RunEngine:
    """Sends request by request, with one provider for all runs of a command."""

    def __init__(self, asking: EngineContext, provider: Provider) -> None:
        """The provider is closed when `run` ends."""
        self._asking = asking
        self._provider = provider
        self._runs: list[TaskRun] = []

    @property
    def outcomes(self) -> Sequence[RunOutcome]:
        return [run.outcome for run in self._runs]

    @property
    def _has_answers(self) -> bool:
        return any(run.progress.answered for run in self._runs)

    async def run(self) -> None:
        """Asks everything that is pending, until the budget is spent; of an adaptive run, wave
        after wave. A run whose first replies cannot be used does not end the others.

        Raises:
            ProviderError: the server refuses or is not there, or another model answers than before,
                or the first replies ended a run.
            JournalError: a run's folder cannot be used.
            TaskError: a sample cannot be made.
        """
        asking, stopped = self._asking, FirstStops()
        try:
            if asking.old_runs.any:
                await self._provider.facts()  # raises where there is no server
                asking.old_runs.move_away()
            for request in asking.requests:
                if asking.budget.exhausted or not asking.budget.has_requests:
                    break
                with stopped.of(request.name):
                    await self._run_one(request)
                if stopped.without_reply and not self._has_answers:
                    break  # the other runs would meet the same
            stopped.end()
        finally:
            await self._provider.aclose()

    async def _run_one(self, request: RunRequest) -> None:
        asking = self._asking
        with Journal(request.folder, asking.warn, request.journal) as run_journal:
            first = asking.first_request(request)
            room = self._runs[-1].room if self._runs else None
            run = asking.run_of(first, run_journal, self._provider, room)
            try:
                await run.begin()
            except FirstRepliesError:
                self._runs.append(run)
                raise
            self._runs.append(run)
            limits = replace(asking.limits, unheard_attempts=_UNHEARD_ATTEMPTS)
            if self._has_answers:  # the server is there
                limits = replace(asking.limits, connect_timeout_s=limits.outage_timeout_s)
            with asking.display.show(request, run.progress):
                await run.ask(self._provider, limits)
                if asking.choose is not None:
                    await self._ask_on(run, request, asking.choose)
                run.first.decide(is_end=True)

    async def _ask_on(self, run: TaskRun, request: RunRequest, choose: Chooser) -> None:
        """Asks the waves after the first one, until a wave gets no answer.

        A wave whose samples were asked by an earlier plan is known already.
        """
        while plan := next_plan(request, run.plan, choose, self._asking.budget, run.progress):
            before = run.new
            run.grow(plan)
            await run.begin()
            await run.ask(self._provider, self._asking.limits)
            if run.pending and run.new == before:
                return
