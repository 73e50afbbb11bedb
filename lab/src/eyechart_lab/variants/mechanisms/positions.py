"""Positions: how a model knows where a token stands.

Letters in shape comments: B rows, S tokens of this pass, T tokens with those that are kept, H
heads, D numbers that are turned together, C width.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import nn

from eyechart_lab.variants.mechanisms.stretch import frequencies_of
from eyechart_lab.variants.variant import (
    Alibi,
    Kerple,
    PRope,
    Randomised,
    Rope,
    Sandwich,
    Sinusoidal,
    Variant,
)

Angles: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""(B, S, D) cosines and sines."""
_BASE = 10_000.0
"""Of the wavelengths of sinusoidal positions."""
_LEAST = 1e-2
"""KERPLE's parameters are never smaller than this, as in its authors' code."""
_MOST_POWER = 2.0
_RANGE = 8
"""The slopes of ALiBi go down to 2^-8, the divisors of Sandwich up to 8."""
_REPLY = 16
"""Tokens for which randomised positions leave room behind a prompt."""


def sinusoids(positions: torch.Tensor, width: int) -> torch.Tensor:
    """(B, S, width): sin(p / 10000^(2i / width)) at place 2i and the cosine of the same at 2i + 1;
    Vaswani et al. 2017, arXiv 1706.03762.
    """
    pairs = torch.arange(0, width, 2, device=positions.device)
    angles = positions[..., None].float() / _BASE ** (pairs / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class Rotary(nn.Module):
    """Rotary positions: pair i of a head, at places i and i + D/2, is turned by its position times
    base^(-2i/D); Su et al. 2021, arXiv 2104.09864.

    p-RoPE turns the share p of the pairs that turn fastest, and sets the frequency of the others to
    0: p = 1 is RoPE and p = 0 is NoPE; Barbero et al. 2024, arXiv 2410.06205, section 6.1.
    """

    def __init__(self, variant: Variant, trained_window: int) -> None:
        super().__init__()
        assert isinstance(variant.positions, Rope | PRope)
        self._variant, self._trained_window = variant, trained_window
        is_plain = isinstance(variant.positions, Rope) and variant.stretch.name == "none"
        self.rope_type = "default" if is_plain else "other"
        """As in transformers: whether frequencies and angles are those of plain RoPE."""
        frequencies, self.attention_scaling = self._frequencies()
        self.inv_freq: torch.Tensor
        self.register_buffer("inv_freq", frequencies, persistent=False)

    def _frequencies(self) -> tuple[torch.Tensor, float]:
        positions = self._variant.positions
        assert isinstance(positions, Rope | PRope)
        width = self._variant.turned_width
        found, scaling = frequencies_of(
            self._variant.stretch, positions.base, width, self._trained_window
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
        half = positions[..., None].float() * self.inv_freq.float()
        angles = torch.cat([half, half], dim=-1)
        return angles.cos(), angles.sin()


def turned(states: torch.Tensor, angles: Angles) -> torch.Tensor:
    """Queries or keys (B, H, S, n D), each D of them turned."""
    cosines, sines = (one[:, None, :, None].to(states.dtype) for one in angles)
    parts = states.unflatten(-1, (-1, cosines.shape[-1]))
    first, second = parts.chunk(2, dim=-1)
    return (parts * cosines + torch.cat([-second, first], dim=-1) * sines).flatten(-2)


def slopes_of(heads: int) -> list[float]:
    """ALiBi's slopes 2^(-8/H), 2^(-16/H), … of H heads. If H is no power of two: those of the next
    smaller power of two, and as many as lack of every second slope of the next larger one; Press et
    al. 2021, arXiv 2108.12409, with the code of the authors.
    """
    below = 1 << (heads.bit_length() - 1)
    found = [2 ** (-_RANGE * number / below) for number in range(1, below + 1)]
    if below < heads:
        found += slopes_of(2 * below)[0::2][: heads - below]
    return found


class AlibiBias(nn.Module):
    """-slope |i - j| is added to the score of query i and key j; Press et al. 2021, arXiv
    2108.12409.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self._slopes = slopes_of(heads)

    def forward(self, distance: torch.Tensor) -> torch.Tensor:
        """(B, H, S, T) of distances (B, S, T)."""
        away = distance.float()
        return torch.stack([away * -slope for slope in self._slopes], dim=1)


class KerpleBias(nn.Module):
    """A learned kernel for each head, shared by all layers: -p log(1 + a |i - j|), or with `power`
    -a |i - j|^p with p at most 2; Chi et al. 2022, arXiv 2205.09921. As in the authors' code, both
    are at least 0.01, and begin evenly drawn: p up to 2, a up to 1.
    """

    def __init__(self, heads: int, kernel: str) -> None:
        super().__init__()
        self._kernel = kernel
        self.bias_p = nn.Parameter(torch.empty(heads))
        self.bias_a = nn.Parameter(torch.empty(heads))

    def reset(self) -> None:
        """Draws the parameters."""
        nn.init.uniform_(self.bias_p, 0, _MOST_POWER)
        nn.init.uniform_(self.bias_a, 0, 1)

    def forward(self, distance: torch.Tensor) -> torch.Tensor:
        """(B, H, S, T) of distances (B, S, T)."""
        most = _MOST_POWER if self._kernel == "power" else None
        power = self.bias_p.float().clamp(_LEAST, most)[:, None, None]
        scale = self.bias_a.float().clamp(_LEAST)[:, None, None]
        away = distance[:, None].float()
        if self._kernel == "log":
            return -power * torch.log1p(scale * away)
        # of distance 0 the power is 0 and its derivative by p infinity times 0
        grown = torch.where(away > 0, away.clamp(min=1) ** power, 0.0)
        return -scale * grown


class SandwichBias(nn.Module):
    """The inner product of sinusoidal positions of width d, divided by 8 h / H in head h of 1 to H:
    the sum over i < d/2 of cos(|i - j| / 10000^(2i / d)); Chi et al. 2022, arXiv 2212.10356.

    d/2 is taken off the product, so that distance 0 adds nothing, as NVIDIA's NeMo does. A softmax
    does not see that. NeMo's i runs from 1 to d/2; here it is that of sinusoidal positions.
    """

    def __init__(self, heads: int, dimension: int) -> None:
        super().__init__()
        self._dimension = dimension
        self._divisors = [_RANGE * number / heads for number in range(1, heads + 1)]

    def forward(self, distance: torch.Tensor) -> torch.Tensor:
        """(B, H, S, T) of distances (B, S, T), which are whole numbers."""
        device = distance.device
        places = torch.arange(distance.shape[-1], device=device)  # no key is farther away
        pairs = torch.arange(0, self._dimension, 2, device=device)
        product = torch.cos(places[:, None] / _BASE ** (pairs / self._dimension)).sum(-1)
        product = (product - self._dimension / 2)[distance]
        return torch.stack([product / divisor for divisor in self._divisors], dim=1)


def bias_of(variant: Variant) -> nn.Module | None:
    """What a variant's positions add to scores; `None` if nothing."""
    positions = variant.positions
    if isinstance(positions, Alibi):
        return AlibiBias(variant.heads)
    if isinstance(positions, Kerple):
        return KerpleBias(variant.heads, positions.kernel)
    if isinstance(positions, Sandwich):
        return SandwichBias(variant.heads, positions.dimension)
    return None


def rotary_of(variant: Variant, trained_window: int) -> Rotary | None:
    """What turns queries and keys of a variant; `None` if nothing does."""
    is_turned = isinstance(variant.positions, Rope | PRope)
    return Rotary(variant, trained_window) if is_turned else None


def is_added(variant: Variant) -> bool:
    """Whether sinusoidal positions are added to the embeddings."""
    return isinstance(variant.positions, Sinusoidal | Randomised)


def drawn(tokens: torch.Tensor, count: int, of: int) -> torch.Tensor:
    """(B, count): for each row as many positions as it has `tokens` (B,), drawn without replacement
    from 0 to `of` - 1 and sorted; behind them `of` - 1. Ruoss et al. 2023, arXiv 2305.16843.
    `count` is at most `of`.
    """
    chosen = torch.rand(len(tokens), of, device=tokens.device).argsort(dim=-1)[:, :count]
    is_padding = torch.arange(count, device=tokens.device) >= tokens[:, None]
    return chosen.masked_fill(is_padding, of - 1).sort(dim=-1).values


def gap_of(tokens: torch.Tensor, of: int) -> torch.Tensor:
    """(B,): the mean gap between n sorted draws from 1 to `of`, (of + 1) / (n + 1): position i from
    0 is expected at (i + 1) times it. n is the number of `tokens` (B,) of a prompt, with room for a
    reply behind it.
    """
    return (of + 1) / (tokens.float() + _REPLY + 1)


def spread(index: torch.Tensor, gap: torch.Tensor) -> torch.Tensor:
    """(B, S): positions of tokens at places `index` (B, S) when the model is asked: where sorted
    draws are expected. The authors draw here too; these are the means of their draws.
    """
    return (index + 1) * gap[:, None] - 1
