"""Training examples of the tiny model: prompts of built-in tasks with correct replies.

Their random numbers are not those of any run.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from eyechart import Item, Task, load_task
from eyechart.harness.spec import Condition

GROUP = 5
"""Symbols in a group of worked-out counting."""
USUAL = 0.5
"""Share of examples in which an axis has one of its default values, which runs have most."""


TASKS = {
    "copying/first_last": 3,
    "copying/repeated_words": 0.7,
    "counting/sum": 2,
    "counting/ones": 3,
    "counting/bernoulli": 6,
    "counting/words": 8,
    "separators/two_symbols": 1.5,
    "separators/letters": 1.5,
}
"""Task -> weight of its share of the examples. `separators/ones_314` is left out: it is the same as
`counting/ones` in other words."""
KNOWN = (*TASKS, "separators/ones_314")
"""The tasks whose words are in the vocabulary; the model is not made for others."""
LATER = {"order": "question_first", "pair": "drawn", "share": "half"}
"""Axes that the tasks did not have when the model was trained, each with its only value there."""
STRATEGIES = {"direct": 8, "cot_zero_shot": 1, "cot_few_shot": 0.4}
"""Strategy -> weight of its share of the batches. A batch has one strategy, so that its replies
have similar lengths."""


class Mark(NamedTuple):
    """The state of counting at one symbol of the row."""

    place: int
    """Index in the prompt of the symbol's last character."""
    counted: bool
    """Whether the symbol is counted."""
    so_far: int
    """Number of counted symbols up to this one, including it."""


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt with its correct reply."""

    task: str
    prompt: str
    reply: str
    marks: tuple[Mark, ...]
    """One mark for each symbol of the row, in order; empty for tasks without counting."""


@cache
def tasks() -> dict[str, Task]:
    """The known tasks by name, opened on the first call."""
    return {name: load_task(name) for name in sorted(KNOWN)}


def batch(rng: random.Random, rows: int, longest: int) -> list[Example]:
    """`rows` examples with the same strategy and similar lengths, of at most `longest` symbols."""
    strategy = _weighted(rng, STRATEGIES)
    top = rng.randint(1, rng.choice((longest, longest, min(longest, 24))))
    bottom = max(1, (top * 3) // 4)
    names: Mapping[str, float] = TASKS
    if strategy != "direct":
        names = {name: share for name, share in TASKS.items() if _reasons(name)}
    return [
        example(rng, _weighted(rng, names), rng.randint(bottom, top), strategy) for _ in range(rows)
    ]


def example(rng: random.Random, name: str, length: int, strategy: str) -> Example:
    """One example of task `name`, with a random condition apart from the given strategy."""
    task = tasks()[name]
    values_drawn = {}
    for axis, known in task.spec.axes.items():
        values = list(known.values)
        if axis == "strategy":
            nearest = "supervised_cot" if strategy == "cot_few_shot" else "direct"
            values_drawn[axis] = strategy if strategy in values else nearest
        elif axis in LATER:
            values_drawn[axis] = LATER[axis]
        else:
            usual = rng.random() < USUAL
            values_drawn[axis] = rng.choice(known.default if usual else values)
    return example_of(rng, task, Condition(values_drawn), length)


def example_of(rng: random.Random, task: Task, condition: Condition, length: int) -> Example:
    """One example under the given condition."""
    if task.name == "counting/words":
        length = max(length, 2)
    item = task.draw(rng, condition, length, 0)
    prompt, phrase = task.prompt(item, condition, length), task.spec.answer.first_phrase
    work = reasoning(task.name, condition, item)
    reply = f"{work}\n{phrase} {item.target}" if work else f"{phrase} {item.target}"
    marks = () if task.name.startswith("copying/") else _marks(prompt, condition, item)
    return Example(task.name, prompt, reply, marks)


def _marks(prompt: str, condition: Condition, item: Item) -> tuple[Mark, ...]:
    """The marks of a prompt, whose row is searched from the end: it comes last.

    Raises:
        ValueError: the row has other counted symbols than the target says.
    """
    sought = str(item.variables.get("word") or _counted(condition, item))
    place, so_far, marks = len(prompt), int(str(item.target)), []
    for symbol in reversed(item.symbols):
        bare = symbol.strip(", ")
        place = prompt.rindex(bare, 0, place)
        counted = bare == sought
        marks.append(Mark(place + len(bare) - 1, counted, so_far))
        so_far -= counted
    if so_far:
        msg = f"{so_far} of {item.target} counted symbols are missing in {prompt!r}"
        raise ValueError(msg)
    return tuple(reversed(marks))


def _counted(condition: Condition, item: Item) -> str:
    return str(condition.get("letter") or ("y" if {"x", "y"} & set(item.symbols) else "1"))


def reasoning(name: str, condition: Condition, item: Item) -> str:
    """The reasoning before the answer, in the form of the few-shot examples; empty for direct."""
    strategy = condition.get("strategy", "direct")
    if strategy == "direct":
        return ""
    if name == "counting/words":
        word = item.variables["word"]
        counts = [f" {word} {number + 1}" for number in range(int(str(item.target)))]
        return f"Count:{','.join(counts) or ' none'}."
    if strategy == "supervised_cot":
        return f"{', '.join(_running(item.symbols, 1, str(condition['letter'])))}."
    if name in ("counting/sum", "counting/ones"):
        groups, rest = divmod(len(item.symbols), GROUP)
        noun = "group" if groups == 1 else "groups"
        grouped = " ".join("".join(group) for group in _groups(item.symbols, GROUP))
        total = f"{groups} * {GROUP} + {rest} = {item.target}"
        return f"{grouped} is {groups} {noun} of five and {rest} more, {total}."
    return f"{', '.join(_running(item.symbols, GROUP, _counted(condition, item), ' makes'))}."


def _reasons(name: str) -> bool:
    """Whether the task has strategies other than direct."""
    return "strategy" in tasks()[name].spec.axes


def _running(symbols: Sequence[str], size: int, counted: str, verb: str = "") -> list[str]:
    """Each group of `size` symbols with the count of `counted` up to its end."""
    total, steps = 0, []
    for group in _groups(symbols, size):
        total += list(group).count(counted)
        steps.append(f"{''.join(group)}{verb} {total}")
    return steps


def _groups(symbols: Sequence[str], size: int) -> list[Sequence[str]]:
    return [symbols[start : start + size] for start in range(0, len(symbols), size)]


def _weighted(rng: random.Random, weights: Mapping[str, float]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]
