"""The examples of a training: prompts of the study's tasks with their right replies, as tokens.

They are drawn once for each seed of training, and every variant is trained on the same ones in the
same order. Their random numbers are not those of any row that is asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eyechart.harness.journal.files import replacing
from eyechart.harness.plan.plan import Plan
from eyechart.harness.satellites.lab.tokens import EOS, opened
from eyechart.harness.spec import Condition

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MOST = 200_000
"""Examples that are drawn for a seed, at most; a longer training has them again."""
IGNORED = -100
"""The label of a token without a loss, as in PyTorch."""
_DTYPE = np.uint16
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Learnt:
    """A task of which examples are drawn."""

    plan: Plan
    share: float
    """Weight of its share of the examples."""
    shortest: int
    longest: int
    """Symbols of the shortest and the longest row."""


def drawn(
    rng: random.Random, learnt: Sequence[Learnt], weights: Sequence[float], grown: float
) -> tuple[str, str]:
    """The prompt and the right reply of one example. `grown` says how far the longest row has grown
    between the shortest and the longest one: 0 to 1.
    """
    (one,) = rng.choices(learnt, weights)
    longest = round(one.shortest + (one.longest - one.shortest) * grown)
    length = rng.randint(one.shortest, longest)
    condition: Condition = rng.choice(one.plan.conditions)
    task = one.plan.task
    item = task.draw(rng, condition, length, 0)
    answer = task.spec.answer
    target = item.target if isinstance(item.target, str | int | float) else ", ".join(item.target)
    return task.prompt(item, condition, length), f"{answer.phrase} {target}"


@dataclass(frozen=True)
class Recipe:
    """What determines the examples of a training besides its tasks and their tokenizer."""

    rows: int
    """Examples in a step."""
    steps: int
    growth: float
    """Share of the steps in which the longest row grows."""

    @property
    def drawn_steps(self) -> int:
        """Steps whose examples are drawn; those after them take the last ones again."""
        return min(self.steps, max(1, MOST // self.rows))

    def grown(self, step: int) -> float:
        """How far the longest row has grown at a step."""
        until = self.growth * self.drawn_steps
        return min(1.0, (step + 1) / until) if until else 1.0


@dataclass(frozen=True)
class Examples:
    """The tokens of all examples of a seed."""

    ids: npt.NDArray[np.uint16]
    """The tokens of all prompts and replies, one after the other."""
    ends: Integers
    """Where each example ends in `ids`."""
    replies: Integers
    """Tokens of each reply, with the one that ends it."""
    recipe: Recipe

    @cached_property
    def _first_whole(self) -> int:
        """The first step at which rows are as long as they get."""
        return min(int(self.recipe.growth * self.recipe.drawn_steps), self.recipe.drawn_steps - 1)

    def batch(self, step: int) -> tuple[Integers, Integers]:
        """The tokens and the labels of a step, both [B, T] and padded on the right. The label of a
        token is the token itself where it is part of a reply, else `IGNORED`.
        """
        recipe = self.recipe
        if step >= recipe.drawn_steps:
            whole = recipe.drawn_steps - self._first_whole
            step = self._first_whole + (step - recipe.drawn_steps) % whole
        first = step * recipe.rows
        places = range(first, first + recipe.rows)
        starts = [int(self.ends[place - 1]) if place else 0 for place in places]
        ends = [int(self.ends[place]) for place in places]
        widest = max(end - start for start, end in zip(starts, ends, strict=True))
        ids = np.full((recipe.rows, widest), EOS, np.int64)
        labels = np.full((recipe.rows, widest), IGNORED, np.int64)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            tokens = self.ids[start:end]
            ids[row, : end - start] = tokens
            reply = int(self.replies[first + row])
            labels[row, end - start - reply : end - start] = tokens[-reply:]
        return ids, labels


def make_examples(
    path: Path,
    learnt: Sequence[Learnt],
    tokenizer: Tokenizer,
    *,
    recipe: Recipe,
    seed: int,
    tell: Callable[[int, int], None],
) -> None:
    """Draws the examples of a seed into the file `path`, whole or not at all; `tell` gets the steps
    that are drawn and their number.
    """
    weights = [one.share for one in learnt]
    ids: list[npt.NDArray[np.uint16]] = []
    sizes: list[int] = []
    replies: list[int] = []
    for step in range(recipe.drawn_steps):
        rng = random.Random(f"lab|{seed}|{step}")
        grown = recipe.grown(step)
        texts = [drawn(rng, learnt, weights, grown) for _ in range(recipe.rows)]
        prompts = tokenizer.encode_batch_fast([opened(prompt) for prompt, _ in texts])
        answers = tokenizer.encode_batch_fast([f"{reply}<eos>" for _, reply in texts])
        for prompt, answer in zip(prompts, answers, strict=True):
            ids.append(np.array([*prompt.ids, *answer.ids], _DTYPE))
            sizes.append(len(ids[-1]))
            replies.append(len(answer.ids))
        tell(step + 1, recipe.drawn_steps)
    with replacing(path, durable=True) as file:
        np.savez(
            file,
            ids=np.concatenate(ids),
            ends=np.cumsum(sizes, dtype=np.int64),
            replies=np.array(replies, np.int64),
        )


def read_examples(path: Path, recipe: Recipe) -> Examples:
    """The examples in a file of `make_examples`."""
    with np.load(path) as file:
        return Examples(file["ids"], file["ends"], file["replies"], recipe)
