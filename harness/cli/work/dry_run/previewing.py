"""Makes the previews of runs: what they lack, what a server counts, and what waves may take."""

from __future__ import annotations

from collections.abc import Coroutine, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from eyechart.harness.cli.terminal import say, warn
from eyechart.harness.cli.work.dry_run.preview import Bill, Preview, Waves, bill_of
from eyechart.harness.face.options.run_options import RunOptions
from eyechart.harness.journal.answers import AnswerIndex, answered
from eyechart.harness.journal.judged_before import check_journal
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.plan.context_fit import CellFit, context_fits
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.estimate import Forecast, forecast
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.chooser import first_plan, next_plan
from eyechart.harness.run.event_loop import run_in_loop
from eyechart.harness.run.room import earlier_records, thinking_of
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import CellKey, Line, line_start
from eyechart.providers.base import Provider, SetupError

if TYPE_CHECKING:
    from eyechart.harness.face.asking.adaptive import AdaptiveChooser


def _answers(folder: Path, plan: Plan) -> AnswerIndex | None:
    """The answers of planned samples in the run's folder; `None` where there is no answer, and no
    first turn of one either. Raises `JournalError` where the run would, see `check_journal`.
    """
    check_journal(folder)
    found = answered(folder, warn, plan.lines, line_start(plan.seed, plan.task.name))
    return found if found or found.unsent or found.begun else None


def _is_asked(folder: Path, plan: Plan) -> bool:
    """Whether nothing is left to ask: each sample is answered, or does not fit."""
    answers = _answers(folder, plan)
    return answers is not None and all(
        answers.done_in(cell) == cell.samples * cell.draws for cell in plan.cells
    )


@dataclass(slots=True)
class Cap:
    """What a command's limit of requests leaves for the runs that are not previewed yet, as its
    runs are asked one after the other; `None` where it has no limit.
    """

    next: int | None
    """Requests that are left after the next wave of each run before."""
    least: int | None
    """Requests that are left, at least, after all waves of the runs before."""
    most: int | None
    """Requests that are left, at most, after all waves of the runs before. It equals `least` where
    it is known how many requests these waves take."""

    @classmethod
    def of(cls, requests: int | None) -> Cap:
        return cls(requests, requests, requests)

    def take(self, preview: Preview) -> None:
        """Counts the waves of one more run."""
        if self.next is None or self.least is None or self.most is None or preview.waves is None:
            return
        most, expected = preview.waves.most, preview.waves.expected
        self.next -= min(self.next, preview.forecast.left)
        self.most -= 0 if expected is None else min(self.most, expected.requests)
        sure = expected or most
        self.least -= self.least if sure is None else min(self.least, sure.requests)


Forecasts: TypeAlias = dict[Hashable, tuple[Mapping[CellKey, CellFit], Forecast]]
"""Cached fits and forecasts, by everything that they depend on if nothing counts tokens."""


def previews_of(
    plans: Sequence[Plan],
    options: RunOptions,
    chooser: AdaptiveChooser | None,
    made: Forecasts,
    *,
    asks_server: bool = False,
) -> list[Preview]:
    """A preview of each run of a model; opens a connection only with `asks_server`. `made` caches
    results for further models.
    """
    requests = options.requests(plans)
    counter = _counter(options, requests, asks_server=asks_server)
    counted = _counted(requests, options, chooser, counter, made)
    # a loop for each of thousands of models would take longer than their forecasts
    return _result_of(counted) if counter is None else run_in_loop(counted)


def preview_of(request: RunRequest, options: RunOptions, *, of_all: bool = False) -> Preview:
    """The preview of one run; with `of_all` that of its whole plan, whatever is answered."""
    counter = _counter(options, [request], asks_server=False)

    async def counted() -> list[Preview]:
        try:
            counting = _Counting({}, counter, {}, is_fresh=False)
            return [await counting.preview(request, of_all=of_all)]
        finally:
            if counter is not None:
                await counter.aclose()

    (found,) = _result_of(counted()) if counter is None else run_in_loop(counted())
    return found


def _result_of(coroutine: Coroutine[Any, Any, list[Preview]]) -> list[Preview]:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: list[Preview] = done.value
        return found
    coroutine.close()
    raise AssertionError("without a counter there is nothing to wait for")


def _plan_of_next(
    request: RunRequest, options: RunOptions, chooser: AdaptiveChooser, most: int | None
) -> Plan:
    """The waves of a run up to the one that is asked next, with at most `most` new requests; with
    `--fresh` the first wave of a run that has nothing yet.
    """
    if most == 0 and (options.given.fresh or not (request.folder / MANIFEST).exists()):
        return replace(request.plan, counts={})
    if options.given.fresh:
        return request.plan.with_counts(chooser.of_new_run(request, most))
    budget = Budget(requests=most)
    begun = first_plan(request, chooser, budget)
    if not _is_asked(request.folder, begun):
        return begun
    return next_plan(request, begun, chooser, budget) or begun


async def _waves(
    request: RunRequest,
    options: RunOptions,
    chooser: AdaptiveChooser,
    counting: _Counting,
    cap: Cap,
) -> Waves:
    most, prices = options.given.max_requests, options.model.prices
    waves = chooser.all_waves(request, is_fresh=options.given.fresh)
    fits = await counting.fits(request)

    async def bill(plan: Plan | None, *, is_most: bool) -> Bill | None:
        if plan is None:
            return None
        whole = await counting.preview(replace(request, plan=plan), of_all=True)
        return bill_of(whole, prices, is_most=is_most)

    cells = waves.cells
    if most is not None and waves.is_bounded:
        costs = {}
        for condition, line in cells:
            ends = {Line.exact(line.low), Line.exact(line.high)}  # the longer one may not fit
            each = [waves.plan.with_counts({(condition, end): 1}) for end in ends]
            costs[condition, line] = max([_dearness(await bill(one, is_most=True)) for one in each])
        cells.sort(key=costs.__getitem__, reverse=True)
    dearest = await bill(waves.dearest(most, fits, cells), is_most=True)
    if dearest is not None and waves.present:
        begun = await bill(waves.plan.with_counts(waves.present), is_most=True)
        dearest = None if begun is None else dearest.without(begun)
    expected = waves.expected(cap.most)
    is_known = cap.least == cap.most or waves.expected(cap.least) == expected
    return Waves(
        options.given.precision,
        waves.size,
        waves.may_grow,
        most,
        dearest,
        await bill(expected if is_known else None, is_most=False),
        waves.right_to,
    )


def _dearness(bill: Bill | None) -> float:
    """What bills are compared by: dollars, or else tokens."""
    if bill is None:
        return 0.0
    tokens = bill.prompt_tokens + bill.output_tokens
    return tokens if bill.dollars is None else bill.dollars


def not_known(options: RunOptions, *, asks_server: bool) -> str:
    """What a dry run does not know because it has not asked the server; "" if nothing."""
    if asks_server or not _has_server(options):
        return ""
    return (
        "not known: the window and the tokenizer of the server, which a dry run does not ask; "
        "--ask-server asks it"
    )


def _has_server(options: RunOptions) -> bool:
    """Whether there is a server that reports its window and counts tokens."""
    return options.name.descriptor.counts_tokens == "server" and bool(options.given.base_url)


def _counter(
    options: RunOptions, requests: Sequence[RunRequest], *, asks_server: bool
) -> Provider | None:
    """A provider that counts tokens without cost: the embedded model, or servers that run."""
    has_server = _has_server(options)
    if asks_server and has_server:
        say(f"{options.model.label} is asked at {options.destination}")
    elif asks_server:
        warn(
            "--ask-server is for a vllm/ or llamacpp/ model at --base-url; "
            f"{options.model.label} is not asked"
        )
    counts_here = options.name.descriptor.counts_tokens == "here"
    if not counts_here and not (asks_server and has_server):
        return None
    with suppress(SetupError):
        return options.open_provider(requests)
    return None


async def _counted(
    requests: Sequence[RunRequest],
    options: RunOptions,
    chooser: AdaptiveChooser | None,
    counter: Provider | None,
    made: Forecasts,
) -> list[Preview]:
    """A preview of each run; closes `counter`."""
    try:
        now = {} if counter is None else await counter.facts()
        counting = _Counting(now, counter, made, is_fresh=options.given.fresh)
        if chooser is None:
            return [await counting.preview(request) for request in requests]
        found: list[Preview] = []
        cap = Cap.of(options.given.max_requests)
        for request in requests:
            plan = _plan_of_next(request, options, chooser, cap.next)
            preview = await counting.preview(replace(request, plan=plan))
            known = replace(request, known_facts={**request.known_facts, **now})
            waves = await _waves(known, options, chooser, counting, cap)
            found.append(replace(preview, waves=waves))
            cap.take(found[-1])
        return found
    finally:
        if counter is not None:
            await counter.aclose()


def _earlier_facts(folder: Path) -> Mapping[str, object]:
    """The facts that the server gave in an earlier command of the run, such as its window."""
    return read_manifest(folder).server if (folder / MANIFEST).exists() else {}


@dataclass(frozen=True, slots=True)
class _Counting:
    """How the tokens of plans are counted."""

    now: Mapping[str, object]
    """The facts of a server that runs."""
    counter: Provider | None
    made: Forecasts
    is_fresh: bool

    def _server(self, request: RunRequest) -> Mapping[str, object]:
        return self.now if self.is_fresh else {**_earlier_facts(request.folder), **self.now}

    async def fits(self, request: RunRequest) -> Mapping[CellKey, CellFit]:
        """The cells of a run that may not fit."""
        plan, model, server = request.plan, request.model, self._server(request)
        reply = request.settings.reply_tokens
        return await context_fits(plan, model, server, self.counter, reply)

    async def preview(self, request: RunRequest, *, of_all: bool = False) -> Preview:
        """The forecast of the samples without an answer; with `of_all`, that of the whole plan."""
        answers = None if of_all or self.is_fresh else _answers(request.folder, request.plan)
        plan, model, settings = request.plan, request.model, request.settings
        window = model.window(self._server(request))
        thinking = thinking_of(request, earlier_records(request), window)
        same = (
            *(id(plan.task), tuple(plan.conditions), tuple(plan.lines), plan.samples, plan.seed),
            *(None if plan.counts is None else tuple(plan.counts.items()), plan.shard),
            *(settings.reply_tokens, settings.system, thinking, window, model.facts.max_reply),
        )
        is_kept = self.counter is None and answers is None
        if is_kept and same in self.made:
            fits, run_forecast = self.made[same]
            return Preview(request, run_forecast, fits, thinking, None)
        fits = await self.fits(request)
        run_forecast = await forecast(
            plan,
            max_tokens=settings.reply_tokens,
            thinking=thinking,
            counter=self.counter,
            system=settings.system,
            fits=fits,
            answers=answers,
        )
        if is_kept:
            self.made[same] = fits, run_forecast
        return Preview(request, run_forecast, fits, thinking, answers)
