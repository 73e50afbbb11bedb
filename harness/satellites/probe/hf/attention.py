"""Attention of a Hugging Face model in blocks of positions, which a probe can watch and an
intervention change.

transformers calls it for every model whose attention goes through `AttentionInterface`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask

from eyechart.harness.satellites.probe.inside import Watcher
from eyechart.providers.intervention import Intervention

NAME = "eyechart"
"""The name under which transformers knows this attention."""
_BLOCK = 1 << 22
"""The largest number of attention weights in memory at once. A block of one position may have more.
"""


@dataclass(slots=True)
class Pass:
    """One forward pass."""

    intervention: Intervention
    watcher: Watcher | None = None
    called: set[int] = field(default_factory=set)
    """The layers whose attention was computed here."""
    ignored: set[str] = field(default_factory=set)
    """Arguments of the architecture that this attention does not know."""


CURRENT: ContextVar[Pass | None] = ContextVar("CURRENT", default=None)
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
    """(1, T, H, D): weighted values; query (1, H, T, D), key and value (1, K, T, D)."""
    del dropout  # models are in evaluation
    current = CURRENT.get() or Pass(Intervention())
    layer = int(getattr(module, "layer_idx", len(current.called)))
    current.called.add(layer)
    current.ignored.update(name for name in _IGNORED if others.get(name) is not None)
    watcher, change = current.watcher, current.intervention
    wants = frozenset() if watcher is None else watcher.wants
    _, heads, count, width = query.shape
    scale = width**-0.5 if scaling is None else scaling
    if watcher is not None and "projections" in wants:
        watcher.projections(
            layer, *(to_numpy(one[0].transpose(0, 1)) for one in (query, key, value))
        )
    if change.log_n is not None:
        times = change.temperature(np.arange(1, count + 1))
        query = query * torch.from_numpy(times).to(query)[:, None]
    group = heads // key.shape[1]
    keys, values = (one[0].repeat_interleave(group, dim=0) for one in (key, value))
    step = max(1, min(count, _BLOCK // (heads * count)))
    mixed = []
    for first in range(0, count, step):
        end = min(count, first + step)
        weigh = _weigher(change, scale, attention_mask, (first, end, count), others)
        queries = query[0, :, first:end]
        if torch.is_grad_enabled() and query.requires_grad:
            part = checkpoint(_mixed, weigh, queries, keys, values, use_reentrant=False)
        else:
            weights = weigh(queries, keys)
            if watcher is not None and "attention" in wants:
                watcher.attention(layer, first, to_numpy(weights))
            part = weights.to(values.dtype) @ values
        mixed.append(part)
    whole = torch.cat(mixed, dim=1).transpose(0, 1)  # (T, H, D)
    if watcher is not None and "heads" in wants:
        watcher.heads(layer, to_numpy(whole))
    return whole[None].contiguous(), None


Weigh = Callable[[Any, Any], Any]


def _mixed(weigh: Weigh, queries: Any, keys: Any, values: Any) -> Any:
    return weigh(queries, keys).to(values.dtype) @ values


def _weigher(
    change: Intervention, scale: float, mask: Any, block: tuple[int, int, int], others: Any
) -> Weigh:
    """The function that makes the weights (H, b, T) of a block of queries (H, b, D), with the
    positions `first` to `end` of `count`.
    """
    first, end, count = block

    def weigh(queries: Any, keys: Any) -> Any:
        scores = queries @ keys.transpose(1, 2) * scale
        if (cap := others.get("softcap")) is not None:
            scores = torch.tanh(scores / cap) * cap
        if mask is not None:
            scores = scores + mask[0, :, first:end, :count]
        positions = np.arange(first, end)[:, None]
        hidden = positions < np.arange(count)
        if change.window is not None:
            hidden = hidden | change.hides(positions, np.arange(count))
        scores = scores.masked_fill(torch.from_numpy(hidden).to(scores.device), -torch.inf).float()
        aside = []
        if change.softmax_one:
            aside.append(torch.zeros_like(scores[..., :1]))
        if (sinks := others.get("s_aux")) is not None:  # a learned score that takes weight
            aside.append(sinks.float().reshape(-1, 1, 1).expand(-1, scores.shape[1], 1))
        weights = torch.softmax(torch.cat([scores, *aside], dim=-1), dim=-1)[..., :count]
        return weights.to(queries.dtype)

    return weigh


def register() -> None:
    """Makes this attention known to transformers, with masks that it can add."""
    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, eager_mask)
