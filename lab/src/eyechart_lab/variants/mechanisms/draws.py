"""Positions that are drawn in the training: randomised ones, and those of a text behind random
padding.

Letters in shape comments: B rows, S tokens of this pass, L places or distances.
"""

from __future__ import annotations

import torch

from eyechart_lab.variants.choices import Learned, Randomised, check_size
from eyechart_lab.variants.mechanism import Mechanism

_REPLY = 16
"""Tokens for which randomised positions leave room behind a prompt."""


def are_drawn(positions: Mechanism) -> bool:
    """Whether the training draws positions."""
    is_padded = isinstance(positions, Learned) and positions.random_padding
    return is_padded or isinstance(positions, Randomised)


def drawn_for(positions: Mechanism, tokens: torch.Tensor, count: int, window: int) -> torch.Tensor:
    """(B, count): the positions of rows of `tokens` (B,) tokens in a step of the training, whose
    longest text has `window` tokens; or the distances of 0, 1, … places, where these are drawn.

    Raises:
        ValueError: a row has more tokens than there are positions.
    """
    if not isinstance(positions, Randomised):
        free = (window - tokens).clamp(min=0)
        begin = (torch.rand(len(tokens), device=tokens.device) * (free + 1)).long()
        every = begin[:, None] + torch.arange(count, device=tokens.device)
        return every.clamp(max=window - 1)
    check_size(positions, count)
    if not positions.are_distances:
        return drawn(tokens, count, positions.of)
    beyond = drawn((tokens - 1).clamp(min=0), count - 1, positions.of - 1) + 1
    return torch.cat([torch.zeros_like(beyond[:, :1]), beyond], dim=1)


def drawn(tokens: torch.Tensor, count: int, of: int) -> torch.Tensor:
    """(B, count): for each row as many positions as it has `tokens` (B,), drawn without replacement
    from 0 to `of` - 1 and sorted; behind them `of` - 1. Ruoss et al. 2023, arXiv 2305.16843.
    `count` is at most `of`.
    """
    chosen = torch.rand(len(tokens), of, device=tokens.device).argsort(dim=-1)[:, :count]
    is_padding = torch.arange(count, device=tokens.device) >= tokens[:, None]
    return chosen.masked_fill(is_padding, of - 1).sort(dim=-1).values


def asked(positions: Randomised, tokens: torch.Tensor, count: int) -> torch.Tensor:
    """(B, L): the positions of the places 0 to `count` - 1 when the model is asked, or the
    distances of so many places. `tokens` (B,) are those of a prompt, with room for a reply behind.

    They are where sorted draws are expected: of n positions number i from 0 at
    (i + 1) (of + 1) / (n + 1) - 1, and of n distances number k at k of / n. Or they are a draw, the
    same one for all prompts of so many tokens, which goes on behind its end in steps of 1.
    """
    places = torch.arange(count, device=tokens.device)
    room = tokens[:, None] + _REPLY
    if positions.asked == "mean":
        if positions.are_distances:
            return places * positions.of / room
        return (places + 1) * (positions.of + 1) / (room + 1) - 1
    return torch.stack([_one_draw(positions, int(one), places) for one in room])


def _one_draw(positions: Randomised, room: int, places: torch.Tensor) -> torch.Tensor:
    """(L,): a draw for a prompt and its reply of `room` tokens, at these places."""
    generator = torch.Generator().manual_seed(room)
    first = int(positions.are_distances)
    chosen = torch.randperm(positions.of - first, generator=generator)[: room - first] + first
    table = torch.cat([chosen.new_zeros(first), chosen.sort().values]).to(places.device)
    inside = places.clamp(max=len(table) - 1)
    return (table[inside] + places - inside).float()
