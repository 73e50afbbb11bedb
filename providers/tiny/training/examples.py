"""What the tiny model learns from: prompts of the built-in tasks with the reply a careful pupil
would write.

The rows come from streams of their own, not from any run's seed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from harness.spec import Condition, Item
from harness.task.catalogue import Task, built_in_files, open_task

GROUP = 5
USUAL = 0.5
"""How often an axis keeps to its default values, which everybody runs."""


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
"""Task -> its share; `separators/ones_314` is `counting/ones` in other words."""
STRATEGIES = {"direct": 8, "cot_zero_shot": 1, "cot_few_shot": 0.4}
"""Share of the batches by strategy, so that long replies share a batch with their like."""


class Mark(NamedTuple):
    """What a reader who counts knows at one symbol."""

    place: int
    """Where in the prompt the symbol's last character stands."""
    counted: bool
    """Whether it is one of those to count."""
    so_far: int
    """How many of those there were up to here."""


@dataclass(frozen=True, slots=True)
class Example:
    """One exchange to learn."""

    task: str
    prompt: str
    reply: str
    marks: tuple[Mark, ...]
    """One a symbol of a row that is counted, in order; none where nothing is counted."""


@cache
def tasks() -> dict[str, Task]:
    """The built-in tasks, opened once."""
    return {name: open_task(name, path) for name, path in built_in_files().items()}


def batch(rng: random.Random, rows: int, longest: int) -> list[Example]:
    """`rows` examples of one strategy and of similar length, none above `longest` symbols."""
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
    """One example of task `name` under a condition drawn at random but for its strategy."""
    task = tasks()[name]
    values_drawn = {}
    for axis, known in task.spec.axes.items():
        values = list(known.values)
        if axis == "strategy":
            close = "supervised_cot" if strategy == "cot_few_shot" else "direct"
            values_drawn[axis] = strategy if strategy in values else close
        else:
            usual = rng.random() < USUAL
            values_drawn[axis] = rng.choice(known.default if usual else values)
    return example_of(rng, task, Condition(values_drawn), length)


def example_of(rng: random.Random, task: Task, condition: Condition, length: int) -> Example:
    """One example under the given condition."""
    if task.name == "counting/words":
        length = max(length, 2)
    item = task.draw(rng, condition, length, 0)
    prompt, phrase = task.prompt(item, condition, length), task.spec.answer.phrase
    worked = reasoning(task.name, condition, item)
    reply = f"{worked}\n{phrase} {item.target}" if worked else f"{phrase} {item.target}"
    marks = () if task.name.startswith("copying/") else _marks(prompt, condition, item)
    return Example(task.name, prompt, reply, marks)


def _marks(prompt: str, condition: Condition, item: Item) -> tuple[Mark, ...]:
    """The row is the last thing of each prompt, so it is found from the end."""
    sought = str(item.variables.get("word") or _counted(condition, item))
    place, so_far, marks = len(prompt), int(item.target), []
    for symbol in reversed(item.symbols):
        bare = symbol.strip(", ")
        place = prompt.rindex(bare, 0, place)
        counted = bare == sought
        marks.append(Mark(place + len(bare) - 1, counted, so_far))
        so_far -= counted
    if so_far:
        msg = f"{so_far} of {item.target} are missing in {prompt!r}"
        raise ValueError(msg)
    return tuple(reversed(marks))


def _counted(condition: Condition, item: Item) -> str:
    return str(condition.get("letter") or ("y" if {"x", "y"} & set(item.symbols) else "1"))


def reasoning(name: str, condition: Condition, item: Item) -> str:
    """The work before the answer, written as the few-shot examples write it; empty for direct."""
    strategy = condition.get("strategy", "direct")
    if strategy == "direct":
        return ""
    if name == "counting/words":
        word = item.variables["word"]
        met = [f" {word} {number + 1}" for number in range(int(item.target))]
        return f"Count:{','.join(met) or ' none'}."
    if strategy == "supervised_cot":
        return f"{', '.join(_running(item.symbols, 1, str(condition['letter'])))}."
    if name in ("counting/sum", "counting/ones"):
        groups, left = divmod(len(item.symbols), GROUP)
        noun = "group" if groups == 1 else "groups"
        written = " ".join("".join(group) for group in _groups(item.symbols, GROUP))
        total = f"{groups} * {GROUP} + {left} = {item.target}"
        return f"{written} is {groups} {noun} of five and {left} more, {total}."
    return f"{', '.join(_running(item.symbols, GROUP, _counted(condition, item), ' makes'))}."


def _reasons(name: str) -> bool:
    return "strategy" in tasks()[name].spec.axes


def _running(symbols: Sequence[str], size: int, counted: str, verb: str = "") -> list[str]:
    total, written = 0, []
    for group in _groups(symbols, size):
        total += list(group).count(counted)
        written.append(f"{''.join(group)}{verb} {total}")
    return written


def _groups(symbols: Sequence[str], size: int) -> list[Sequence[str]]:
    return [symbols[start : start + size] for start in range(0, len(symbols), size)]


def _weighted(rng: random.Random, weights: Mapping[str, float]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]
