"""Every task file as a task of inspect_ai, under its own name: `eyechart/counting/bernoulli`.

Inspect imports this module through the entry point `eyechart` and finds the tasks it registers. It
does so also when it looks for tasks of other packages, so slow modules are loaded only when a task
is made. Nothing else imports this module. Prompts, budgets and verdicts are those of `bench run`,
sample by sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import cache
from importlib.metadata import version

import click
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from eyechart.harness.errors import UsageError
from eyechart.harness.plan.plan import Plan, output_budget
from eyechart.harness.plan.selection import open_tasks, plans
from eyechart.harness.satellites.export.inspect_ai.scores import (
    FACTS,
    PACKAGE,
    ours,
    outcome,
    verdict,
)
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import Sample
from eyechart.harness.task.catalogue import Task as TaskFile
from eyechart.harness.task.catalogue import installed_files
from eyechart.providers.base import PromptOverflowError
from eyechart.providers.catalog.model_facts import model_facts
from eyechart.providers.http.errors import error_of
from eyechart.providers.naming import spelled

_SWITCHES = {True: ("on", "yes", "true"), False: ("off", "no", "false")}
"""Truth value that YAML read -> the words of `-T` that it may stand for."""


class BadParameterError(click.ClickException):
    """A parameter of `-T` that cannot be used; Inspect's command prints this error in one line."""

    exit_code = 2


@solver(f"{PACKAGE}/ask")
@ours
def ask() -> Solver:
    """Sends the sample, or its messages turn by turn, with the limit of reply tokens that
    `bench run` gives each.

    Inspect's own `--max-tokens` overrides that limit. A reasoning model gets more, for thinking.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        room = state.metadata[FACTS]["max_tokens"] + _room_to_think(str(model))
        limit = {} if model.config.max_tokens is not None else {"max_tokens": room}
        try:
            state = await generate(state, **limit)
            for message in state.metadata[FACTS].get("next_turns", ()):
                if state.output.stop_reason != "stop" or not state.output.completion.strip():
                    break
                state.messages.append(ChatMessageUser(content=message))
                state = await generate(state, **limit)
        except Exception as error:  # of whatever SDK Inspect's provider uses
            if not _is_overflow(error):
                raise
            state.output = ModelOutput.from_content(
                str(model), " ".join(str(error).split()), stop_reason="model_length"
            )
        return state

    return solve


def _is_overflow(error: Exception) -> bool:
    """Whether a server rejected the prompt for its length, in words unknown to Inspect."""
    status = getattr(error, "status_code", None)
    text = getattr(getattr(error, "response", None), "text", None) or str(error)
    return isinstance(status, int) and isinstance(
        error_of(status, str(text), {}), PromptOverflowError
    )


@cache
def _room_to_think(model: str) -> int:
    facts = model_facts(model)
    return facts.room_to_think


def _task(
    names: str,
    axes: Mapping[str, object],
    *,
    lengths: object,
    exact: object,
    samples: object,
    seed: object,
) -> Task:
    """The tasks of `names` as one task of Inspect, with the values that `-T` was given.

    Raises:
        BadParameterError: a value that cannot be used, or a task file with mistakes.
    """
    try:
        if any(isinstance(value, bool) for value in axes.values()):
            axes = _with_words(axes, open_tasks(names, trial=False))
        if empty := [axis for axis, value in axes.items() if not _text(value)]:
            raise BadParameterError(f"-T {empty[0]} is empty; give it a value of the axis")
        given = RunSettings.read(
            task=names,
            lengths=None if lengths is None else _text(lengths),
            exact=exact,
            samples=samples,
            axes={axis: _text(value) for axis, value in axes.items()},
            seed=seed,
        )
        planned = plans(given)
        if own := [plan.task.name for plan in planned if plan.task.spec.scorer is not None]:
            raise BadParameterError(
                f"task {own[0]!r} has a scorer of its own, which Inspect's logs cannot keep; "
                "use bench run"
            )
        dataset = [_sample(plan, sample) for plan in planned for sample in plan]
    except UsageError as error:
        text = "\n".join(error.lines)
        raise BadParameterError(spelled(text, _parameter)) from error
    versions = [f"{plan.task.name}@{plan.task.spec.version}" for plan in planned]
    return Task(
        dataset=MemoryDataset(dataset, name=names),
        solver=ask(),
        scorer=[verdict(), outcome()],
        config=GenerateConfig(temperature=0.0),
        score_on_error=True,  # a request that fails is counted, and costs its own sample
        version=planned[0].task.spec.version if len(planned) == 1 else ",".join(versions),
        metadata={"eyechart": version("eyechart"), "tasks": versions},
    )


def _sample(plan: Plan, sample: Sample) -> InspectSample:
    """A sample with everything that its verdict depends on, so that logs can be scored again."""
    return InspectSample(
        input=_messages(plan.task.spec.system, sample.messages[0]),
        target=str(sample.target),
        id=sample.id,
        metadata={
            "task": plan.task.name,
            "task_version": plan.task.spec.version,
            "condition": sample.condition.label,
            "length": sample.length,
            "index": sample.index,
            **sample.condition,
            FACTS: {
                "line": astuple(sample.line),
                "target": sample.target,
                "answer": plan.task.spec.answer.given(),
                "accept": sample.accept,
                "prompt_hash": sample.prompt_hash,
                "max_tokens": output_budget(sample),
                **({"next_turns": sample.messages[1:]} if sample.in_turns else {}),
            },
        },
    )


def _messages(system: str | None, prompt: str) -> str | list[ChatMessage]:
    if system is None:
        return prompt
    return [ChatMessageSystem(content=system), ChatMessageUser(content=prompt)]


def _with_words(axes: Mapping[str, object], tasks: Sequence[TaskFile]) -> dict[str, object]:
    """`axes` with words in place of truth values, since YAML reads `-T hint=on` as true."""
    words = dict(axes)
    for axis, value in axes.items():
        if isinstance(value, bool):
            specs = (task.spec.axes[axis] for task in tasks if axis in task.spec.axes)
            known = {name for spec in specs for name in spec.values}
            words[axis] = next((word for word in _SWITCHES[value] if word in known), value)
    return words


def _text(value: object) -> str:
    """A value of `-T` in the form of `bench`; Inspect turns a text with commas into a list."""
    values = value if isinstance(value, list | tuple) else [value]
    return ",".join("" if item is None else str(item) for item in values)


def _parameter(name: str, value: str) -> str:
    """How Inspect's command line spells a setting: `-T samples=10`."""
    return f"-T {name}={value.lower()}" if value else f"-T {name}"


def _register(name: str) -> None:
    """Registers `name` with Inspect, which looks for registered tasks after importing a module."""

    def make_task(
        *,
        lengths: object = None,
        exact: object = False,
        samples: object = None,
        seed: object = 0,
        **axes: object,
    ) -> Task:
        return _task(name, axes, lengths=lengths, exact=exact, samples=samples, seed=seed)

    task(name=f"{PACKAGE}/{name}")(ours(make_task))


@task(name=f"{PACKAGE}/file")
@ours
def file(
    *,
    path: object = None,
    lengths: object = None,
    exact: object = False,
    samples: object = None,
    seed: object = 0,
    **axes: object,
) -> Task:
    """A task file of the user's, or a folder of them."""
    if path is None:
        raise BadParameterError("no task file named; give -T path=my_task.yaml")
    return _task(_text(path), axes, lengths=lengths, exact=exact, samples=samples, seed=seed)


_FILES = installed_files()
for _name in [*_FILES, *{name.partition("/")[0]: None for name in _FILES}]:
    _register(_name)
