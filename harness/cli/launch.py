"""`bench run`: from options to plans shown, or to runs made and their tables printed."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar, get_args

from harness.analysis.stats import smallest_difference
from harness.cli.terminal import echo, say, take_logs, warn
from harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED, JournalError, TaskError, UsageError
from harness.journal.journal import Journal, Settings
from harness.plan.cost import Budget
from harness.plan.estimate import Forecast, Room, forecast, rooms
from harness.plan.plan import Plan
from harness.plan.selection import check_text
from harness.run.batch.context import Desk
from harness.run.batch.jobs import run_batched
from harness.run.fresh import OldRuns
from harness.run.open_run import Wanted
from harness.run.pool import Limits, Progress
from harness.run.task_run import run_task
from harness.spec import CellKey, condition_label
from providers.base import Api, ModelSettings, Provider, ProviderError, SetupError
from providers.catalog.model_facts import ModelFacts, Prices, model_facts
from providers.registry import (
    ModelName,
    has_batches,
    open_batch_form,
    open_batches,
    open_model,
    parse_model,
    told_of,
)

SERVER_LOG = "server.log"
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says besides the tasks."""

    model: str
    out: Path
    seed: int = 0
    temperature: float = 0.0
    max_tokens: int | None = None
    api: str = "chat"
    system: str | None = None
    logprobs: bool = False
    base_urls: tuple[str, ...] = ()
    server_args: tuple[str, ...] = ()
    model_args: tuple[str, ...] = ()
    max_connections: int = 64
    rpm: float | None = None
    tpm: float | None = None
    budget: float | None = None
    fresh: bool = False
    batch: bool = False

    def settings(self) -> Settings:
        """What shapes the answers.

        Raises:
            UsageError: a value that no run can have.
        """
        if not math.isfinite(self.temperature):
            raise UsageError(f"--temperature must be a number, not {self.temperature}")
        if abs(self.seed) >= 2**63:
            raise UsageError("--seed is beyond 64 bits")
        if self.api not in get_args(Api):
            raise UsageError(f"--api must be chat or completions, not {self.api!r}")
        api: Api = "completions" if self.api == "completions" else "chat"
        return Settings(self.seed, self.temperature, self.max_tokens, api, self.system or None)

    def check_texts(self) -> None:
        """Raises `UsageError` where a text is not UTF-8: it could be neither sent nor kept."""
        check_text("--model", self.model)
        check_text("--system", self.system)
        for option, texts in (
            ("--base-url", self.base_urls),
            ("--vllm-arg", self.server_args),
            ("--model-arg", self.model_args),
        ):
            for text in texts:
                check_text(option, text)

    def limits(self) -> Limits:
        """How hard to try; raises `UsageError` as `settings` does."""
        for name, value in (("rpm", self.rpm), ("tpm", self.tpm), ("budget", self.budget)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"--{name} must be above 0, not {value:g}")
        if self.batch and (self.rpm is not None or self.tpm is not None):
            raise UsageError("--rpm and --tpm pace single requests; leave them out with --batch")
        return Limits(max_connections=self.max_connections, rpm=self.rpm, tpm=self.tpm)

    def meter(self, facts: ModelFacts, label: str) -> Budget:
        """Counts the money; raises `UsageError` where a budget has no prices to go by."""
        if self.budget is not None and facts.prices is None:
            raise UsageError(
                f"--budget needs the prices of {label}: give them in a file that EYECHART_MODELS "
                "names, as providers/catalog/models.yaml does"
            )
        prices = facts.prices.in_batch() if facts.prices and self.batch else facts.prices
        return Budget(prices, self.budget)

    def asked(self, name: ModelName, log: Path | None = None) -> ModelSettings:
        """How the model is to be asked."""
        return ModelSettings(
            model=name.model,
            temperature=self.temperature,
            base_urls=self.base_urls,
            api=self.settings().api,
            system=self.system or None,
            logprobs=self.logprobs,
            server_args=self.server_args,
            model_args=self.model_args,
            server_log=log,
            notify=warn,
        )

    def open(self, name: ModelName, log: Path) -> Provider:
        """The provider; raises `SetupError`."""
        return open_model(name, self.asked(name, log))


def wanted_runs(plans: Sequence[Plan], options: Options) -> tuple[ModelName, list[Wanted]]:
    """The model and a run of each plan; raises `UsageError` for what no run can have."""
    options.check_texts()
    settings, out = options.settings(), options.out
    options.limits()
    place = next((folder for folder in (out, *out.parents) if folder.exists()), out)
    if place.exists() and not place.is_dir():
        raise UsageError(f"--out {str(out)!r}: {str(place)!r} is not a folder")
    name = parse_model(options.model, options.model_args)
    if options.batch:
        has_batches(name)
    told = told_of(name, options.model_args)
    return name, [Wanted(one, name.label, settings, out, told) for one in plans]


def run(plans: Sequence[Plan], options: Options) -> int:
    """Runs the plans one after another and prints a table for each; the exit code."""
    name, runs = wanted_runs(plans, options)
    meter = options.meter(model_facts(name.label), name.label)
    begun: list[tuple[Wanted, Progress]] = []
    old = OldRuns(runs if options.fresh else (), SERVER_LOG, say=say, warn=warn)
    asking = _opened(runs, name, options, meter, old=old, begun=begun)
    code = COMPLETE
    try:
        _in_loop(asking())
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (ProviderError, JournalError, TaskError) as error:
        if "BENCH_DEBUG" in os.environ:
            raise
        warn(str(error))
        code = error.exit_code
    finally:
        back = old.restore()
    same = "the same command without --fresh" if old.moved else "the same command"
    if code == INTERRUPTED:
        saved = "batches go on" if options.batch else "what was answered is saved"
        say(f"interrupted; {saved}, and {same} continues")
    shown = {one.folder: one for one, _ in begun if one.folder not in back}
    _share_log([folder / SERVER_LOG for folder in shown])
    missing = sum(map(_report, shown.values()))
    missing += sum(one.plan.size for one in runs if one.folder not in shown)
    if meter.spent:
        say(f"cost about ${meter.spent:.4f}")
    if missing and code == COMPLETE:
        why = next((f" (the last: {p.last_failure})" for _, p in begun[::-1] if p.failed), "")
        again = f"{same} asks them again"
        if meter.exhausted:
            over = "may not pay for more" if meter.full else "is spent"
            why, again = f" (the budget of ${meter.limit:g} {over})", "a new budget goes on"
        warn(f"{missing} samples have no reply{why}; {again}")
        code = INCOMPLETE
    return code


def _opened(
    runs: Sequence[Wanted],
    name: ModelName,
    options: Options,
    meter: Budget,
    *,
    old: OldRuns,
    begun: list[tuple[Wanted, Progress]],
) -> Callable[[], Coroutine[Any, Any, None]]:
    """What will ask the runs, with who answers opened; raises `SetupError`."""
    if not options.batch:
        provider = options.open(name, runs[0].folder / SERVER_LOG)
        return partial(_run_all, runs, provider, options.limits(), meter, old=old, begun=begun)
    asked = options.asked(name)
    service, form = open_batches(name, asked), open_batch_form(name, asked)
    facts = model_facts(name.label)
    if facts.prices is not None and facts.prices.batch is None:
        warn(f"no batch price of {name.label} is known; its list price is assumed")
    desk = Desk(service, form, facts, meter, say, warn)
    return partial(run_batched, runs, desk, begun, make_way=old.move_away if old.any else None)


def _share_log(logs: Sequence[Path]) -> None:
    """One server answers all runs of a command; each run's folder has its log."""
    for log in logs[1:]:
        if logs[0].exists() and not log.exists():
            with suppress(OSError):
                log.hardlink_to(logs[0])


def _in_loop(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Runs `main` in the fastest event loop there is.

    What is loaded by now stays, so the garbage collector need not look at it again, and looks less
    often at the rest: a twelfth of the time of a request to a fast server.
    """
    take_logs()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if sys.platform != "win32":
        with suppress(ImportError):
            import uvloop

            factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            return runner.run(_until_ended(main))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


async def _until_ended(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Ends `main` on Ctrl-C, on SIGTERM, and when the terminal is closed.

    That is between two callbacks: an exception raised wherever the program is would end up in the
    event loop. Only a third Ctrl-C is one, for what never comes to an end. What is ignored stays
    so, as under nohup.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    interrupts = 0

    def interrupt(_number: int, _frame: object) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 2:  # noqa: PLR2004
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(task.cancel)

    def hang_up() -> None:
        if not task.cancelling():  # a closing terminal may say so twice
            task.cancel()

    for name, handler in (("SIGTERM", task.cancel), ("SIGHUP", hang_up)):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(NotImplementedError):  # not everywhere
                loop.add_signal_handler(number, handler)
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        return await main
    finally:
        signal.signal(signal.SIGINT, before)


async def _run_all(
    runs: Sequence[Wanted],
    provider: Provider,
    limits: Limits,
    meter: Budget,
    *,
    old: OldRuns,
    begun: list[tuple[Wanted, Progress]],
) -> None:
    from harness.cli.progress import LiveProgress, judge_of

    try:
        if old.any:
            await provider.facts()  # somebody is there
            old.move_away()
        for one in runs:
            if meter.exhausted:
                return
            with LiveProgress(one.plan.task.name) as live:

                def started(progress: Progress, pending: int, one: Wanted = one) -> None:
                    begun.append((one, progress))
                    live.follow(progress, pending)

                await run_task(
                    one,
                    provider,
                    limits=limits,
                    warn=warn,
                    budget=meter,
                    judge=judge_of(one) if live.shown else None,
                    started=started,
                )
    finally:
        await provider.aclose()


def _report(one: Wanted) -> int:
    """Writes and prints the run's table; how many samples of the plan have no reply."""
    from harness.analysis.rescore import write_results
    from harness.analysis.tables import OUTCOMES, read_run
    from harness.cli.tables import print_table

    judged = read_run(one.folder)
    path = write_results(judged)
    sizes = {
        (condition_label(condition), length): one.plan.cell_size(length)
        for condition, length in product(one.plan.conditions, one.plan.lengths)
    }
    keys = [cell.key for cell in judged.manifest.cells]
    print_table(judged, judged.cells[[key in sizes for key in keys]])
    echo(str(path), "")
    samples = judged.samples
    wanted = samples["cell"].map(lambda place: sizes.get(keys[place], 0))
    replied = (samples["index"] < wanted) & (samples["outcome"] != OUTCOMES.index("error"))
    return one.plan.size - int(replied.sum())


def show(plans: Sequence[Plan], options: Options) -> int:
    """Prints what the runs would ask and cost, and a prompt of each; asks nothing."""
    name, runs = wanted_runs(plans, options)
    facts = model_facts(name.label)
    prices = options.meter(facts, name.label).prices
    counter = _counter(options, name, runs[0].folder / SERVER_LOG)

    async def count() -> list[tuple[Forecast, dict[CellKey, Room]]]:
        try:
            window: Any = facts.window
            if counter is not None:
                window = (await counter.facts()).get("max_model_len") or window
            found = []
            for one in runs:
                room = await rooms(one.plan, counter, window, options.max_tokens)
                ahead = await forecast(
                    one.plan,
                    max_tokens=options.max_tokens,
                    facts=facts,
                    counter=counter,
                    system=options.system,
                    room=room,
                )
                found.append((ahead, room))
            return found
        finally:
            if counter is not None:
                await counter.aclose()

    ahead = _in_loop(count())
    for one, (expected_use, room) in zip(runs, ahead, strict=True):
        _show_plan(one, expected_use, prices, room)
    forecasts = [expected_use for expected_use, _ in ahead]
    if prices is not None:
        expected, most = map(sum, zip(*(one.dollars(prices) for one in forecasts), strict=True))
        of = "batch " if options.batch and prices.batch is not None else ""
        assumed = "; no batch price is known" if options.batch and prices.batch is None else ""
        echo(
            f"cost of all: about ${expected:.2f}, at most ${most:.2f}, "
            f"at the {of}prices of {prices.as_of}{assumed}"
        )
    elif name.provider not in ("tiny", "scripted", "vllm") and not options.base_urls:
        echo(f"cost: unknown, providers/catalog/models.yaml has no prices of {name.label}")
    return COMPLETE


def _counter(options: Options, name: ModelName, log: Path) -> Provider | None:
    """A provider that counts tokens without cost: the embedded model, or servers that run."""
    if name.provider != "tiny" and not (name.provider == "vllm" and options.base_urls):
        return None
    with suppress(SetupError):
        return options.open(name, log)
    return None


def _answered(one: Wanted) -> str:
    """How much of a plan its run has answers to; empty if none."""
    sizes = {
        (condition_label(condition), length): one.plan.cell_size(length)
        for condition, length in product(one.plan.conditions, one.plan.lengths)
    }
    known = Journal(one.folder, warn).answered()
    there = sum(known.count_in(key, size) for key, size in sizes.items())
    return f"; {there:,} are answered, so {one.plan.size - there:,} will be asked" if there else ""


def _show_plan(
    one: Wanted, ahead: Forecast, prices: Prices | None, room: Mapping[CellKey, Room]
) -> None:
    planned, spec = one.plan, one.plan.task.spec
    rule = "counted" if ahead.exact else "estimated: one a digit or sign, one per five letters"
    first = next(iter(planned))
    least = smallest_difference(planned.samples, len(planned.lengths))
    can_show = (
        "nothing between two cells: these are too few samples"
        if least is None
        else f"{100 * least:.0f} points between two conditions or models at a length, four times "
        "out of five"
    )
    replies = f"about {ahead.output_tokens:,} and at most {ahead.most_output_tokens:,} of replies"
    rows = [
        ("model", one.model),
        ("conditions", str(len(planned.conditions))),
        *(("", condition_label(condition)) for condition in planned.conditions),
        ("lengths", ", ".join(map(str, planned.lengths))),
        ("requests", f"{planned.size:,} ({planned.samples} a cell){_answered(one)}"),
        ("can show", can_show),
        ("characters", f"{ahead.characters:,}"),
        ("tokens", f"{ahead.prompt_tokens:,} of prompts ({rule}), {replies}"),
    ]
    if prices is not None:
        expected, most = ahead.dollars(prices)
        rows.append(("cost", f"about ${expected:.2f}, at most ${most:.2f}"))
    rows += [
        ("too long", f"{label} at length {length}: {fit}; not to be sent")
        for (label, length), fit in room.items()
        if not fit.fits
    ]
    rows += [("run folder", str(one.folder)), ("sample", first.id)]
    echo(f"{planned.task.name}@{spec.version}: {spec.title}")
    echo(*(f"  {key:<11} {value}" for key, value in rows))
    echo(*(f"    | {line}" for line in first.prompt.split("\n")), "")
