"""The examples of a training: prompts of the study's tasks with their right replies, as tokens.

They are drawn once for each seed of training, and every variant is trained on the same ones in the
same order. Their random numbers are not those of any row that is asked.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from eyechart.harness.errors import JournalError
from eyechart.harness.journal import replacing
from eyechart.harness.plan import Plan
from eyechart.harness.spec import Condition, Item
from eyechart.providers.in_process.model_files import one_line
from eyechart_lab.variants.choices import ExtraTokens, Memory
from eyechart_lab.variants.mechanism import Mechanism
from eyechart_lab.variants.study import Training
from eyechart_lab.variants.tokens import EOS, opened

if TYPE_CHECKING:
    from tokenizers import Tokenizer

IGNORED = -100
"""The label of a token without a loss, as in PyTorch."""
_DTYPE = np.uint16
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TrainingTask:
    """A task of which examples are drawn."""

    plan: Plan
    share: float
    """Weight of its share of the examples."""
    shortest: int
    longest: int
    """Symbols of the shortest and the longest row."""


def drawn(
    rng: random.Random, learnt: Sequence[TrainingTask], weights: Sequence[float], grown: float
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
    return task.prompt(item, condition, length), f"{answer.first_phrase} {answer_of(item)}"


def answer_of(item: Item) -> str:
    """The right answer of an item as a reply has it."""
    target = item.target
    return str(target) if isinstance(target, str | int | float) else ", ".join(map(str, target))


class ExampleBatch(NamedTuple):
    """Examples as they are trained on, arrays or tensors: rows of one width, padded on the right.

    Letters in shape comments: B rows, T tokens of the longest row, R of the longest reply.
    """

    ids: Any
    """(B, T): the tokens."""
    places: Any
    """(B, R): the places in a row whose next token is one of the reply; 0 behind a shorter one."""
    wanted: Any
    """(B, R): those next tokens; `IGNORED` behind a shorter reply."""


@dataclass(frozen=True)
class Examples:
    """The tokens of all examples of a seed."""

    ids: npt.NDArray[np.uint16]
    """The tokens of all prompts and replies, one after the other."""
    ends: Integers
    """Where each example ends in `ids`."""
    replies: Integers
    """Tokens of each reply, with the one that ends it."""
    training: Training

    @cached_property
    def sizes(self) -> Integers:
        """Tokens of each example."""
        return np.diff(self.ends, prepend=0)

    @cached_property
    def _first_whole(self) -> int:
        """The first step at which rows are as long as they get."""
        drawn = self.training.drawn_steps
        return min(int(self.training.growth * drawn), drawn - 1)

    def first(self, step: int) -> int:
        """The number of the first example of a step."""
        drawn = self.training.drawn_steps
        if step >= drawn:
            step = self._first_whole + (step - drawn) % (drawn - self._first_whole)
        return step * self.training.rows

    def with_tokens(self, tokens: Mechanism, ids: Sequence[int]) -> Examples:
        """The examples with the extra `tokens` of a variant, which have these `ids`: memory behind
        the token that begins a text, pauses before the reply.
        """
        if not isinstance(tokens, ExtraTokens):
            return self
        starts = self.ends - self.sizes
        where = starts + 1 if isinstance(tokens, Memory) else self.ends - self.replies
        more = np.tile(np.array(ids, _DTYPE), len(where))
        return Examples(
            np.insert(self.ids, np.repeat(where, len(ids)), more),
            self.ends + len(ids) * np.arange(1, len(where) + 1),
            self.replies,
            self.training,
        )

    def batch(self, step: int) -> ExampleBatch:
        """The examples of a step."""
        first = self.first(step)
        return self.between(first, first + self.training.rows)

    def between(self, first: int, end: int) -> ExampleBatch:
        """The examples from number `first` to before number `end`."""
        sizes, replies = self.sizes[first:end, None], self.replies[first:end, None]
        ids = np.full((end - first, sizes.max()), EOS, np.int64)
        begin = int(self.ends[first - 1]) if first else 0
        ids[np.arange(ids.shape[1]) < sizes] = self.ids[begin : int(self.ends[end - 1])]
        order = np.arange(replies.max())
        places = np.where(order < replies, sizes - replies - 1 + order, 0)
        following = np.take_along_axis(ids, places + 1, axis=1)
        return ExampleBatch(ids, places, np.where(order < replies, following, IGNORED))


def make_examples(
    path: Path, learnt: Sequence[TrainingTask], tokenizer: Tokenizer, training: Training, seed: int
) -> None:
    """Draws the examples of a seed into the file `path`, whole or not at all."""
    weights = [one.share for one in learnt]
    ids: list[npt.NDArray[np.uint16]] = []
    sizes: list[int] = []
    replies: list[int] = []
    for step in range(training.drawn_steps):
        rng = random.Random(f"lab|{seed}|{step}")
        grown = training.grown(step)
        texts = [drawn(rng, learnt, weights, grown) for _ in range(training.rows)]
        prompts = tokenizer.encode_batch_fast([opened(prompt) for prompt, _ in texts])
        answers = tokenizer.encode_batch_fast([f"{reply}<eos>" for _, reply in texts])
        for prompt, answer in zip(prompts, answers, strict=True):
            ids.append(np.array([*prompt.ids, *answer.ids], _DTYPE))
            sizes.append(len(ids[-1]))
            replies.append(len(answer.ids))
    with replacing(path, durable=True) as file:
        np.savez(
            file,
            ids=np.concatenate(ids),
            ends=np.cumsum(sizes, dtype=np.int64),
            replies=np.array(replies, np.int64),
        )


def read_examples(path: Path, training: Training) -> Examples:
    """The examples in a file of `make_examples`.

    Raises:
        JournalError: it is none, or is damaged.
    """
    try:
        with np.load(path) as file:
            return Examples(file["ids"], file["ends"], file["replies"], training)
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
        raise JournalError(
            f"{path} cannot be read as examples: {one_line(error)}; remove it, and the same "
            "command draws them again"
        ) from error
