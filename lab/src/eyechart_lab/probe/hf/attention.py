"""Attention of a Hugging Face model in blocks of positions, which a probe can watch and an
intervention change.

transformers calls it for every model whose attention goes through `AttentionInterface`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from eyechart.providers.base import SetupError
from eyechart.providers.naming import named
from eyechart_lab.probe.hf.turning import SecondRotation, turned_again
from eyechart_lab.probe.inside import Positions, Watcher
from eyechart_lab.probe.intervention import Intervention
from eyechart_lab.probe.measures.states import shown_of

NAME = "eyechart"
"""The name under which transformers knows this attention."""
_BLOCK = 1 << 22
"""The largest number of attention weights in memory at once. A block of one position may have more.
"""


@dataclass(slots=True)
class AttentionPass:
    """One forward pass."""

    intervention: Intervention
    watcher: Watcher | None = None
    turning: SecondRotation | None = None
    """How queries and keys are turned a second time; `None` if they are not."""
    padding: Sequence[int] = ()
    """For each row the number of its padded positions, which are its first ones; empty if no row
    has one."""
    called: set[int] = field(default_factory=set)
    """The layers whose attention was computed here."""
    ignored: set[str] = field(default_factory=set)
    """Arguments of the architecture that this attention does not know."""


CURRENT: ContextVar[AttentionPass | None] = ContextVar("CURRENT", default=None)
_IGNORED = ("position_bias",)
"""Arguments of architectures that change the weights and that this attention does not know."""


def to_numpy(tensor: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A tensor as float32, in memory of its own."""
    values: np.ndarray[Any, np.dtype[np.float32]] = tensor.detach().float().cpu().numpy()
    return values


def _attention(  # noqa: PLR0917  the interface of transformers
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[Any, None]:
    """(B, S, H, D): weighted values; query (B, H, S, D) of the last S positions, key and value
    (B, K, T, D). Each row is computed alone, without its padding.
    """
    del dropout  # models are in evaluation
    rows = len(query)
    if rows > 1 and others.get("weigh") is not None:
        raise SetupError(
            "the attention of this model can be changed for one prompt at a time: "
            f"{named('max_connections', '1')}"
        )
    current = CURRENT.get() or AttentionPass(Intervention())
    before = key.shape[2] - query.shape[2]
    mixed = []
    for row, padded in enumerate(current.padding or [0] * rows):
        skipped = max(0, padded - before)  # of the positions of this pass
        mask = attention_mask
        if mask is not None:
            mask = mask[row % len(mask), None, :, skipped:, padded:]
        of_queries = query[row : row + 1, :, skipped:]
        of_keys, of_values = (one[row : row + 1, :, padded:] for one in (key, value))
        values = _of_row(current, module, of_queries, of_keys, of_values, mask, scaling, others)
        mixed.append(torch.nn.functional.pad(values, (0, 0, 0, 0, skipped, 0)))
    return torch.cat(mixed), None


def _of_row(  # noqa: PLR0917  as transformers has them
    current: AttentionPass,
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None,
    others: Mapping[str, Any],
) -> Any:
    """(1, S, H, D): weighted values; query (1, H, S, D) of the last S positions, key and value
    (1, K, T, D).

    An architecture whose weights are no softmax of products passes `weigh`: it is called with
    queries (1, H, P, D), keys (1, H, T, D), `at`, (P,) places of the queries among those of the
    pass, and `hidden`, (P, T) which keys are not seen, and gives the weights (1, H, P, T). With
    `shares` false these are no shares: they may be below 0 or have a sum above 1. A watcher is
    shown the size of each by the sum of sizes.
    """
    layer = int(getattr(module, "layer_idx", len(current.called)))
    current.called.add(layer)
    current.ignored.update(name for name in _IGNORED if others.get(name) is not None)
    watcher, change = current.watcher, current.intervention
    if others.get("weigh") is not None and (change.softmax_one or change.turns_again):
        raise SetupError(
            "softmax_one, dual_chunk, ReRoPE and dynamic NTK change a plain softmax, and the "
            "attention of this model uses none; leave them out"
        )
    _, heads, count, width = query.shape
    span = start, end = key.shape[2] - count, key.shape[2]
    shown = {} if watcher is None else shown_of(watcher.wants, *span)
    if watcher is not None and (at := shown.get("projections")) is not None:
        own = (query, key[:, :, start:], value[:, :, start:])
        watcher.projections(
            layer, at, *(to_numpy(one[0].transpose(0, 1)[at - start]) for one in own)
        )
    if change.log_n is not None:
        times = change.temperature(np.arange(start + 1, end + 1))
        query = query * torch.from_numpy(times).to(query)[:, None]
    if change.kv is not None:
        key, value = _rounded(key, change.kv), _rounded(value, change.kv)
    scale = width**-0.5 if scaling is None else scaling
    group = heads // key.shape[1]
    queries, keys, values = (
        query[0],
        *(one[0].repeat_interleave(group, dim=0) if group > 1 else one[0] for one in (key, value)),
    )
    weigh = _Weigh(change, scale, attention_mask, span, others, current.turning)
    if weigh.is_plain:
        is_causal = start == 0 and weigh.is_causal
        hidden = None if is_causal else ~weigh.hidden(np.arange(start, end), query.device)
        whole = torch.nn.functional.scaled_dot_product_attention(
            queries[None],
            keys[None],
            values[None],
            attn_mask=hidden,
            is_causal=is_causal,
            scale=scale,
        )[0]
    else:
        blocks = _blocks(np.arange(start, end), heads * end)
        whole = torch.cat([weigh.mixed(queries, keys, values, block) for block in blocks], dim=1)
    if watcher is not None and (at := shown.get("attention")) is not None:
        for block in _blocks(at, heads * end):
            weights = weigh.weights(queries[:, block - start], keys, block)
            if others.get("shares") is False:
                weights = torch.nn.functional.normalize(weights, p=1, dim=-1).abs()
            watcher.attention(layer, block, to_numpy(weights))
    whole = whole.transpose(0, 1)  # (S, H, D)
    if watcher is not None and (at := shown.get("heads")) is not None:
        watcher.heads(layer, at, to_numpy(whole[at - start]))
    return whole[None].contiguous()


def _rounded(states: Any, bits: int) -> Any:
    """(1, K, T, D): each vector's numbers rounded to 2^bits evenly spread values, from its smallest
    to its largest one. The derivative is that of numbers that are not rounded.
    """
    low, high = states.amin(dim=-1, keepdim=True), states.amax(dim=-1, keepdim=True)
    step = ((high - low) / (2**bits - 1)).clamp_min(torch.finfo(states.dtype).tiny)
    rounded = torch.round((states - low) / step) * step + low
    return states + (rounded - states).detach()


def _blocks(at: Positions, size: int) -> Iterator[Positions]:
    """The positions in blocks, each of which has `size` weights."""
    step = max(1, _BLOCK // size)
    for first in range(0, len(at), step):
        yield at[first : first + step]


@dataclass(frozen=True, slots=True)
class _Weigh:
    """The weights of one layer, with what its architecture and an intervention change of them."""

    change: Intervention
    scale: float
    mask: Any
    """What transformers hides or adds, (1, 1, S, T); `None` for nothing but later positions."""
    span: tuple[int, int]
    """The positions of the pass: the first one, and the one behind the last."""
    others: Any
    turning: SecondRotation | None

    @property
    def is_plain(self) -> bool:
        """Whether the weights are a softmax of products, which torch's own attention computes."""
        added = self.mask is not None and self.mask.dtype != torch.bool
        other = any(self.others.get(name) is not None for name in ("softcap", "s_aux", "weigh"))
        return not (self.change.softmax_one or self.turning or added or other)

    @property
    def is_causal(self) -> bool:
        """Whether nothing but later positions is hidden."""
        return self.mask is None and self.change.window is None

    def hidden(self, at: Positions, device: Any) -> Any:
        """(P, T): whether each of these positions may not attend to each key."""
        keys = np.arange(self.span[1])
        hidden = at[:, None] < keys
        if self.change.window is not None:
            hidden = hidden | self.change.hides(at[:, None], keys)
        found = torch.from_numpy(hidden).to(device)
        if self.mask is not None and self.mask.dtype == torch.bool:
            found = found | ~self.mask[0, 0, at - self.span[0], : self.span[1]]
        return found

    def mixed(self, queries: Any, keys: Any, values: Any, at: Positions) -> Any:
        """(H, P, D): weighted values of a block of positions; queries (H, S, D) are all. Where a
        derivative is wanted, weights are computed again on the way back.
        """
        chosen = queries[:, at - self.span[0]]
        if torch.is_grad_enabled() and queries.requires_grad:
            return checkpoint(self._mixed, chosen, keys, values, at, use_reentrant=False)
        return self._mixed(chosen, keys, values, at)

    def _mixed(self, queries: Any, keys: Any, values: Any, at: Positions) -> Any:
        return self.weights(queries, keys, at).to(values.dtype) @ values

    def weights(self, queries: Any, keys: Any, at: Positions) -> Any:
        """(H, P, T): the weights of a block of queries, (H, P, D)."""
        if (weigh := self.others.get("weigh")) is not None:
            places = torch.from_numpy(at - self.span[0]).to(queries.device)
            hidden = self.hidden(at, queries.device)
            return weigh(queries[None], keys[None], at=places, hidden=hidden)[0]
        scores = self._products(queries, keys, at) * self.scale
        if (cap := self.others.get("softcap")) is not None:
            scores = torch.tanh(scores / cap) * cap
        if self.mask is not None and self.mask.dtype != torch.bool:
            scores = scores + self.mask[0, :, at - self.span[0], : self.span[1]]
        scores = scores.masked_fill(self.hidden(at, scores.device), -torch.inf).float()
        aside = []
        if self.change.softmax_one:
            aside.append(torch.zeros_like(scores[..., :1]))
        if (sinks := self.others.get("s_aux")) is not None:  # a learned score that takes weight
            aside.append(sinks.float().reshape(-1, 1, 1).expand(-1, scores.shape[1], 1))
        weights = torch.softmax(torch.cat([scores, *aside], dim=-1) if aside else scores, dim=-1)
        return weights[..., : self.span[1]].to(queries.dtype)

    def _products(self, queries: Any, keys: Any, at: Positions) -> Any:
        """(H, P, T)."""
        products = queries @ keys.transpose(1, 2)
        if self.turning is not None:
            for mine, its, where in self.turning.turns(at, self.span[1]):
                again = turned_again(queries, mine) @ turned_again(keys, its).transpose(1, 2)
                products = torch.where(torch.from_numpy(where).to(again.device), again, products)
        return products


def register() -> None:
    """Makes this attention known to transformers, with masks of what may be attended to."""
    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
