"""Positions: how a model knows where a token stands.

What is added to scores is in `biases`, and what is drawn in the training in `draws`.

Letters in shape comments: B rows, S tokens of this pass, T tokens with those that are kept, H
heads, D numbers that are turned together, L distances, C width.
"""

from __future__ import annotations

import torch
from torch import nn

from eyechart_lab.variants.choices import Learned, PRope, Randomised, Rope, Scalar
from eyechart_lab.variants.mechanisms.places import Angles, Farther, Move, RowPositions
from eyechart_lab.variants.mechanisms.stretch import frequencies_of
from eyechart_lab.variants.variant import Variant, encoding_of

_BASE = 10_000.0
"""Of the wavelengths of sinusoidal positions, and of rotary ones that are drawn."""
_SPREAD = 0.02
"""Of the numbers that learned positions begin with."""


def sinusoids(positions: torch.Tensor, width: int) -> torch.Tensor:
    """(B, S, width): sin(p / 10000^(2i / width)) at place 2i and the cosine of the same at 2i + 1;
    Vaswani et al. 2017, arXiv 1706.03762.
    """
    pairs = torch.arange(0, width, 2, device=positions.device)
    angles = positions[..., None].float() / _BASE ** (pairs / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class AddedPositions(nn.Module):
    """What is added to embeddings: sinusoids, for which embeddings are first multiplied by the root
    of their width, as Vaswani et al. do; a learned vector for each position, the nearest one where
    a position is the mean of draws; or i / C times one learned vector.
    """

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self._positions = variant.positions
        self.vectors: nn.Embedding | None = None
        is_learned = encoding_of(self._positions) == Learned.name
        if is_learned and isinstance(self._positions, Learned | Randomised):
            self.vectors = nn.Embedding(self._positions.of, variant.width)
        elif isinstance(self._positions, Scalar):
            self.direction = nn.Parameter(torch.empty(variant.width))

    def reset(self) -> None:
        """Draws the vector of `scalar`."""
        if isinstance(self._positions, Scalar):
            nn.init.normal_(self.direction, std=_SPREAD)

    def forward(self, states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """(B, S, C): embeddings with their positions (B, S)."""
        if self.vectors is not None:
            chosen = positions.round().long().clamp(max=self.vectors.num_embeddings - 1)
            learned: torch.Tensor = states + self.vectors(chosen)
            return learned
        if isinstance(self._positions, Scalar):
            share = positions[..., None] / self._positions.of
            return states + share.to(states) * self.direction
        width = states.shape[-1]
        return states * width**0.5 + sinusoids(positions, width).to(states)


class Rotary(nn.Module):
    """Rotary positions: pair i of a head, at places i and i + D/2, is turned by its position times
    base^(-2i/D); Su et al. 2021, arXiv 2104.09864.

    p-RoPE turns the share p of the pairs that turn fastest, and sets the frequency of the others to
    0: p = 1 is RoPE and p = 0 is NoPE; Barbero et al. 2024, arXiv 2410.06205, section 6.1.
    """

    def __init__(self, variant: Variant, trained_window: int) -> None:
        super().__init__()
        self._variant, self._trained_window = variant, trained_window
        is_plain = isinstance(variant.positions, Rope) and variant.stretch.name == "none"
        self.rope_type = "default" if is_plain else "other"
        """As in transformers: whether frequencies and angles are those of plain RoPE."""
        frequencies, self.attention_scaling = self._frequencies()
        self.inv_freq: torch.Tensor
        self.register_buffer("inv_freq", frequencies, persistent=False)

    def _frequencies(self, tokens: int = 0) -> tuple[torch.Tensor, float]:
        positions = self._variant.positions
        base = positions.base if isinstance(positions, Rope | PRope) else _BASE
        width = self._variant.turned_width
        found, scaling = frequencies_of(
            self._variant.stretch, base, width, self._trained_window, tokens
        )
        if isinstance(positions, PRope):
            found[int(positions.share * (width // 2)) :] = 0
        return torch.from_numpy(found), scaling

    def reset(self) -> None:
        """Computes the frequencies where a model was made without numbers."""
        self.inv_freq.copy_(self._frequencies()[0])

    def forward(self, positions: torch.Tensor) -> Angles:
        """The angles of positions (B, S), scaled by the temperature of YaRN."""
        cosines, sines = self.angles(positions)
        return cosines * self.attention_scaling, sines * self.attention_scaling

    def angles(self, positions: torch.Tensor) -> Angles:
        """The angles of positions (B, S) that may be below 0: of a turn by so many places."""
        return _angles(positions[..., None].float() * self.inv_freq.float())

    def farther(self, move: Move) -> Farther:
        """The turn of a move."""
        keys = None if move.keys is None else self.angles(move.keys)
        return self.angles(move.queries), keys, move.where

    def grown(self, places: RowPositions) -> list[Farther]:
        """The turn of all queries and keys to the frequencies of the tokens so far, which differ
        from row to row.
        """
        every = [self._frequencies(int(tokens))[0] for tokens in places.tokens]
        more = torch.stack(every).to(self.inv_freq)[:, None] - self.inv_freq
        if not bool(more.any()):
            return []
        mine, its = (_angles(one[..., None] * more) for one in (places.queries, places.keys))
        return [(mine, its, torch.ones_like(places.seen))]


def _angles(half: torch.Tensor) -> Angles:
    """Of (B, S, D / 2) angles of pairs."""
    angles = torch.cat([half, half], dim=-1)
    return angles.cos(), angles.sin()


def turned(states: torch.Tensor, angles: Angles) -> torch.Tensor:
    """Queries or keys (B, H, S, n D), each D of them turned."""
    cosines, sines = (one[:, None, :, None].to(states.dtype) for one in angles)
    parts = states.unflatten(-1, (-1, cosines.shape[-1]))
    first, second = parts.chunk(2, dim=-1)
    return (parts * cosines + torch.cat([-second, first], dim=-1) * sines).flatten(-2)


class RelativeScores(nn.Module):
    """Scores with the distance as a key: (q + u) · k + (q + v) · W r, where r has the sinusoids of
    the distance, W is learned, and u and v are learned vectors of a head; Dai et al. 2019, arXiv
    1901.02860, section 3.3.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._width = width
        self.key = nn.Linear(width, width, bias=False)
        self.of_content, self.of_distance = (
            nn.Parameter(torch.empty(heads, 1, width // heads)) for _ in range(2)
        )

    def reset(self) -> None:
        """Draws u and v."""
        for vector in (self.of_content, self.of_distance):
            nn.init.normal_(vector, std=_SPREAD)

    def forward(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        distances: torch.Tensor,
        offsets: torch.Tensor,
    ) -> torch.Tensor:
        """(B, H, S, T) of queries (B, H, S, D) and keys (B, H, T, D). A key that is `offsets`
        (B, S, T) places before a query is at the distance with this number of `distances` (B, L).
        """
        waves = sinusoids(distances, self._width).to(queries)
        its = self.key(waves).unflatten(-1, (queries.shape[1], -1)).transpose(1, 2)
        of_each = (queries + self.of_distance) @ its.transpose(-1, -2)  # (B, H, S, L)
        chosen = of_each.gather(-1, offsets[:, None].expand(len(of_each), of_each.shape[1], -1, -1))
        return (queries + self.of_content) @ keys.transpose(-1, -2) + chosen


def rotary_of(variant: Variant, trained_window: int) -> Rotary | None:
    """What turns queries and keys of a variant; `None` if nothing does."""
    is_turned = encoding_of(variant.positions) == Rope.name
    return Rotary(variant, trained_window) if is_turned else None


def added_of(variant: Variant) -> AddedPositions | None:
    """What is added to the embeddings of a variant; `None` if nothing is."""
    is_added = encoding_of(variant.positions) in ("sinusoidal", "learned", "scalar")
    return AddedPositions(variant) if is_added else None
