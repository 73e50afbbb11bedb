"""`eyechart.run`: one model on one task, from Python, without printing."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import write_results
from eyechart.harness.errors import UsageError
from eyechart.harness.face.asking.adaptive import AdaptiveChooser, adaptive_chooser
from eyechart.harness.face.asking.engine import ModelRuns, RunNotices, ask, reached_limit
from eyechart.harness.face.options.arguments import argument, knows_its_arguments
from eyechart.harness.face.options.run_options import RunOptions, models_of
from eyechart.harness.face.python.result import Run
from eyechart.harness.face.tracking import log_run
from eyechart.harness.journal.record import Warn, unsaid
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.selection import check_axes, open_tasks, task_plan, warnings_of
from eyechart.harness.run.event_loop import MAX_INTERRUPTS, loop_factory
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.writer import Judge
from eyechart.harness.settings.checks import full_text, path, shown
from eyechart.harness.settings.judging import JudgeSettings, RunJudgingArguments
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings
from eyechart.harness.task.catalogue import Task
from eyechart.providers.function.model import Model, name_of
from eyechart.providers.naming import in_python

TaskLike: TypeAlias = str | Path | Task
"""A task, its name, or its file."""
_WAIT_S = 0.1
_CALLER = 5
"""Frames from `notices` to the caller: the end of its context, the function, its check of names."""


def load_task(task: TaskLike) -> Task:
    """The task with this name, or in this file; a task is returned as it is.

    Raises:
        UnknownTaskError: there is no such task.
        UsageError: several tasks have this name, or the file has mistakes.
    """
    if isinstance(task, Task):
        return task
    argument("task", task, path)  # or a name, which is a path as well
    tasks = open_tasks(str(task))
    if len(tasks) > 1:
        names = ", ".join(one.name for one in tasks)
        raise UsageError(f"{str(task)!r} is several tasks, name one of them: {names}")
    return tasks[0]


@knows_its_arguments
def run(
    task: TaskLike,
    model: str | Model,
    *,
    name: str | None = None,
    lengths: Sequence[int] | None = None,
    samples: int | None = None,
    draws: int = 1,
    axes: Mapping[str, str | Sequence[str]] | None = None,
    exact: bool = False,
    seed: int = 0,
    adaptive: bool = False,
    precision: float | None = None,
    max_requests: int | None = None,
    temperature: float | None = 0.0,
    max_tokens: int | None = None,
    api: str = "chat",
    reading: str = "reply",
    system: str | None = None,
    thinking: str | int | bool | None = None,
    params: Mapping[str, object] | None = None,
    logprobs: int | None = None,
    base_url: str | Sequence[str] = (),
    header: str | Sequence[str] = (),
    model_args: Sequence[str] = (),
    max_connections: int = 64,
    rpm: float | None = None,
    tpm: float | None = None,
    budget: float | None = None,
    tier: str | None = None,
    shard: str | None = None,
    engine: str | None = None,
    out: str | Path = "results",
    log_to: str | Sequence[str] = (),
    keep_going: bool = False,
    fresh: bool = False,
    trust: bool = False,
    warn: Warn | None = None,
    **judging: Unpack[RunJudgingArguments],
) -> Run:
    """Asks `model` the samples of `task` that have no answer yet, and judges the run.

    `model` is a name as `--model` has it, or a function that takes a prompt and returns a text or a
    `Reply`, `async def` or not, or an object with `complete(request)`. An exception that it raises
    costs that sample alone, and the same call asks it again.

    The arguments are the options of `bench run`; `axes` maps an axis to its values, or to "all",
    and `params` further fields of each request to their values; those of
    judging are those of `load_run`. A call and a command with the same
    arguments share one run, and each continues the other. Nothing is printed. `warn` gets messages
    while the run goes on; without it they are Python warnings at the end.

    With `adaptive`, the replies so far decide which samples are asked next, until each effective
    length is known to `precision` octaves or `max_requests` samples were asked. Without
    `precision`, a full run's interval is the aim and its number of samples the limit. A message
    names each effective length that is not known so well.

    It works where an event loop runs, as in a notebook.

    Raises:
        EyechartError: the arguments, the task or the run's folder cannot be used.
        ProviderError: the model cannot be asked. What was answered is saved.
    """
    given = {name: value for name, value in locals().items() if name in SETTINGS}
    judged_by = JudgeSettings.read(**judging)
    with notices(warn) as notify:
        function = None if isinstance(model, str) else model
        if function is None:
            argument("model", model, full_text)
        elif callable(function) or hasattr(function, "complete"):
            given["model"] = name_of(function)
        else:
            raise UsageError(
                "model must be a name, a function that takes a prompt, or an object with "
                f"complete(request), not {shown(function)}"
            )
        settings = RunSettings.read(**given | {"task": ()})
        opened = load_task(task)
        check_axes(settings.axes, [opened], opened.name)
        planned = task_plan(opened, settings)
        options, *others = models_of(settings, [planned], notify=notify, function=function)
        if others:
            raise UsageError("the arguments name several models; ask each with a call of its own")
        for warning in warnings_of(planned):
            notify(warning)
        (request,) = options.requests([planned])
        request = replace(request, command=_command(planned, options))
        chooser = None
        if settings.adaptive:
            chooser = adaptive_chooser(settings, judged_by, further=settings.lengths is None)
        _ask(request, options, chooser, judged_by, notify)
        judged = read_run(request.folder, settings=judged_by)
        missing = judged.missing if chooser else judged.lacking(request.plan)
        if missing:
            notify(f"{missing:,} samples have no reply; the same call asks them again")
        return Run(judged, planned.task)


@contextmanager
def notices(warn: Warn | None) -> Iterator[Warn]:
    """What takes messages while models are asked: `warn`, or Python warnings at the end, which name
    the line that called the public function; raises `UsageError` if `warn` cannot be called.
    """
    if warn is not None and not callable(warn):
        raise UsageError(f"warn must be a function that takes a text, not {shown(warn)}")
    said: list[str] = []
    told = said.append if warn is None else warn
    try:
        yield lambda line: told(in_python(line))
    finally:
        for line in said:
            warnings.warn(line, stacklevel=_CALLER)


def _command(planned: Plan, options: RunOptions) -> str:
    """The call, for the manifest: with what chooses samples and model."""
    task, given = planned.task, options.given
    values = {
        axis: list(dict.fromkeys(condition[axis] for condition in planned.conditions))
        for axis in task.spec.axes
    }
    is_named = options.name.function is None
    model = repr(options.name.asked_as) if is_named else f"<{options.name.asked_as}>"
    arguments = [
        *(repr(task.name), model),
        *([f"name={given.name!r}"] if given.name else []),
        *([] if given.lengths is None else [f"lengths={list(given.lengths)}"]),
        *(["exact=True"] if given.exact else []),
        *(f"samples={planned.samples}", f"axes={values}", f"seed={planned.seed}"),
        *([f"draws={planned.draws}"] if planned.draws > 1 else []),
        *(["adaptive=True"] if given.adaptive else []),
        *([f"precision={given.precision}"] if given.precision is not None else []),
        *([] if given.shard.is_whole else [f"shard={str(given.shard)!r}"]),
    ]
    return f"eyechart.run({', '.join(arguments)})"


class NoDisplay:
    """The display of an engine that shows nothing."""

    def judge(self, request: RunRequest) -> Judge | None:  # noqa: ARG002  the protocol's
        return None

    def show(self, *_args: object, **_named: object) -> AbstractContextManager[object]:
        return nullcontext()


def _ask(
    request: RunRequest,
    options: RunOptions,
    chooser: AdaptiveChooser | None,
    judging: JudgeSettings,
    notify: Warn,
) -> None:
    """Asks the pending samples, and writes the tables of the run even if an error ends it. Says
    which conditions of an adaptive run are not known well enough.
    """
    budget = Budget(options.model.prices, options.given.budget, options.given.max_requests)
    job = ModelRuns([request], options, budget, chooser)
    (asked,) = ask([job], RunNotices(NoDisplay(), notify, notify), run_anywhere)
    try:
        for folder in asked.begun:
            judged = read_run(folder, settings=judging)
            write_results(judged)
            log_run(options.trackers, judged, notify, unsaid)
    finally:
        if asked.ended_by is not None:  # also where the tables cannot be written
            raise asked.ended_by
    if chooser is not None:
        ends = chooser.ends(request, asked.begun.get(request.folder))
        unknown = {of: end for of, end in ends.items() if not isinstance(end, str)}
        for condition, end in unknown.items():
            notify(f"{condition.label}: {end.text}")
        same = "the same call"
        limit = reached_limit(budget, same) or ("", f"{same} goes on")
        for line in chooser.unknown(list(unknown.values()), *limit):
            notify(line)


def run_anywhere(main: Coroutine[Any, Any, None]) -> None:
    """Runs `main` to its end, also where an event loop runs already: then in a thread of its own.

    Ctrl-C cancels `main`, waits until it has ended, and is raised; so does a second one meanwhile.
    The third is raised at once, in case `main` does not end.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(main)
        return
    outer = asyncio.current_task()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = Future()
    done: Future[None] = Future()

    async def work() -> None:
        task = asyncio.ensure_future(main)
        begun.set_result((asyncio.get_running_loop(), task))
        await task

    def run_loop() -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(work())
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits
            done.set_exception(error)
        else:
            done.set_result(None)

    thread = threading.Thread(target=run_loop, name="eyechart", daemon=True)
    interrupts: list[BaseException] = []
    while not done.done():
        try:
            _wait(thread, done, None if interrupts else outer)
        except (KeyboardInterrupt, asyncio.CancelledError) as error:
            interrupts.append(error)
            if len(interrupts) > MAX_INTERRUPTS or thread.ident is None:
                raise
            _cancel(begun, done)
    if interrupts:
        raise interrupts[0]
    done.result()


def _cancel(
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]], done: Future[None]
) -> None:
    """Cancels the task of a loop in another thread, once it has begun."""
    either: tuple[Future[Any], ...] = (begun, done)
    wait(either, return_when=FIRST_COMPLETED)
    if begun.done():
        loop, task = begun.result()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(task.cancel)


def _wait(thread: threading.Thread, done: Future[None], outer: asyncio.Task[Any] | None) -> None:
    """Starts `thread`, unless it has begun, and waits for `done`; raises `CancelledError` once
    `outer` is cancelled, as `asyncio.run` does for Ctrl-C.

    `Thread.join` is not used: in Python 3.11 a thread counts as ended if Ctrl-C interrupts it.
    """
    if thread.ident is None:
        thread.start()  # an interrupt may come before this returns
    while not done.done():
        wait((done,), timeout=_WAIT_S)
        if outer is not None and outer.cancelling():
            raise asyncio.CancelledError
