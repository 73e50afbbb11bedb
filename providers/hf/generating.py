"""Replies of a model of transformers, in batches of rows of similar length.

Each row is drawn from numbers of its own, that the seed and its prompt give. So a reply does not
depend on which other prompts are asked, nor on their order, but for rounding: in a batch of another
shape, logits differ in their last digits, and two tokens as good as each other may change places.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from eyechart.providers.hf.computing import LoadedModel
from eyechart.providers.in_process.halving import StoppedError


@dataclass(slots=True)
class GenerationRequest:
    """A reply to generate."""

    ids: Sequence[int]
    """The tokens of the prompt."""
    room: int
    """Most tokens of the reply."""
    temperature: float
    draw: random.Random
    """Draws the tokens at a temperature above 0."""
    ends: Callable[[Sequence[int]], bool]
    """Whether a reply with these tokens has a text at which it ends."""


@dataclass(slots=True)
class GeneratedTokens:
    """A reply as tokens."""

    ids: list[int] = field(default_factory=list)
    """With the token that ended it."""
    logprobs: list[float] = field(default_factory=list)
    """The natural logarithm of the probability of each token at temperature 1; if asked for."""
    best: list[list[tuple[int, float]]] = field(default_factory=list)
    """For each token the most probable ones there, with theirs; if asked for."""
    finish_reason: Literal["stop", "length"] = "length"


def generate(
    computing: LoadedModel,
    wishes: Sequence[GenerationRequest],
    end_tokens: frozenset[int],
    *,
    logprobs: bool = False,
    most_probable: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, GeneratedTokens]]:
    """Place and reply of each wish, as it ends. `most_probable` tokens go along with each token.

    Raises:
        StoppedError: `should_stop()` is true.
    """
    with torch.inference_mode():
        logits, batch = computing.begin([wish.ids for wish in wishes])
        places = list(range(len(wishes)))
        replies = [GeneratedTokens() for _ in wishes]
        while True:
            if should_stop():
                raise StoppedError
            chosen = _choose(logits, [wishes[place] for place in places])
            if logprobs or most_probable:
                _note(logits, chosen, [replies[place] for place in places], most_probable)
            kept = []
            for row, (place, token) in enumerate(zip(places, chosen, strict=True)):
                wish, reply = wishes[place], replies[place]
                reply.ids.append(token)
                if token in end_tokens or wish.ends(reply.ids):
                    reply.finish_reason = "stop"
                    yield place, reply
                elif len(reply.ids) >= wish.room:
                    yield place, reply
                else:
                    kept.append(row)
            if not kept:
                return
            if len(kept) < len(places):
                places = [places[row] for row in kept]
                batch.keep(kept)
            following = torch.tensor([[replies[place].ids[-1]] for place in places])
            logits = batch.go_on(following.to(computing.device), last=1)[:, -1]


def _choose(logits: Any, wishes: Sequence[GenerationRequest]) -> list[int]:
    """The next token of each row of (B, V) logits: the most probable one, of equal ones the first;
    or one that is drawn.
    """
    chosen: list[int] = logits.argmax(dim=-1).tolist()
    for row, wish in enumerate(wishes):
        if wish.temperature > 0:
            shares = torch.softmax(logits[row].double() / wish.temperature, dim=-1).cumsum(dim=-1)
            drawn = torch.tensor(wish.draw.random() * float(shares[-1]), dtype=torch.float64)
            place = int(torch.searchsorted(shares, drawn.to(shares.device), right=True))
            chosen[row] = min(place, len(shares) - 1)
    return chosen


def _note(
    logits: Any, chosen: Sequence[int], replies: Sequence[GeneratedTokens], most_probable: int
) -> None:
    """Adds the log-probabilities of the chosen tokens of (B, V) logits to the replies."""
    values = torch.log_softmax(logits, dim=-1)
    places = torch.tensor(list(chosen), device=values.device)[:, None]
    for reply, value in zip(replies, values.gather(1, places)[:, 0].tolist(), strict=True):
        reply.logprobs.append(value)
    if most_probable:
        best = values.topk(most_probable, dim=-1)
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        for reply, (tokens, logs) in zip(replies, rows, strict=True):
            reply.best.append(list(zip(tokens, logs, strict=True)))
