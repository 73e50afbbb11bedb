"""Where the tokens of a pass stand in their rows, and what each may attend to.

Letters in shape comments: B rows (1 where all are alike), S tokens of this pass, T tokens with
those that are kept, D numbers that are turned together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch

Angles: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""(B, S, D) cosines and sines."""
Farther: TypeAlias = tuple[Angles, Angles | None, torch.Tensor]
"""By what queries and keys are turned again, and which pairs of them, (B, 1, S, T)."""


@dataclass(frozen=True, slots=True)
class Move:
    """Pairs of queries and keys that do not stand where their places say."""

    queries: torch.Tensor
    """(B, S): by how many positions queries are farther."""
    keys: torch.Tensor | None
    """(B, T): by how many keys are; `None` if by none."""
    where: torch.Tensor
    """(B, 1, S, T): which pairs these are."""


@dataclass(frozen=True, slots=True)
class RowPositions:
    """Places are counted from 0 in each row, without padding."""

    queries: torch.Tensor
    """(B, S): those of the tokens of this pass."""
    keys: torch.Tensor
    """(B, T)."""
    seen: torch.Tensor
    """(B, 1, S, T): whether each token may attend to each key: to no later one and to no padding.
    What stands for padding attends to itself, so that its numbers stay finite."""
    is_causal: bool
    """Whether nothing but later tokens is hidden, as torch's own attention hides them."""
    is_token: torch.Tensor
    """(B, T): whether each is a token and no padding."""

    @property
    def tokens(self) -> torch.Tensor:
        """(B,): number of tokens of each row."""
        return self.is_token.sum(dim=-1)

    @staticmethod
    def of(count: int, kept: int, mask: torch.Tensor | None, device: torch.device) -> RowPositions:
        """Those of a pass of `count` tokens behind `kept` ones. `mask` (B, T) is 1 for a token and
        0 for padding; `None` for no padding.
        """
        order = torch.arange(kept + count, device=device)
        mine = order[kept:, None]
        seen = (mine >= order)[None, None]
        if mask is None or bool((mask != 0).all()):
            is_causal = kept == 0 or count == 1
            every = torch.ones_like(order, dtype=torch.bool)[None]
            return RowPositions(order[None, kept:], order[None], seen, is_causal, every)
        is_token = mask != 0
        keys = (is_token.cumsum(dim=-1) - 1).clamp(min=0)
        seen = seen & (is_token[:, None, None] | (mine == order))
        return RowPositions(keys[:, kept:], keys, seen, is_causal=False, is_token=is_token)

    @property
    def offsets(self) -> torch.Tensor:
        """(B, S, T): by how many places each key is before each query; 0 if it is behind it."""
        return (self.queries[:, :, None] - self.keys[:, None]).clamp(min=0)
