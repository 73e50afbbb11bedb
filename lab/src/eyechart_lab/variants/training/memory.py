"""Whether the longest rows of a study can be trained and asked, before anything is trained."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eyechart.harness.plan import Plan
from eyechart.providers.in_process.free_memory import GIB, free_bytes
from eyechart_lab.variants.choices import (
    ExtraTokens,
    GatedHeads,
    Learned,
    Randomised,
    Relative,
    check_size,
)
from eyechart_lab.variants.reading import Lab
from eyechart_lab.variants.tokens import opened
from eyechart_lab.variants.training.worker import CPU, Slot
from eyechart_lab.variants.variant import Variant, encoding_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BYTES = 4
"""Of a number in float32."""
_KEPT_OF_SCORES = 3
"""Matrices of scores of a layer that a step keeps: scores, weights, and their gradient."""
_KEPT_OF_WEIGHTS = 4
"""Numbers that a training keeps for each weight: itself, its gradient, and two of AdamW."""
_REPLY = 12
"""Tokens of a reply: its phrase, its answer and its end, about."""
_KEPT_OF_STATES = 24
"""Numbers that a step keeps for each token, layer and unit of width, about."""


def weights(variant: Variant) -> int:
    """Numbers in the weights of all layers, about; the embeddings of our few tokens are small."""
    inner = variant.inner or 8 * variant.width // 3
    maps = (
        4 + isinstance(variant.gate, GatedHeads) + (encoding_of(variant.positions) == Relative.name)
    )
    return variant.layers * variant.width * (maps * variant.width + 3 * inner)


def training_bytes(variant: Variant, rows: int, tokens: int) -> int:
    """Bytes that a step of training keeps, about."""
    scores = _KEPT_OF_SCORES * variant.heads * tokens
    states = _KEPT_OF_STATES * variant.width
    kept = variant.layers * rows * tokens * (scores + states)
    return _BYTES * (kept + _KEPT_OF_WEIGHTS * weights(variant))


def asking_bytes(variant: Variant, tokens: int) -> int:
    """Bytes that one prompt takes when it is asked, about: the weights, the scores of one layer,
    and the keys and values of all.
    """
    scores = 2 * variant.heads * tokens * tokens
    states = 2 * variant.layers * variant.width * tokens
    return _BYTES * (weights(variant) + scores + states)


def longest_tokens(lab: Lab, tokenizer: Tokenizer) -> int:
    """Tokens of the longest prompt of a training, about."""
    return max(max(_tokens(one.plan, tokenizer, one.longest)) for one in lab.learnt)


def check_positions(lab: Lab, tokenizer: Tokenizer) -> None:
    """Raises `StudyFileError` at the place of positions that are too few for the texts."""
    tokens = longest_tokens(lab, tokenizer) + _REPLY
    for name, variant in lab.spec.variants.items():
        if isinstance(variant.positions, Learned | Randomised):
            more = variant.tokens.count if isinstance(variant.tokens, ExtraTokens) else 0
            try:
                check_size(variant.positions, tokens + more)
            except ValueError as error:
                raise lab.error_at(["variants", name, "positions"], str(error)) from None


def check_memory(lab: Lab, tokenizer: Tokenizer, places: Sequence[Slot]) -> None:
    """Raises `StudyFileError` at the place of lengths that do not fit into the free memory, where
    models are trained on a CPU.
    """
    free = free_bytes()
    if free is None or any(slot.device != CPU for slot in places):
        return
    for path, what, needed in _needs(lab, tokenizer, len(places)):
        if needed > free:
            raise lab.error_at(
                path,
                f"{path[-1]}: {what} takes about {needed / GIB:,.1f} GiB, and "
                f"{free / GIB:.1f} GiB are free; take shorter rows, fewer of them or a smaller "
                "model",
            )


def _needs(lab: Lab, tokenizer: Tokenizer, jobs: int) -> Iterator[tuple[list[str | int], str, int]]:
    """Path in the file, what needs memory, and how much."""
    variants = lab.spec.variants.values()
    rows = lab.spec.training.rows
    for number, (task, learnt) in enumerate(zip(lab.spec.tasks, lab.learnt, strict=True)):
        longest = learnt.longest
        tokens = max(_tokens(learnt.plan, tokenizer, longest))
        needed = max(training_bytes(one, rows, tokens) for one in variants)
        what = f"a step of {rows} rows of {longest:,} symbols"
        yield ["tasks", number, "trained"], f"{what}, in {jobs} jobs,", jobs * needed
        asked = learnt.plan.lines[-1].high
        tokens = max(_tokens(learnt.plan, tokenizer, asked))
        key = "lengths" if "lengths" in task.settings else "task"
        what = f"a row of {asked:,} symbols"
        yield ["tasks", number, key], what, max(asking_bytes(one, tokens) for one in variants)


def _tokens(plan: Plan, tokenizer: Tokenizer, length: int) -> Iterator[int]:
    """The tokens of a prompt of so many symbols, under each condition."""
    for condition in plan.conditions:
        item = plan.task.draw(random.Random("memory"), condition, length, 0)
        prompt = plan.task.prompt(item, condition, length)
        yield len(tokenizer.encode(opened(prompt)).ids)
