"""Attention: from scores to weights.

Letters in shape comments: B rows, S tokens of this pass, T tokens with those that are kept, H
heads, N maps of weights in a head (2 if attention is differential, else 1), D width of a head, L
distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from eyechart.providers.base import SetupError
from eyechart_lab.variants.choices import (
    Adaptive,
    Delta,
    Differential,
    LogN,
    OffByOne,
    Relative,
    Relu,
    Softmax,
    Strided,
    Window,
)
from eyechart_lab.variants.mechanism import Mechanism
from eyechart_lab.variants.mechanisms.delta import DeltaRule
from eyechart_lab.variants.mechanisms.places import Angles, Farther, Move
from eyechart_lab.variants.mechanisms.positions import RelativeScores, turned
from eyechart_lab.variants.variant import Variant, encoding_of

_ENTROPY = (-0.037, 0.481, -2.3, 4.917, -1.791)
"""Coefficients of the authors' polynomial from entropy to 1 / temperature, the highest power first.
"""
_LEAST_ENTROPY = 0.5
"""The temperature stays 1 up to this entropy."""
_NORM_EPSILON = 1e-5


@dataclass(slots=True)
class Pass:
    """What all layers of one pass share."""

    seen: torch.Tensor
    """(B, 1, S, T): whether each token may attend to each key. One that stands for padding attends
    to itself, so that its numbers stay finite."""
    is_causal: bool
    """Whether nothing but later tokens is hidden, and all tokens are of this pass."""
    is_token: torch.Tensor
    """(B, T): whether each key is of a token and not of padding."""
    angles: Angles | None = None
    """Of the rotary positions of this pass, (B, S, D)."""
    farther: list[Farther] = field(default_factory=list)
    """By what queries and keys are turned again."""
    distances: torch.Tensor | None = None
    """(B, L): the distances of 0, 1, … places, where distances are keys."""
    offsets: torch.Tensor | None = None
    """(B, S, T): by how many places each key is before each query, where distances are keys."""
    bias: torch.Tensor | None = None
    """(B, H, S, T): what positions add to scores."""
    times: torch.Tensor | None = None
    """(B, 1, S, 1): the factor of queries."""
    past: Any = None
    """The keys and values that are kept."""
    weights: list[torch.Tensor] | None = None
    """Gets the weights (B, H, S, T) of each layer; `None` if nobody wants them."""

    @property
    def mask(self) -> torch.Tensor | None:
        """What torch's own attention takes: `None`, what is seen, or what is added to scores."""
        if self.bias is None:
            return None if self.is_causal else self.seen
        return self.bias.masked_fill(~self.seen, torch.finfo(self.bias.dtype).min)


def is_plain(variant: Variant) -> bool:
    """Whether weights are a softmax of scores, so that torch's own attention has them."""
    is_softmax = isinstance(variant.attention, Softmax | Window | Strided)
    is_product = encoding_of(variant.positions) != Relative.name
    return is_softmax and is_product and not isinstance(variant.temperature, Adaptive)


def in_window(window: Window, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """(B, 1, S, T): whether keys at places (B, T) are among the last `window` positions of queries
    at places (B, S), or among the first `sinks`; Xiao et al. 2023, arXiv 2309.17453.
    """
    later, sooner = queries[:, None, :, None], keys[:, None, None]
    return (later - sooner < window.window) | (sooner < window.sinks)


def beyond_sinks(window: Window, queries: torch.Tensor, keys: torch.Tensor) -> list[Move]:
    """The move of queries at places (B, S) towards the sinks among keys at places (B, T): positions
    are counted among the tokens that are seen, as StreamingLLM counts them in its cache.
    """
    by = (window.window + window.sinks - 1 - queries).clamp(max=0)
    where = (keys < window.sinks)[:, None, None].expand(-1, -1, queries.shape[1], -1)
    return [Move(by, None, where)] if bool(by.any()) else []


def in_stride(strided: Strided, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """(B, 1, S, T): whether keys at places (B, T) are among the last n positions of queries at
    places (B, S), or a multiple of n before them; Child et al. 2019, arXiv 1904.10509, section 4.3.
    """
    apart = queries[:, None, :, None] - keys[:, None, None]
    return (apart < strided.every) | (apart % strided.every == 0)


def log_n(seen: torch.Tensor, trained_window: int) -> torch.Tensor:
    """(B, 1, S, 1): log n / log n of the training, for queries that see n tokens; Chiang & Cholak
    2022, arXiv 2202.12172. Nakanishi 2025, arXiv 2501.19399, has a learned factor there.
    """
    tokens = seen.sum(dim=-1, keepdim=True)
    return tokens.float().log() / math.log(max(trained_window, 2))


def softmax(scores: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """exp(s) / sum of exp(s)."""
    return torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1)


def off_by_one(scores: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """exp(s) / (1 + sum of exp(s)): scores that are all very small give no weight to anything;
    Miller 2023, "Attention Is Off By One".
    """
    aside = torch.zeros_like(scores[..., :1])
    scores = torch.cat([scores.masked_fill(~seen, -torch.inf), aside], dim=-1)
    return torch.softmax(scores, dim=-1)[..., :-1]


def relu(
    scores: torch.Tensor, seen: torch.Tensor, by: str = "root", gamma: float = 1.0
) -> torch.Tensor:
    """max(s, 0) / (γ √(n / 2)) for queries that see n tokens, or max(s, 0) / n by `length`.

    With γ = 1 the sum of n values weighed so has the variance of one value, where scores and values
    are normal with variance 1; Shen et al. 2023, arXiv 2302.06461, section 4. Division by the
    number of tokens is of Wortsman et al. 2023, arXiv 2309.08586.
    """
    tokens = seen.sum(dim=-1, keepdim=True)
    divisor = tokens if by == "length" else gamma * (tokens / 2).sqrt()
    return scores.clamp(min=0).masked_fill(~seen, 0) / divisor


def adaptive(scores: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Softmax of the scores times max(1, P(entropy of their softmax)), with the authors' polynomial
    P of degree 4, where that entropy is above 0.5; Veličković et al. 2024, arXiv 2410.01104.
    """
    whole = torch.logsumexp(scores.masked_fill(~seen, -torch.inf), dim=-1, keepdim=True)
    mean = (softmax(scores, seen) * scores.masked_fill(~seen, 0)).sum(dim=-1, keepdim=True)
    entropy = whole - mean  # without a logarithm of 0, which has no derivative
    sharper = torch.zeros_like(entropy)
    for coefficient in _ENTROPY:
        sharper = sharper * entropy + coefficient
    sharper = torch.where(entropy > _LEAST_ENTROPY, sharper.clamp(min=1), 1.0)
    return softmax(scores * sharper, seen)


class Difference(nn.Module):
    """Differential attention: the weights of a head are the softmax of the first half of its
    queries and keys minus λ times that of the second half. λ = exp(q1 · k1) - exp(q2 · k2) + λ0
    with learned vectors, and λ0 = 0.8 - 0.6 exp(-0.3 (l - 1)) in layer l from 1. What a head gives
    is then divided by its root mean square, and multiplied by 1 - λ0; Ye et al. 2024, arXiv
    2410.05258, with the code of the authors.
    """

    def __init__(self, layer: int, head_width: int) -> None:
        """`layer` is counted from 0."""
        super().__init__()
        self.first = 0.8 - 0.6 * math.exp(-0.3 * layer)
        half = head_width // 2
        self.lambda_q1, self.lambda_k1, self.lambda_q2, self.lambda_k2 = (
            nn.Parameter(torch.empty(half)) for _ in range(4)
        )
        self.norm = nn.RMSNorm(head_width, eps=_NORM_EPSILON)

    def reset(self) -> None:
        """Draws the vectors of λ."""
        for vector in (self.lambda_q1, self.lambda_k1, self.lambda_q2, self.lambda_k2):
            nn.init.normal_(vector, std=0.1)

    @property
    def factor(self) -> torch.Tensor:
        """λ, a number."""
        first = torch.exp((self.lambda_q1 * self.lambda_k1).float().sum())
        second = torch.exp((self.lambda_q2 * self.lambda_k2).float().sum())
        return first - second + self.first

    def weights(self, scores: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """(B, H, S, T) of scores (B, H, 2, S, T)."""
        both = softmax(scores, seen)
        return both[:, :, 0] - self.factor * both[:, :, 1]

    def scaled(self, mixed: torch.Tensor) -> torch.Tensor:
        """What heads give (B, S, H, D), scaled."""
        normed: torch.Tensor = self.norm(mixed) * (1 - self.first)
        return normed


class Weigher(nn.Module):
    """From queries and keys to the weights of one layer."""

    def __init__(self, variant: Variant, layer: int) -> None:
        super().__init__()
        self._attention: Mechanism = variant.attention
        self._is_adaptive = isinstance(variant.temperature, Adaptive)
        self.difference: Difference | None = None
        width = variant.width // variant.attention_heads
        self.relative: RelativeScores | None = None
        if encoding_of(variant.positions) == Relative.name:
            self.relative = RelativeScores(variant.width, variant.attention_heads)
        self.maps = 1
        if isinstance(variant.attention, Differential):
            self.difference = Difference(layer, width)
            self.maps = 2
        self.delta: DeltaRule | None = None
        if isinstance(variant.attention, Delta):
            self.delta = DeltaRule(variant.width, variant.heads)
        self.are_shares = not isinstance(variant.attention, Differential | Relu | Delta)
        """Whether weights are at least 0, with a sum of at most 1."""
        self.scaling: float = (width // self.maps) ** -0.5

    def forward(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        now: Pass,
        at: Any = slice(None),
        hidden: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(B, H, P, T): weights of queries (B, H, P, D), those at the places `at` of the pass, on
        keys (B, H, T, D). `hidden` (P, T): what is not seen either.

        Raises:
            SetupError: something is hidden from a recurrent layer.
        """
        seen = now.seen[:, :, at]
        if hidden is not None:
            if self.delta is not None and bool((seen & hidden).any()):
                raise SetupError(
                    "intervention window hides tokens from attention, and 'delta_rule' has none; "
                    "leave it out"
                )
            seen = seen & ~hidden
        if self.delta is not None:
            return self.delta.weights(queries, keys, seen, now.is_token).to(queries.dtype)
        scores = self._scores(queries, keys, now, at)
        for (cosines, sines), of_keys, where in now.farther:
            its = keys if of_keys is None else turned(keys, of_keys)
            again = self._products(turned(queries, (cosines[:, at], sines[:, at])), its)
            scores = torch.where(where[:, :, None, at], again, scores)
        scores = scores.float() * self.scaling
        if now.bias is not None:
            scores = scores + now.bias[:, :, None, at]
        return self._weights(scores, seen[:, :, None]).to(queries.dtype)

    def _scores(
        self, queries: torch.Tensor, keys: torch.Tensor, now: Pass, at: Any
    ) -> torch.Tensor:
        """(B, H, N, P, T): products, or with distances as keys more than these."""
        if self.relative is None:
            return self._products(queries, keys)
        assert now.distances is not None
        assert now.offsets is not None
        scores: torch.Tensor = self.relative(queries, keys, now.distances, now.offsets[:, at])
        return scores[:, :, None]

    def _products(self, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        """(B, H, N, P, T)."""
        mine, its = (one.unflatten(-1, (self.maps, -1)).transpose(2, 3) for one in (queries, keys))
        return mine @ its.transpose(-1, -2)

    def _weights(self, scores: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """(B, H, P, T) of scores (B, H, N, P, T)."""
        if self.difference is not None:
            return self.difference.weights(scores, seen)
        scores, seen = scores[:, :, 0], seen[:, :, 0]
        if isinstance(self._attention, OffByOne):
            return off_by_one(scores, seen)
        if isinstance(self._attention, Relu):
            return relu(scores, seen, self._attention.by, self._attention.gamma)
        return adaptive(scores, seen) if self._is_adaptive else softmax(scores, seen)

    def scaled(self, mixed: torch.Tensor) -> torch.Tensor:
        """What heads give (B, S, H, D), as the output matrix gets it."""
        if self.delta is not None:
            return self.delta.scaled(mixed)
        return mixed if self.difference is None else self.difference.scaled(mixed)


def times_of(variant: Variant, seen: torch.Tensor, trained_window: int) -> torch.Tensor | None:
    """(B, 1, S, 1): the factor of the queries of a variant; `None` if there is none."""
    return log_n(seen, trained_window) if isinstance(variant.temperature, LogN) else None
