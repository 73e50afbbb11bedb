"""What the tiny model learns from: prompts of the built-in tasks with the reply a careful pupil
would write.

The rows come from streams of their own, not from any run's seed; but short fixed rows are few, and
many of a run's shortest prompts are drawn here too.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from harness.library import Task, built_in_files, open_task
from harness.spec import Condition, Item

GROUP = 5
USUAL = 0.5
"""How often an axis keeps to its default values, which everybody runs."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the rows of one part of the training are about."""

    tasks: Mapping[str, float]
    """Task -> its share; `separators/ones_314` is `counting/ones` in other words."""
    strategies: Mapping[str, float]
    """Share of the batches by strategy, so that long replies share a batch with their like."""
    longest_sentence: int = 1_000
    """Words in the longest sentence."""
    walk: bool = False
    """Step by step through a sentence is word by word, not just each word that counts: a lesson in
    telling them apart."""


FIRST = Stage(
    tasks={
        "copying/first_last": 3.5,
        "copying/repeated_words": 1,
        "counting/sum": 2,
        "counting/ones": 3,
        "counting/bernoulli": 6,
        "counting/words": 6,
        "separators/two_symbols": 1.5,
        "separators/letters": 1.5,
    },
    strategies={"direct": 8, "cot_zero_shot": 0.8, "cot_few_shot": 0.4},
)
SECOND = Stage(
    tasks={
        "copying/first_last": 2,
        "copying/repeated_words": 0.5,
        "counting/sum": 1,
        "counting/ones": 2,
        "counting/bernoulli": 9,
        "counting/words": 8,
        "separators/two_symbols": 2,
        "separators/letters": 1,
    },
    strategies=FIRST.strategies,
)
THIRD = Stage(
    tasks={
        "copying/first_last": 2,
        "copying/repeated_words": 0.3,
        "counting/sum": 1.5,
        "counting/ones": 3,
        "counting/bernoulli": 8,
        "counting/words": 12,
        "separators/two_symbols": 1.5,
        "separators/letters": 1,
    },
    strategies={"direct": 6, "cot_zero_shot": 2.5, "cot_few_shot": 0.3},
    longest_sentence=20,
    walk=True,
)
FOURTH = Stage(
    tasks={**THIRD.tasks, "counting/bernoulli": 6, "counting/words": 18},
    strategies={"direct": 5, "cot_zero_shot": 4, "cot_few_shot": 0.2},
    longest_sentence=14,
    walk=True,
)


@dataclass(frozen=True, slots=True)
class Example:
    """One exchange to learn."""

    task: str
    prompt: str
    reply: str


@cache
def tasks() -> dict[str, Task]:
    """The built-in tasks, opened once."""
    return {name: open_task(name, path) for name, path in built_in_files().items()}


def batch(rng: random.Random, rows: int, longest: int, stage: Stage = FIRST) -> list[Example]:
    """`rows` examples of one strategy and of similar length, none above `longest` symbols."""
    strategy = _weighted(rng, stage.strategies)
    top = rng.randint(1, rng.choice((longest, longest, min(longest, 24))))
    bottom = max(1, (top * 3) // 4)
    names = stage.tasks
    if strategy != "direct":
        names = {name: weight for name, weight in names.items() if _reasons(name)}
    drawn = []
    for _ in range(rows):
        name, length = _weighted(rng, names), rng.randint(bottom, top)
        most = stage.longest_sentence if name == "counting/words" else longest
        drawn.append(example(rng, name, min(length, most), strategy, walk=stage.walk))
    return drawn


def example(
    rng: random.Random, name: str, length: int, strategy: str | None = None, *, walk: bool = False
) -> Example:
    """One example of task `name` under a condition drawn at random."""
    task = tasks()[name]
    condition = {}
    for axis, known in task.spec.axes.items():
        values = list(known.values)
        if axis == "strategy" and strategy is not None:
            close = "supervised_cot" if strategy == "cot_few_shot" else "direct"
            condition[axis] = strategy if strategy in values else close
        else:
            usual = rng.random() < USUAL
            condition[axis] = rng.choice(known.default if usual else values)
    return example_of(rng, task, condition, length, walk=walk)


def example_of(
    rng: random.Random, task: Task, condition: Condition, length: int, *, walk: bool = False
) -> Example:
    """One example under the given condition."""
    if task.name == "counting/words":
        length = max(length, 2)
    item = task.draw(rng, condition, length, 0)
    phrase = task.spec.answer.phrase
    worked = reasoning(task.name, condition, item, walk=walk)
    return Example(
        task.name,
        task.prompt(item, condition, length),
        f"{worked}\n{phrase} {item.target}" if worked else f"{phrase} {item.target}",
    )


def reasoning(name: str, condition: Condition, item: Item, *, walk: bool = False) -> str:
    """The work before the answer, written as the few-shot examples write it; empty for direct."""
    strategy = condition.get("strategy", "direct")
    if strategy == "direct":
        return ""
    if walk and name == "counting/words" and strategy == "cot_zero_shot":
        return f"Count: {_walk(item)}."
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
    counted = str(condition.get("letter", "1"))
    return f"{', '.join(_running(item.symbols, GROUP, counted, ' makes'))}."


def _walk(item: Item) -> str:
    """The sentence once more, with the count so far behind each word that is counted."""
    met, written = 0, []
    for word in item.symbols:
        counted = word.strip(", ") == item.variables["word"]
        met += counted
        written.append(f"{word} {met}" if counted else word)
    return "".join(written)


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
