"""The plans that follow from the settings of a command: its tasks, lengths and axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from eyechart.harness.errors import TaskFileError, UsageError
from eyechart.harness.plan.plan import Plan, item_of, make_sample, plan
from eyechart.harness.plan.repeated_items import wrong_items
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import Condition, Line, lines_of, varied_label
from eyechart.harness.task.catalogue import Task, find, open_task
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.naming import named

Warn: TypeAlias = Callable[[str], None]

MOST_SAMPLES = 400
"""Samples of a line that an adaptive run asks at most, unless the settings have a number."""
_NAMED = 3
"""Tasks that a line names, at most."""


def open_tasks(names: str, *, trial: bool = True) -> list[Task]:
    """The tasks that `names` lists; raises one error with the mistakes in all their files."""
    opened: list[Task] = []
    wrong: list[str] = []
    for name, path in find(names).items():
        try:
            opened.append(open_task(name, path, trial=trial))
        except TaskFileError as error:
            wrong += error.lines
    if wrong:
        raise UsageError("a task file is wrong", *wrong)
    return opened


def plans(given: RunSettings, *, leave_out: Warn | None = None) -> list[Plan]:
    """A plan for each task of the settings, as `task_plan` makes it. `leave_out` takes what is
    said of an axis that tasks lack; without it an axis that no task has is an error.
    """
    names = ",".join(given.task)
    tasks = open_tasks(names)
    if leave_out is None:
        check_axes(given.axes, tasks, names)
        return [task_plan(task, given) for task in tasks]
    for axis in given.axes:
        if without := [task.name for task in tasks if axis not in task.axes]:
            remedy = f"; {_known_axes(axis, tasks)}" if len(without) == len(tasks) else ""
            leave_out(f"axis {axis!r} is left out for {_some(without)}: no such axis there{remedy}")
    return [task_plan(task, given) for task in tasks]


def task_plan(task: Task, given: RunSettings) -> Plan:
    """The plan of one task: the most that a run of it may ask.

    An adaptive run asks up to `MOST_SAMPLES` samples of a line, unless the settings have a number.

    Raises:
        UsageError: a value that no run can have.
    """
    samples = given.samples
    if given.adaptive and samples is None:
        samples = MOST_SAMPLES
    planned = plan(
        task,
        lengths=given.lengths,
        samples=samples,
        axes=given.axes,
        exact=given.exact,
        seed=given.seed,
    )
    for condition, line in planned.sizes:  # a length that the task cannot make is found here
        for length in sorted({line.low, line.length, line.high}):
            make_sample(planned.task, condition, Line.exact(length), 0, planned.seed)
    return replace(planned, draws=given.draws)


def _some(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    others = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {others} more" if others > 0 else "")


def check_axes(axes: Iterable[str], tasks: Sequence[Task], names: str) -> None:
    """Raises `UsageError` for an axis that no task has; `names` is the setting `task`."""
    for axis in axes:
        if not any(axis in task.axes for task in tasks):
            remedy = _known_axes(axis, tasks)
            raise UsageError(f"no axis {axis!r} in {names!r}; {remedy}", setting="axes")


def _known_axes(given: str, tasks: Sequence[Task]) -> str:
    """The axis that was probably meant, or else all axes of the tasks."""
    known = sorted({axis for task in tasks for axis in task.axes})
    return did_you_mean(given, known)


def refuse_turns(planned: Iterable[Plan], what: str) -> None:
    """Raises `UsageError` if a task asks over several turns, which `what` cannot do."""
    if in_turns := [plan.task.name for plan in planned if plan.task.in_turns]:
        raise UsageError(
            f"task {in_turns[0]!r} asks over several turns, which {what} cannot; 'bench run' and "
            "Inspect do"
        )


_COMPARED = 3
"""Number of samples that are compared to find cells whose rows are all equal."""


def system_prompt(planned: Sequence[Plan], given: str | None) -> str | None:
    """The system prompt of a command: `given`, or else that of its tasks; raises `UsageError` if
    the tasks have different system prompts, and a command opens its model with one.
    """
    if given is not None:
        return given
    by_prompt = {plan.task.spec.system: plan.task.name for plan in planned}
    if len(by_prompt) > 1:
        first, second, *_ = by_prompt.values()
        raise UsageError(
            f"tasks {first!r} and {second!r} have different system prompts; run them apart, or "
            f"give all the same with {named('system')}"
        )
    return next(iter(by_prompt), None)


def warnings_of(planned: Plan) -> list[str]:
    """What is equal in a plan and is asked all the same; mostly nothing."""
    of_items = wrong_items(planned.task) if planned.task.spec.items is not None else ()
    return [*of_items, *filter(None, (repeats(planned), twins(planned)))]


def twins(planned: Plan) -> str | None:
    """A warning if conditions have equal prompts; else `None`. The longest rows are compared."""
    line = planned.lines[-1]
    first_of: dict[tuple[object, ...], Condition] = {}
    pairs = []
    for condition in planned.conditions:
        count = min(_COMPARED, planned.cell_size(condition, line))
        samples = (planned.sample(condition, line, index) for index in range(count))
        asked = tuple((one.prompt_hash, one.target) for one in samples)
        if (before := first_of.setdefault(asked, condition)) != condition:
            pairs.append((condition, before))
    if not pairs:
        return None
    one, other = (varied_label(condition, planned.conditions) for condition in pairs[0])
    return (
        f"{planned.task.name}: {len(pairs)} of {len(planned.conditions)} conditions have the same "
        f"prompts as another one, such as [{one}] as [{other}]; {named('axes')} leaves values out"
    )


def repeats(planned: Plan) -> str | None:
    """A warning if the samples of a cell have equal rows and targets and differ only in a label;
    else `None`.

    This can happen only if all lines are exact. The cells with the longest rows are checked.
    """
    task, line = planned.task, planned.lines[-1]
    count = min(_COMPARED, planned.cell_size(planned.conditions[0], line))
    if task.spec.items is not None or count < 2 or not all(one.is_exact for one in planned.lines):  # noqa: PLR2004
        return None
    for condition in planned.conditions:
        items = [
            item_of(task, condition, line.length, index, planned.seed) for index in range(count)
        ]
        if all(
            (item.symbols, item.target) == (items[0].symbols, items[0].target) for item in items
        ):
            bands = lines_of((one.length for one in planned.lines), "bands")
            remedy = (
                f"without {named('exact')} the length varies"
                if not all(band.is_exact for band in bands)
                else f"{named('lengths')} that are farther apart vary the length"
                if len(bands) > 1
                else f"two or more {named('lengths')} vary the length"
            )
            return (
                f"{task.name}: at an exact length all rows are equal, so samples differ in nothing "
                f"but their labels; {remedy}"
            )
    return None


def precision_text(precision: float | None) -> str:
    """`0.75 octaves`, `1 octave`, or `the precision of a full run`."""
    if precision is None:
        return "the precision of a full run"
    return f"{precision:g} octave{'s' * (precision != 1)}"
