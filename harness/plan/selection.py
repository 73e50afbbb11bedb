"""What a command names: tasks, lengths, axes, and the plans that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import get_args

from eyechart.harness.bounds import BOUNDS, shown
from eyechart.harness.errors import TaskFileError, UsageError
from eyechart.harness.plan.plan import Plan, item_of, make_sample, plan
from eyechart.harness.spec import Line, Spread, lines_of
from eyechart.harness.task.catalogue import Task, find, open_task
from eyechart.harness.task.prompt import utf8_problem
from eyechart.providers.close_match import did_you_mean

PRECISION = 0.75
"""Octaves: with it the ends of an interval are a factor of 1.7 apart."""
MOST_SAMPLES = 400
"""Samples of a line that an adaptive run asks at most, unless `--samples` says otherwise."""
_NAMED = 3
"""Tasks that a line names, at most."""


def check_text(option: str, given: str | None) -> None:
    """Raises `UsageError` if `given` cannot be encoded in UTF-8."""
    if given is not None and utf8_problem("", given):
        raise UsageError(f"{option} {given!r} is not UTF-8; write it in UTF-8")


def read_whole(given: str) -> int | None:
    """The whole number in a text; `None` if there is none."""
    with suppress(ValueError):
        return int(given) if given.isascii() and given.isdecimal() else None
    return None  # of thousands of digits


def max_tokens(given: str) -> int | None:
    """`auto` as `None`, else a positive number."""
    if given == "auto":
        return None
    bound = BOUNDS["max_tokens"]
    if not bound.allows(read_whole(given)):
        demand = bound.demand.replace("must be", "must be 'auto' or")
        raise UsageError(f"--max-tokens {demand}, not {shown(given)}")
    return int(given)


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


def plans(
    names: str,
    *,
    lengths: str | None,
    spread: str | None,
    samples: int | None,
    axes: Sequence[str],
    seed: int,
    adaptive: bool = False,
    leave_out: Callable[[str], None] | None = None,
    preset: str | None = None,
    notify: Callable[[str], None] | None = None,
) -> list[Plan]:
    """A plan for each task that `names` lists, as `task_plan` makes it. An axis that some tasks
    lack is left out for these, and `leave_out` gets a message about it. Without `leave_out`, an
    axis that no task has is an error. With a `preset`, tasks without it are left out, and `notify`
    gets a line that names them.
    """
    tasks = open_tasks(names)
    if preset is not None:
        tasks = _with_preset(tasks, preset, names, notify)
    chosen_values = read_axes(axes)
    if leave_out is None:
        check_axes(chosen_values, tasks, names)
    else:
        for axis in chosen_values:
            if without := [task.name for task in tasks if axis not in task.spec.axes]:
                remedy = f"; {_known_axes(axis, tasks)}" if len(without) == len(tasks) else ""
                leave_out(
                    f"axis {axis!r} is left out for {_some(without)}: no such axis there{remedy}"
                )
    return [
        task_plan(
            task,
            lengths=_read_lengths(lengths),
            samples=samples,
            axes=chosen_values,
            spread=spread,
            seed=seed,
            preset=preset,
            adaptive=adaptive,
        )
        for task in tasks
    ]


def task_plan(
    task: Task,
    *,
    lengths: Sequence[int] | None,
    samples: int | None,
    axes: Mapping[str, Sequence[str]],
    spread: str | None,
    seed: int,
    preset: str | None,
    adaptive: bool,
) -> Plan:
    """The plan of one task: the most samples that a run of it may ask.

    An adaptive run asks up to `MOST_SAMPLES` samples of a line, unless `samples` is given. Its
    `lengths` become bands, unless `spread` is given or the task has ready items.

    Raises:
        UsageError: a value that no run can have.
    """
    wanted = read_spread(spread)
    if adaptive:
        samples = MOST_SAMPLES if samples is None else samples
        if lengths and task.spec.items is None:
            wanted = wanted or "bands"
    planned = plan(
        task,
        lengths=lengths,
        samples=samples,
        axes=axes,
        spread=wanted,
        seed=seed,
        preset=preset,
    )
    check_lengths(planned)
    return planned


def _some(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    others = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {others} more" if others > 0 else "")


def _with_preset(
    tasks: Sequence[Task], preset: str, names: str, notify: Callable[[str], None] | None
) -> list[Task]:
    """The tasks that have the preset; raises `UsageError` if none has it."""
    having = [task for task in tasks if preset in task.spec.presets]
    if not having:
        known = sorted({name for task in tasks for name in task.spec.presets})
        raise UsageError(f"no preset {preset!r} in {names!r}; {did_you_mean(preset, known)}")
    others = [task.name for task in tasks if task not in having]
    if others and notify is not None:
        notify(f"left out, as they have no preset {preset!r}: {', '.join(others)}")
    return having


def check_axes(axes: Iterable[str], tasks: Sequence[Task], names: str) -> None:
    """Raises `UsageError` for an axis that no task has; `names` is the value of `--task`."""
    for axis in axes:
        if not any(axis in task.spec.axes for task in tasks):
            remedy = _known_axes(axis, tasks)
            raise UsageError(f"no axis {axis!r} in {names!r}; {remedy}", option="axis")


def _known_axes(given: str, tasks: Sequence[Task]) -> str:
    """The axis that was probably meant, or else all axes of the tasks."""
    known = sorted({axis for task in tasks for axis in task.spec.axes})
    return did_you_mean(given, known)


def check_lengths(planned: Plan) -> None:
    """Raises `TaskError` for a length that the task cannot make."""
    for condition, line in planned.sizes:
        for length in sorted({line.low, line.length, line.high}):
            make_sample(planned.task, condition, Line.exact(length), 0, planned.seed)


_COMPARED = 3
"""Number of samples that are compared to find cells whose rows are all equal."""


def system_prompt(planned: Sequence[Plan], given: str | None) -> str | None:
    """The system prompt of a command: `given`, or else that of its tasks.

    Raises:
        UsageError: the tasks have different system prompts, and a command opens its model with one.
    """
    if given is not None:
        return given
    by_prompt = {plan.task.spec.system: plan.task.name for plan in planned}
    if len(by_prompt) > 1:
        first, second, *_ = by_prompt.values()
        raise UsageError(
            f"tasks {first!r} and {second!r} have different system prompts; run them apart, or "
            "give all the same with --system"
        )
    return next(iter(by_prompt), None)


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
                "--spread bands varies the length"
                if not all(band.is_exact for band in bands)
                else "--lengths that are farther apart vary the length with --spread bands"
                if len(bands) > 1
                else "two or more --lengths with --spread bands vary the length"
            )
            return (
                f"{task.name}: at an exact length all rows are equal, so samples differ in nothing "
                f"but their labels; {remedy}"
            )
    return None


def read_spread(given: str | None) -> Spread | None:
    known: tuple[Spread, ...] = get_args(Spread)
    for spread in known:
        if given == spread:
            return spread
    if given is None:
        return None
    raise UsageError(f"--spread must be 'fifth', 'bands' or 'none', not {given!r}")


def precision_text(precision: float) -> str:
    """`0.75 octaves`, `1 octave`."""
    return f"{precision:g} octave{'s' * (precision != 1)}"


def read_precision(given: float | None) -> float:
    """The value of `--precision`, in octaves."""
    if given is None:
        return PRECISION
    if problem := BOUNDS["precision"].problem(given):
        raise UsageError(f"--precision {problem}")
    return given


def _read_lengths(given: str | None) -> list[int] | None:
    if given is None:
        return None
    bound = BOUNDS["lengths"]
    lengths = []
    for part in map(str.strip, given.split(",")):
        length = read_whole(part)
        if length is None or not bound.allows(length):
            demand = bound.demand.replace("a whole number", "whole numbers")
            raise UsageError(f"--lengths {demand}, with commas between, not {shown(part)}")
        lengths.append(length)
    return lengths


def read_axes(options: Sequence[str]) -> dict[str, list[str]]:
    """Axis -> values, from the options `--axis AXIS=VALUE[,VALUE]`."""
    axes: dict[str, list[str]] = {}
    for option in options:
        axis, equals, values = option.partition("=")
        names = [name.strip() for name in values.split(",") if name.strip()]
        if not equals or not names:
            raise UsageError(f"--axis wants AXIS=VALUE[,VALUE] or AXIS=all, not {option!r}")
        axes.setdefault(axis.strip(), []).extend(names)
    return axes
