"""Log-probabilities of the options of prompts. What comes before them is computed once a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from eyechart.providers.hf.computing import CachedBatch, LoadedModel


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """A forced choice as tokens."""

    before: Sequence[int]
    """The tokens before the options."""
    tails: Sequence[Sequence[int]]
    """The tokens of each option."""

    @property
    def longest(self) -> int:
        """Tokens of the longest option."""
        return max(map(len, self.tails))

    @property
    def tokens(self) -> int:
        """Tokens of the longest text."""
        return len(self.before) + self.longest


def score(computing: LoadedModel, choices: Sequence[TokenChoice]) -> list[list[list[float]]]:
    """For each choice the log-probabilities of the tokens of each option, in one batch.

    Memory: keys and values of all options of all choices at once, and their logits.
    """
    with torch.inference_mode():
        logits, batch = computing.begin([choice.before for choice in choices])
        firsts = torch.log_softmax(logits, dim=-1)
        rows = [row for row, choice in enumerate(choices) for _ in choice.tails]
        tails = [tail for choice in choices for tail in choice.tails]
        values = [
            [value]
            for value in firsts[
                torch.tensor(rows, device=firsts.device),
                torch.tensor([tail[0] for tail in tails], device=firsts.device),
            ].tolist()
        ]
        going_on = [place for place, tail in enumerate(tails) if len(tail) > 1]
        if going_on:
            batch.keep([rows[place] for place in going_on])
            more = _after_first(computing, batch, [tails[place] for place in going_on])
            for place, following in zip(going_on, more, strict=True):
                values[place] += following
    found: list[list[list[float]]] = [[] for _ in choices]
    for row, of_tail in zip(rows, values, strict=True):
        found[row].append(of_tail)
    return found


def _after_first(
    computing: LoadedModel, batch: CachedBatch, tails: Sequence[Sequence[int]]
) -> list[list[float]]:
    """The log-probabilities of all tokens but the first of the tails of the batch's rows."""
    width = max(map(len, tails)) - 1
    given = torch.zeros((len(tails), width), dtype=torch.long)
    mask = torch.zeros((len(tails), width), dtype=torch.long)
    following = torch.zeros((len(tails), width), dtype=torch.long)
    for row, tail in enumerate(tails):
        given[row, : len(tail) - 1] = torch.tensor(list(tail[:-1]))
        following[row, : len(tail) - 1] = torch.tensor(list(tail[1:]))
        mask[row, : len(tail) - 1] = 1
    device = computing.device
    logits = batch.go_on(given.to(device), mask.to(device), last=width)
    values: Any = torch.log_softmax(logits, dim=-1).gather(2, following.to(device)[..., None])
    return [row[: len(tail) - 1] for row, tail in zip(values[..., 0].tolist(), tails, strict=True)]
