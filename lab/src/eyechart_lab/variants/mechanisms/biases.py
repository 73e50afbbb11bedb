"""What positions add to scores: a number for each head and distance.

Letters in shape comments: B rows, S tokens of this pass, T tokens with those that are kept, H
heads.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from eyechart_lab.variants.choices import T5, Alibi, Kerple, Sandwich
from eyechart_lab.variants.variant import Variant, encoding_of

_BASE = 10_000.0
"""Of the wavelengths of sinusoidal positions."""
_LEAST = 1e-2
"""KERPLE's parameters are never smaller than this, as in its authors' code."""
_MOST_POWER = 2.0
_RANGE = 8
"""The slopes of ALiBi go down to 2^-8, the divisors of Sandwich up to 8."""


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

    A number that a step of the training moved out of these bounds is put back before the next one,
    so that it can leave the bound again.
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

    @torch.no_grad()
    def _put_back(self) -> None:
        self.bias_p.clamp_(_LEAST, _MOST_POWER if self._kernel == "power" else None)
        self.bias_a.clamp_(_LEAST)

    def forward(self, distance: torch.Tensor) -> torch.Tensor:
        """(B, H, S, T) of distances (B, S, T)."""
        if self.training:
            self._put_back()
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


class T5Bias(nn.Module):
    """A learned number for each head and bucket of distances, shared by all layers; Raffel et al.
    2019, arXiv 1910.10683, section 2.1. Distances below half the number of buckets have one bucket
    each; those up to `longest` share the others, by their logarithm, and all longer ones the last.
    """

    def __init__(self, heads: int, buckets: int, longest: int) -> None:
        super().__init__()
        self._buckets, self._longest = buckets, longest
        self.numbers = nn.Embedding(buckets, heads)

    def bucket(self, distance: torch.Tensor) -> torch.Tensor:
        """The bucket of each distance, which is a whole number."""
        exact = self._buckets // 2
        share = (distance.clamp(min=1).float() / exact).log() / math.log(self._longest / exact)
        shared = exact + (share * (self._buckets - exact)).long()
        return torch.where(distance < exact, distance, shared.clamp(max=self._buckets - 1))

    def forward(self, distance: torch.Tensor) -> torch.Tensor:
        """(B, H, S, T) of distances (B, S, T)."""
        found: torch.Tensor = self.numbers(self.bucket(distance)).permute(0, 3, 1, 2)
        return found


def bias_of(variant: Variant) -> nn.Module | None:
    """What a variant's positions add to scores; `None` if nothing."""
    positions, heads = variant.positions, variant.attention_heads
    if encoding_of(positions) == Alibi.name:
        return AlibiBias(heads)
    if isinstance(positions, Kerple):
        return KerpleBias(heads, positions.kernel)
    if isinstance(positions, Sandwich):
        return SandwichBias(heads, positions.dimension)
    if isinstance(positions, T5):
        return T5Bias(heads, positions.buckets, positions.longest)
    return None
