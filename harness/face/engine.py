"""Sends the requests of a command; the command line and Python both use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from eyechart.harness.face.run_options import RunOptions
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.batch.context import BatchContext
from eyechart.harness.run.batch.engine import BatchEngine
from eyechart.harness.run.chooser import Chooser
from eyechart.harness.run.engine import Display, Engine, RunEngine
from eyechart.harness.run.fresh import OldRuns
from eyechart.harness.run.limits import RayOptions
from eyechart.harness.run.outcome import RunOutcome
from eyechart.harness.run.run_request import RunRequest
from eyechart.providers import plugins
from eyechart.providers.base import StopRunError
from eyechart.providers.naming import named
from eyechart.providers.plugins import ENGINES
from eyechart.providers.registry import open_batch_form, open_batches

_LOOP_STOPPED = "Event loop stopped before Future completed."
"""The message of asyncio and uvloop if code inside a loop stops the loop."""
Loop: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine to its end."""


@dataclass(frozen=True, slots=True)
class Asked:
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


def _nothing(_: str) -> None:
    """Ignores a message."""


def ask(
    requests: Sequence[RunRequest],
    options: RunOptions,
    budget: Budget,
    *,
    display: Display,
    loop: Loop,
    say: Warn,
    warn: Warn,
    choose: Chooser | None = None,
    announce: Warn = _nothing,
) -> Asked:
    """Asks the pending samples of `requests`, with one provider, in `loop`; with `choose` the runs
    are adaptive.

    An error while they are asked is not raised, so that answers can be shown first. `announce` gets
    a line that says where the requests go, before any of them is sent.

    Raises:
        ProviderError: the provider cannot be opened.
    """
    old_runs = OldRuns(requests if options.given.fresh else (), say=say, warn=warn)
    engine = _engine(
        requests, options, budget, old_runs, display=display, choose=choose, say=say, warn=warn
    )
    _announce(options, announce)
    ended_by: BaseException | None = None
    try:
        loop(engine.run())
    except BaseException as error:  # noqa: BLE001  the caller raises it
        ended_by = _stopped_by(options, error) or error
    put_back = frozenset(old_runs.restore())
    return Asked(engine.outcomes, put_back, bool(old_runs.moved), ended_by)


def _announce(options: RunOptions, say: Warn) -> None:
    """Tells which server is asked, and which key is sent to it."""
    if (where := options.destination) is not None:
        say(f"{options.model.label} is asked at {where}")


def _stopped_by(options: RunOptions, error: BaseException) -> StopRunError | None:
    """An error that names the plugin which stopped the event loop; `None` for other errors."""
    plugin = options.name.plugin
    if plugin is None or str(error) != _LOOP_STOPPED or not isinstance(error, RuntimeError):
        return None
    return plugin.fault("it stopped the event loop")


def reached_limit(budget: Budget, same: str) -> tuple[str, str] | None:
    """The limit that ended the runs of a command, and how to continue; `None` if no limit did.
    `same` names the repeated command.
    """
    if budget.exhausted:
        over = "may not pay for more" if budget.full else "is spent"
        return f" (the budget of ${budget.limit:g} {over})", "a new budget goes on"
    if not budget.has_requests:
        return f" ({named('max_requests')} is reached)", f"{same} goes on"
    return None


@dataclass(frozen=True, slots=True)
class Job:
    """The requests for one model that is asked at the same time as others."""

    requests: Sequence[RunRequest]
    options: RunOptions
    budget: Budget
    choose: Chooser | None = None

    @property
    def computes_here(self) -> bool:
        """Whether the model computes on this machine, so that one such model is asked at a time."""
        return self.options.name.descriptor.computes_here(self.options.given.base_url)


def ask_together(
    jobs: Sequence[Job],
    *,
    display: Display,
    loop: Loop,
    say: Warn,
    warn: Warn,
    announce: Warn = _nothing,
) -> list[Asked]:
    """Asks several models at the same time, each with its own limits; models on this machine one
    after another.

    An error of one does not stop the others; an interrupt stops all.
    """
    under_way = [_UnderWay(job, display, say, warn, announce) for job in jobs]
    here = [one for one in under_way if one.job.computes_here]
    lanes = [here, *([one] for one in under_way if one not in here)]

    async def ask_all() -> None:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(_in_turn(lane))

    try:
        loop(ask_all())
    except BaseException as error:  # noqa: BLE001  the caller raises it
        why = next(filter(None, (_stopped_by(job.options, error) for job in jobs)), error)
        for one in under_way:
            one.ended_by = one.ended_by or (None if one.is_done else why)
    return [one.asked() for one in under_way]


async def _in_turn(lane: Sequence[_UnderWay]) -> None:
    for one in lane:
        await one.ask()


class _UnderWay:
    """A job that is being asked."""

    def __init__(self, job: Job, display: Display, say: Warn, warn: Warn, announce: Warn) -> None:
        self.job = job
        self.is_done = False
        self.ended_by: BaseException | None = None
        self._display = display
        self._say = say
        self._warn = warn
        self._announce = announce
        self._old_runs = OldRuns(
            job.requests if job.options.given.fresh else (), say=say, warn=warn
        )
        self._engine: Engine | None = None

    async def ask(self) -> None:
        """Asks everything; stores the error that ends it, except for a cancellation."""
        job = self.job
        try:
            self._engine = _engine(
                job.requests,
                job.options,
                job.budget,
                self._old_runs,
                display=self._display,
                choose=job.choose,
                say=self._say,
                warn=self._warn,
            )
            _announce(job.options, self._announce)
            await self._engine.run()
        except Exception as error:  # noqa: BLE001  each model has an error of its own
            self.ended_by = error
        self.is_done = True

    def asked(self) -> Asked:
        """The result so far."""
        put_back = frozenset(self._old_runs.restore())
        outcomes = () if self._engine is None else self._engine.outcomes
        return Asked(outcomes, put_back, bool(self._old_runs.moved), self.ended_by)


def _engine(
    requests: Sequence[RunRequest],
    options: RunOptions,
    budget: Budget,
    old_runs: OldRuns,
    *,
    display: Display,
    choose: Chooser | None,
    say: Warn,
    warn: Warn,
) -> Engine:
    prices = options.model.prices
    if prices is not None and not options.model.has_tier_price:
        label = options.model.label
        warn(f"no {prices.tier} price of {label} is known; its list price is assumed")
    given = options.given
    if given.is_batch:
        settings = options.model_settings()
        service = open_batches(options.name, settings)
        form = open_batch_form(options.name, settings)
        return BatchEngine(
            requests, BatchContext(service, form, budget, say, warn), old_runs, choose
        )
    if given.engine is not None:
        open_engine = cast("Callable[..., Engine]", plugins.named(ENGINES, given.engine).load())
        return open_engine(
            requests,
            RayOptions(given.ray_address, given.ray_workers),
            options.name,
            options.model_settings(),
            options.limits,
            seed=options.settings.seed,
            think_tokens=options.model.think_tokens,
            budget=budget,
            old_runs=old_runs,
            display=display,
            say=say,
            warn=warn,
            choose=choose,
        )
    return RunEngine(
        requests,
        options.open_provider(requests),
        limits=options.limits,
        budget=budget,
        old_runs=old_runs,
        display=display,
        warn=warn,
        choose=choose,
    )
