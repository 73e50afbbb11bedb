"""What is unusual in a task although nothing in it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from operator import ne

from harness.plan.plan import Plan, item_of, plan
from harness.spec import Condition, Item, Separator, write_row
from harness.task import prompt
from harness.task.catalogue import Task

_TRIED = 3
"""Samples of each line that are looked at."""
_ODD = 2
"""Symbols that may differ in nested rows: a task may put an odd one at each row's end or middle."""


def warnings(task: Task) -> Iterator[str]:
    """A line for each finding in the default conditions."""
    planned = plan(task)
    yield from _joined_symbols(planned)
    yield from _rows_not_nested(planned)


def _joined_symbols(planned: Plan) -> Iterator[str]:
    """Conditions that write symbols of several characters without anything between them."""
    task = planned.task
    if "sequence" not in prompt.used_names(task.spec.prompt):
        return
    for condition in planned.conditions:
        item = _item(planned, condition, planned.lines[-1].length, 0)
        long = next((symbol for symbol in item.symbols if len(symbol) > 1), None)
        if long is None or not _is_joined(task, condition, item):
            continue
        yield (
            f"{task.name}: under {condition.label} symbols of several characters, such as "
            f"{long!r}, are written without a separator, so that no reader can tell them apart; "
            "give the axis 'separator' a value for them"
        )


def _is_joined(task: Task, condition: Condition, item: Item) -> bool:
    if len(item.symbols) < 2 or any(  # noqa: PLR2004  a row has neighbours
        symbol != symbol.strip() for symbol in item.symbols
    ):
        return False
    axis = task.spec.axes.get("separator")
    separator = "" if axis is None else axis.values[condition["separator"]]
    if isinstance(separator, Separator) and separator.quote:
        return False
    first, second = item.symbols[:2]
    return f"{first}{second}" in write_row(item.symbols[:2], separator)


def _rows_not_nested(planned: Plan) -> Iterator[str]:
    """A generator whose longer rows do not begin with the shorter row of the same index."""
    task = planned.task
    lengths = [line.length for line in planned.lines]
    if task.spec.items is not None or len(lengths) < 2:  # noqa: PLR2004  a pair
        return
    for condition in planned.conditions:
        for index in range(min(_TRIED, planned.samples)):
            rows = [_item(planned, condition, length, index).symbols for length in lengths]
            for short, long in pairwise(rows):
                if sum(map(ne, short, long)) > _ODD:
                    yield (
                        f"{task.name}: the row of {len(long)} symbols does not begin with the one "
                        f"of {len(short)} (sample {index}, {condition.label}), so lengths are "
                        "compared on different rows; draw the symbols one after the other, and "
                        "anything else before them"
                    )
                    return


def _item(planned: Plan, condition: Condition, length: int, index: int) -> Item:
    return item_of(planned.task, condition, length, index, planned.seed)
