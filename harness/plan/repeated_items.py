"""Finds ready items that ask the same as an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eyechart.harness.plan.plan import plan
from eyechart.harness.spec import FEWEST_DIFFERENT, Line, Sample
from eyechart.harness.task.catalogue import Task

_SHOWN = 5
"""Most lines that are named."""


@dataclass(frozen=True, slots=True)
class RepeatedItems:
    """What the items of a file repeat, under the first default condition of the task."""

    contradictions: Sequence[str]
    """A line for each item that has another right answer than an earlier one to the same prompt."""
    repeats: Sequence[str]
    """A line for each item with the same prompt and right answer as an earlier one."""
    is_much: bool
    """Whether less than `FEWEST_DIFFERENT` of the prompts of a length are different."""


def repeated_items(task: Task) -> RepeatedItems:
    """What is asked twice by a task with ready items."""
    planned = plan(task)
    first: dict[str, tuple[int, Sample]] = {}
    contradictions, repeats = [], []
    prompts: dict[int, list[str]] = {}
    for line, (length, index) in zip(task.item_lines, task.places, strict=True):
        sample = planned.sample(planned.conditions[0], Line.exact(length), index)
        known, earlier = first.setdefault(sample.prompt, (line, sample))
        prompts.setdefault(length, []).append(sample.prompt)
        where = f"{task.path.parent / str(task.spec.items)}:{line}:1: the same prompt as in line"
        if known == line:
            continue
        if _agree(task, sample, earlier) and _agree(task, earlier, sample):
            repeats.append(f"{where} {known}, and the same right answer; leave one out")
        else:
            contradictions.append(
                f"{where} {known}, where the target is {earlier.target!r} and not "
                f"{sample.target!r}; keep one, or give the other as 'accept'"
            )
    is_much = any(len(set(cell)) < FEWEST_DIFFERENT * len(cell) for cell in prompts.values())
    return RepeatedItems(contradictions, repeats, is_much)


def wrong_items(task: Task) -> Iterator[str]:
    """Items that contradict one another, and repeats where they are many."""
    found = repeated_items(task)
    yield from shortened(found.contradictions)
    yield from shortened(found.repeats) if found.is_much else ()


def shortened(lines: Sequence[str]) -> Iterator[str]:
    """The first lines, the last of them with the number of those that are left out."""
    more = len(lines) - _SHOWN
    yield from lines[: _SHOWN - (more > 0)]
    if more > 0:
        yield f"{lines[_SHOWN - 1]} (and {more:,} more such lines)"


def _agree(task: Task, one: Sample, other: Sample) -> bool:
    """Whether the target of one is a right answer of the other."""
    answer = task.spec.answer
    right = {answer.kind.compared(text, answer) for text in (other.target, *other.accept)}
    return answer.kind.compared(one.target, answer) in right
