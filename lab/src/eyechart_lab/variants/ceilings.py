"""How many rows of a line have an answer that the training had.

Beyond the trained lengths a row may need an answer that no training gave, such as a larger count. A
model that never says another answer has no more rows of the line right than this, whatever it
attends to.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from eyechart.harness.spec import Item
from eyechart_lab.variants.training.data import TrainingTask, answer_of

DRAWN = 200
"""Rows of each trained length under each condition whose answers count as those of the training. An
answer that is rarer than one in so many was hardly learned."""
Ceilings: TypeAlias = Mapping[tuple[str, str, int], float]
"""Task, label of a condition and nominal length of a line -> share of its rows, 0 to 1."""


def known_answers(learnt: Sequence[TrainingTask]) -> set[str]:
    """The answers of the trained lengths, of all tasks together: a model that has learned a number
    from one task can say it in another.
    """
    return {
        answer_of(item)
        for one in learnt
        for condition in one.plan.conditions
        for length in range(one.shortest, one.longest + 1)
        for draw in range(DRAWN)
        for item in [
            one.plan.task.draw(random.Random(f"ceiling|{length}|{draw}"), condition, length, 0)
        ]
    }


def ceilings(learnt: Sequence[TrainingTask]) -> Ceilings:
    """The share of the rows of each line that is asked whose right answer is a known one."""
    known = known_answers(learnt)
    rows: dict[tuple[str, str, int], list[bool]] = defaultdict(list)
    for one in learnt:
        for sample in one.plan:
            right = answer_of(Item((), sample.target)), *sample.accept
            place = one.plan.task.name, sample.condition.label, sample.line.length
            rows[place].append(not known.isdisjoint(right))
    return {place: sum(found) / len(found) for place, found in rows.items()}
