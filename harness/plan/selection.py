"""What a command names: tasks, lengths, axes, and the plans that follow from them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import product

from harness.errors import TaskFileError, UsageError
from harness.plan.plan import Plan, plan
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
    asked: str, *, lengths: str | None, samples: int | None, axes: Sequence[str], seed: int
) -> list[Plan]:
    """A plan for each task that `asked` names."""
    tasks = open_tasks(asked)
    wanted = read_axes(axes)
    known = {axis for task in tasks for axis in task.spec.axes}
    for axis in wanted:
        if axis not in known:
            close = difflib.get_close_matches(axis, known, n=1)
            guess = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"
            raise UsageError(f"no axis {axis!r} in {asked!r}; {guess}")
    chosen = [
        plan(task, lengths=_read_lengths(lengths), samples=samples, axes=wanted, seed=seed)
        for task in tasks
    ]
    for planned in chosen:
        for condition, length in product(planned.conditions, planned.lengths):
            planned.sample(condition, length, 0)  # raises for a length that the task cannot make
    return chosen


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
