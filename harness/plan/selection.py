"""What a command names: tasks, lengths, axes, and the plans that follow from them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import get_args

from harness.errors import TaskFileError, UsageError
from harness.plan.plan import Plan, item_of, make_sample, plan
from harness.spec import Line, Spread
from harness.task.catalogue import Task, find, open_task
from harness.task.prompt import utf8_problem

_MOST_DIGITS = 9


def check_text(option: str, given: str | None) -> None:
    """Raises `UsageError` where `given` is not UTF-8."""
    if given is not None and utf8_problem("", given):
        raise UsageError(f"{option} {given!r} is not UTF-8; write it in UTF-8")


def max_tokens(given: str) -> int | None:
    """`auto` as `None`, else a positive number."""
    if given == "auto":
        return None
    if not given.isdecimal() or len(given) > _MOST_DIGITS or int(given) < 1:
        raise UsageError(f"--max-tokens must be 'auto' or a positive number, not {given!r}")
    return int(given)


def open_tasks(asked: str, *, trial: bool = True) -> list[Task]:
    """The tasks that `asked` names; the mistakes of all their files at once."""
    opened: list[Task] = []
    wrong: list[str] = []
    for name, path in find(asked).items():
        try:
            opened.append(open_task(name, path, trial=trial))
        except TaskFileError as error:
            wrong += error.lines
    if wrong:
        raise UsageError("a task file is wrong", *wrong)
    return opened


def plans(
    asked: str,
    *,
    lengths: str | None,
    spread: str | None,
    samples: int | None,
    axes: Sequence[str],
    seed: int,
) -> list[Plan]:
    """A plan for each task that `asked` names."""
    wanted_spread = read_spread(spread)
    tasks = open_tasks(asked)
    wanted = read_axes(axes)
    known = {axis for task in tasks for axis in task.spec.axes}
    for axis in wanted:
        if axis not in known:
            close = difflib.get_close_matches(axis, known, n=1)
            guess = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"
            raise UsageError(f"no axis {axis!r} in {asked!r}; {guess}")
    chosen = [
        plan(
            task,
            lengths=_read_lengths(lengths),
            samples=samples,
            axes=wanted,
            spread=wanted_spread,
            seed=seed,
        )
        for task in tasks
    ]
    for planned in chosen:
        for condition, line in planned.sizes:
            for length in sorted({line.low, line.length, line.high}):
                # raises for a length that the task cannot make
                make_sample(planned.task, condition, Line.exact(length), 0, seed)
    return chosen


_COMPARED = 3
"""Samples that are compared to find out whether all rows of a cell are equal."""


def repeats(planned: Plan) -> str | None:
    """A warning where all lines are exact and a cell's samples have the same row and target, so
    that they differ in nothing but a label; looked for in the cells with the longest rows.
    """
    task, line = planned.task, planned.lines[-1]
    count = min(_COMPARED, planned.cell_size(line))
    if task.spec.items is not None or count < 2 or not all(one.is_exact for one in planned.lines):  # noqa: PLR2004
        return None
    for condition in planned.conditions:
        items = [
            item_of(task, condition, line.length, index, planned.seed) for index in range(count)
        ]
        if all(
            (item.symbols, item.target) == (items[0].symbols, items[0].target) for item in items
        ):
            remedy = (
                "--spread bands varies the length"
                if len(planned.lines) > 1
                else "two or more --lengths with --spread bands vary the length"
            )
            return (
                f"{task.name}: at an exact length all rows are equal, so samples differ in nothing "
                f"but their labels; {remedy}"
            )
    return None


def read_spread(given: str | None) -> Spread | None:
    """The value of `--spread`."""
    known: tuple[Spread, ...] = get_args(Spread)
    for spread in known:
        if given == spread:
            return spread
    if given is None:
        return None
    raise UsageError(f"--spread must be 'bands' or 'none', not {given!r}")


def _read_lengths(given: str | None) -> list[int] | None:
    if given is None:
        return None
    parts = [part.strip() for part in given.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS and int(part)):
            raise UsageError(f"--lengths wants positive numbers with commas between, not {part!r}")
    return [int(part) for part in parts]


def read_axes(given: Sequence[str]) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for one in given:
        axis, equals, values = one.partition("=")
        names = [name.strip() for name in values.split(",") if name.strip()]
        if not equals or not names:
            raise UsageError(f"--axis wants AXIS=VALUE[,VALUE] or AXIS=all, not {one!r}")
        wanted.setdefault(axis.strip(), []).extend(names)
    return wanted
