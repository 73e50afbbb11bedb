"""How many symbols a row has counted after each of its symbols."""

from __future__ import annotations

from eyechart.harness.plan.plan import Plan, item_of
from eyechart.harness.spec import Sample

_ALL, _MORE = 100, 200
"""A row is made again at each of its first lengths, and at this number of evenly spread longer
lengths, since making a row takes time in proportion to its length.
"""


def running_counts(planned: Plan, sample: Sample) -> list[int | None] | None:
    """The right answer for the row cut off after each symbol; `None` in the list for places that
    were not computed. `None` instead of a list if answers are no integers, do not grow with the
    row, or if a shorter row is not the beginning of a longer one.
    """
    task, seed = planned.task, planned.seed
    if task.spec.answer.kind.stored is not int or task.spec.items is not None:
        return None
    whole = item_of(task, sample.condition, sample.length, sample.index, seed)
    step = max(1, -(-(sample.length - _ALL) // _MORE))
    lengths = [*range(1, min(_ALL, sample.length)), *range(_ALL, sample.length + 1, step)]
    counts: list[int | None] = [None] * sample.length
    before = 0
    for length in lengths:
        item = item_of(task, sample.condition, length, sample.index, seed)
        if not isinstance(item.target, int) or item.target < before:
            return None
        if list(item.symbols) != list(whole.symbols[:length]):
            return None
        counts[length - 1] = before = item.target
    return counts
