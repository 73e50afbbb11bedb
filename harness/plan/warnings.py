"""Warns about what is unusual in a task without being wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from operator import ne

from eyechart.harness.errors import PlanError, TaskError
from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import Plan, item_of, plan
from eyechart.harness.plan.repeated_items import repeated_items, shortened
from eyechart.harness.spec import Condition, Item, Separator, write_row
from eyechart.harness.spec.answer import Target
from eyechart.harness.task import prompt
from eyechart.harness.task.catalogue import Task

_TRIED = 3
"""Samples of each line that are checked."""
_ODD, _MOVED = 2, 1 / 3
"""Symbols that may differ in nested rows: an odd one at the end or the middle, or a share of the
shorter row, as where a count of the whole row is given. Rows of two symbols that were drawn anew
differ in a half.
"""

_TARGETS = 1000
"""Most samples whose targets are checked."""
_DRAWN = 20
"""Least samples of a generator for each condition and line."""
_SHOWN = 40
"""Most characters of a target in a message."""


def warnings(task: Task) -> Iterator[str]:
    """A line for each finding in the default conditions."""
    planned = plan(task)
    yield from _joined_symbols(planned)
    yield from _rows_not_nested(planned)
    yield from _one_target(planned)
    yield from _options_left_out(planned)
    if task.spec.items is not None:
        found = repeated_items(task)
        yield from () if found.is_much else shortened(found.repeats)


def _joined_symbols(planned: Plan) -> Iterator[str]:
    """Warns of conditions that write symbols of several characters without a separator."""
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
    """Warns if a generator's longer rows do not begin with the shorter row of the same index."""
    task = planned.task
    lengths = [line.length for line in planned.lines]
    if task.spec.items is not None or len(lengths) < 2:  # noqa: PLR2004  a pair
        return
    for condition in planned.conditions:
        for index in range(min(_TRIED, planned.samples)):
            rows = [_item(planned, condition, length, index).symbols for length in lengths]
            for short, long in pairwise(rows):
                if sum(map(ne, short, long)) > max(_ODD, _MOVED * len(short)):
                    yield (
                        f"{task.name}: the row of {len(long)} symbols does not begin with the one "
                        f"of {len(short)} (sample {index}, {condition.label}), so lengths are "
                        "compared on different rows; draw the symbols one after the other, and "
                        "anything else before them"
                    )
                    return


def _one_target(planned: Plan) -> Iterator[str]:
    """Warns of a task whose samples all have the same right answer, as in a control."""
    first, looked = None, 0
    for target in islice(_targets(planned), _TARGETS):
        if looked and target != first:
            return
        first, looked = target, looked + 1
    if looked < 2:  # noqa: PLR2004  one sample says nothing
        return
    shown = json.dumps(first, ensure_ascii=False)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    yield (
        f"{planned.task.name}: the target of all {looked:,} samples that were looked at is {shown},"
        " so a model that always says so is always right; let the target depend on the row, unless "
        "that is what the task is for"
    )


def _options_left_out(planned: Plan) -> Iterator[str]:
    """Warns of options that `--read likelihood` does not ask: of the right answer with the fewest,
    or of the first with none.
    """
    task = planned.task
    if not task.spec.answer.options or task.spec.scorer is not None:
        return
    choice = ForcedChoice(task, planned.seed)
    fewest: tuple[int, str] | None = None
    seen = set()
    for sample in islice(planned, _TARGETS):
        right = (sample.target, sample.accept)
        if right in seen:
            continue
        seen.add(right)
        try:
            shortfall, asked = choice.shortfall(sample), len(choice.options(sample))
        except PlanError as error:
            yield f"by likelihood it cannot be read: {error}"
            return
        if shortfall and (fewest is None or asked < fewest[0]):
            text = f"read by likelihood, the target {str(sample.target)!r} is one of {shortfall}"
            fewest = asked, f"{task.name}: {text}"
    if fewest is not None:
        yield fewest[1]


def _targets(planned: Plan) -> Iterator[Target | Sequence[str]]:
    """The right answers of samples.

    A generator also makes samples of another length, since the rows of one length may be equal by
    design, and enough samples that they are not all equal by chance.
    """
    task = planned.task
    is_made = task.spec.items is None
    for condition in planned.conditions:
        for line in planned.lines:
            size = planned.cell_size(condition, line)
            for index in range(max(size, _DRAWN) if is_made else size):
                yield _item(planned, condition, line.length, index).target
        if is_made and len(planned.lines) == 1:
            with suppress(TaskError):
                yield _item(planned, condition, planned.lines[0].length + 1, 0).target


def _item(planned: Plan, condition: Condition, length: int, index: int) -> Item:
    return item_of(planned.task, condition, length, index, planned.seed)
