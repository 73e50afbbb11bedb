"""Sends the requests of a command; the command line and Python both use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from eyechart.harness.face.asking.first_replies import check_first
from eyechart.harness.face.asking.own_models import remember
from eyechart.harness.face.options.run_options import RunOptions
from eyechart.harness.journal.record import Warn, unsaid
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.batch.engine import BatchEngine
from eyechart.harness.run.engine import Display, Engine, EngineContext, RunEngine
from eyechart.harness.run.fresh import OldRuns
from eyechart.harness.run.progress import RunOutcome
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec.dollars import dollars_text
from eyechart.providers.naming import named
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.plugins import ENGINES
from eyechart.providers.registry.registry import open_batch_form, open_batches

if TYPE_CHECKING:
    from eyechart.harness.face.asking.adaptive import AdaptiveChooser

Loop: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine to its end."""


@dataclass(frozen=True, slots=True)
class AskResult:
    """The result of asking the runs of a command. Runs that were put back have no result."""

    outcomes: Sequence[RunOutcome]
    """The runs that were begun, also those that were put back."""
    put_back: frozenset[Path]
    """Folders of old runs that are back in their place, because the new run got no answer."""
    has_moved: bool
    """Whether a fresh start has moved an old run that is not back."""
    ended_by: BaseException | None
    """The error or the interrupt that ended the runs."""

    @property
    def begun(self) -> dict[Path, RunRequest]:
        """The runs that have results, by folder, each with its request."""
        requests = [outcome.request for outcome in self.outcomes]
        return {
            request.folder: request for request in requests if request.folder not in self.put_back
        }


@dataclass(frozen=True, slots=True)
class ModelRuns:
    """The runs of a command for one model."""

    requests: Sequence[RunRequest]
    options: RunOptions
    budget: Budget
    choose: AdaptiveChooser | None = None
    """With it the runs are adaptive."""

    @property
    def computes_here(self) -> bool:
        """Whether the model computes on this machine, so that one such model is asked at a time."""
        return self.options.name.descriptor.computes_here(self.options.given.base_url)


@dataclass(frozen=True, slots=True)
class RunNotices:
    """How a door shows runs while they go on, and whom it tells what."""

    display: Display
    say: Warn
    warn: Warn
    announce: Warn = unsaid
    """Gets a line that says where the requests go, before any of them is sent."""


def ask(jobs: Sequence[ModelRuns], talk: RunNotices, loop: Loop) -> list[AskResult]:
    """Asks the pending samples of models in `loop`: at the same time, each with its own limits, and
    under one budget; models on this machine one after another.

    An error of one does not stop the others; an interrupt stops all. Neither is raised, so that
    answers can be shown first.
    """
    for job in jobs:
        job.budget.shared_with += [one.budget for one in jobs if one is not job]
    under_way = [_UnderWay(job, talk) for job in jobs]
    here = [one for one in under_way if one.job.computes_here]
    lanes = [*filter(None, [here]), *([one] for one in under_way if one not in here)]

    async def ask_all() -> None:
        if len(lanes) == 1:  # a group would wrap what ends it
            await _in_turn(lanes[0])
            return
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(_in_turn(lane))

    try:
        for lane in lanes:  # here an interrupt ends what takes long, such as loading a model
            lane[0].open()
        loop(ask_all())
    except BaseException as error:  # noqa: BLE001  the caller raises it
        for one in under_way:
            one.ended_by = one.ended_by or (None if one.is_done else error)
    return [one.asked() for one in under_way]


async def _in_turn(lane: Sequence[_UnderWay]) -> None:
    for one in lane:
        one.open()
        await one.run()


class _UnderWay:
    """A job that is being asked."""

    def __init__(self, job: ModelRuns, talk: RunNotices) -> None:
        self.job = job
        self.is_done = False
        self.ended_by: BaseException | None = None
        self._talk = talk
        self._old_runs = OldRuns(
            job.requests if job.options.given.fresh else (), say=talk.say, warn=talk.warn
        )
        self._engine: Engine | None = None

    def open(self) -> None:
        """Opens the provider, if it is not open; an error of it ends the job."""
        if self._engine is not None or self.is_done:
            return
        with self._ends():
            self._engine = _engine(self.job, self._old_runs, self._talk)
        if self._engine is not None and (where := self.job.options.destination) is not None:
            self._talk.announce(f"{self.job.options.model.label} is asked at {where}")

    async def run(self) -> None:
        """Asks the samples; an error ends the job."""
        if self._engine is not None:
            with self._ends():
                await self._engine.run()
        self.is_done = True

    @contextmanager
    def _ends(self) -> Iterator[None]:
        """Takes an error, since each model has one of its own."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self.ended_by = error
            self.is_done = True

    def asked(self) -> AskResult:
        put_back = frozenset(self._old_runs.restore())
        outcomes = () if self._engine is None else self._engine.outcomes
        return AskResult(outcomes, put_back, bool(self._old_runs.moved), self.ended_by)


def reached_limit(budget: Budget, same: str) -> tuple[str, str] | None:
    """The limit that ended the runs of a command, and how to continue; `None` if no limit did.
    `same` names the repeated command.
    """
    if budget.exhausted and budget.limit is not None:
        over = "may not pay for more" if budget.full else "is spent"
        return f" (the budget of {dollars_text(budget.limit)} {over})", "a new budget goes on"
    if not budget.has_requests:
        return f" ({named('max_requests')} is reached)", f"{same} goes on"
    return None


def _engine(job: ModelRuns, old_runs: OldRuns, talk: RunNotices) -> Engine:
    options = job.options
    prices, given = options.model.prices, options.given
    if prices is not None and not options.model.has_tier_price:
        label = options.model.label
        talk.warn(f"no {prices.tier} price of {label} is known; its list price is assumed")
    asking = EngineContext(
        requests=job.requests,
        limits=options.limits,
        budget=job.budget,
        old_runs=old_runs,
        display=talk.display,
        say=talk.say,
        warn=talk.warn,
        choose=job.choose,
        check_first=None if given.keep_going else check_first,
    )
    if given.is_batch:
        settings = options.model_settings()
        service = open_batches(options.name, settings)
        form = open_batch_form(options.name, settings)
        return BatchEngine(asking, service, form)
    if given.engine is not None:
        open_engine = cast("Callable[..., Engine]", plugins.named(ENGINES, "ray").load())
        return open_engine(asking, given.engine, options.name, options.model_settings())
    provider = options.open_provider(job.requests)
    for request in job.requests:
        remember(options.name, request.folder)
    return RunEngine(asking, provider)
