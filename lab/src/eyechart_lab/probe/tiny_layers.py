"""One pass through a Llama-style model in NumPy that shows its inside, and its derivative.

It computes what `providers.tiny.runtime` computes, one prompt at a time, with the weights of norms
apart from the matrices. Letters in shape comments are those of `probe.inside`; b: positions of
a block, F: feed-forward width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eyechart.providers.intervention import Intervention
from eyechart.providers.tiny.weights import Array, Config, Tensors
from eyechart_lab.probe.inside import Event, Positions, Precision, Trunk, Watcher
from eyechart_lab.probe.measures.states import shown_of

_BLOCK = 1 << 22
"""Attention weights in memory at once, at most, where a block has more than one position."""
Round = Callable[[Array], Array]


def to_bfloat16(values: Array) -> Array:
    """The nearest numbers with 8 significant bits, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


def _as_it_is(values: Array) -> Array:
    return values


_ROUND: dict[Precision, Round] = {"float32": _as_it_is, "bfloat16": to_bfloat16}


@dataclass(frozen=True, slots=True)
class Block:
    """The weights of one layer, each matrix (in, out)."""

    before_attention: Array  # (C,)
    q: Array  # (C, H D)
    k: Array  # (C, K D)
    v: Array  # (C, K D)
    o: Array  # (H D, C)
    before_feed_forward: Array  # (C,)
    gate: Array  # (C, F)
    up: Array  # (C, F)
    down: Array  # (F, C)

    def rounded(self, to: Round) -> Block:
        return Block(**{name: to(getattr(self, name)) for name in self.__slots__})

    def maps(self) -> Iterator[tuple[str, Array]]:
        for name in ("q", "k", "v", "o", "gate", "up", "down"):
            yield f"{name}_proj", getattr(self, name)


class Layers:
    """A model whose passes can be watched. Its methods do not change it."""

    def __init__(
        self,
        config: Config,
        tensors: Tensors,
        precision: Precision = "float32",
        intervention: Intervention = Intervention(),
    ) -> None:
        self.config = config
        self._intervention = intervention
        self._round = to = _ROUND[precision]
        self.embedding = to(
            tensors.take("model.embed_tokens.weight", config.vocabulary, config.hidden)
        )
        self.blocks = [
            _read_block(tensors, config, layer).rounded(to) for layer in range(config.layers)
        ]
        self._final = to(tensors.take("model.norm.weight", config.hidden))
        self._head = self.embedding
        if not config.tied:
            self._head = to(tensors.take("lm_head.weight", config.vocabulary, config.hidden))
        tensors.check_all_read()
        self._frequencies = intervention.frequencies(
            config.rope_theta, config.head_width, config.window
        )

    def forward(
        self, ids: Sequence[int], watcher: Watcher | None, last: int, trunk: Trunk | None = None
    ) -> Array:
        """(last, V): the logits of the last positions; `trunk` as in `Inside.forward`."""
        start = 0 if trunk is None else trunk.start(ids, last)
        embedded = self.embedding[np.asarray(ids[start:])]
        if trunk is None:
            return self.forward_from(embedded, watcher, last)
        if trunk.kept is not None:
            earlier = [(keys[:start], values[:start]) for keys, values in trunk.kept]
            return self.forward_from(embedded, watcher, last, earlier)
        kept: list[tuple[Array, Array]] = []
        logits = self.forward_from(embedded, watcher, last, keep=kept)
        trunk.ids, trunk.kept = tuple(ids), kept
        return logits

    def forward_from(
        self,
        embedded: Array,
        watcher: Watcher | None,
        last: int,
        earlier: Sequence[tuple[Array, Array]] = (),
        keep: list[tuple[Array, Array]] | None = None,
    ) -> Array:
        """(last, V): the logits of the last positions, from (S, C) embeddings.

        `earlier`: for each layer keys and values, (T - S, K, D), of the positions before them. Keys
        and values of all positions are added to `keep`.
        """
        to, x = self._round, embedded
        start = len(earlier[0][0]) if earlier else 0
        count = start + len(embedded)
        show = _Show(watcher, start, count)
        turns = self._turns(count, start)
        for layer, block in enumerate(self.blocks):
            show("residual", layer, x)
            q, k, v = self._projected(x, block)
            q, k = self._placed(q, k, turns, start)
            show("projections", layer, q, k, v)
            if earlier:
                k, v = (np.concatenate(pair) for pair in zip(earlier[layer], (k, v), strict=True))
            if keep is not None:
                keep.append((k, v))
            mixed = np.empty_like(q)  # (S, H, D)
            for first, weights in self._weights(q, k):
                show.attention(layer, first, weights)
                end = first + weights.shape[1]
                mixed[first - start : end - start] = to(_mix(weights, v[:end]))
            show("heads", layer, mixed)
            x = to(x + to(mixed.reshape(len(x), -1) @ block.o))
            x = to(x + self._fed(self._normed(x, block.before_feed_forward), block))
        show("residual", self.config.layers, x)
        show.final(lambda rows: self._normed(x[rows], self._final))
        logits: Array = to(self._normed(x[-last:], self._final) @ self._head.T)
        return logits

    def gradients(self, ids: Sequence[int], weights: Array) -> Array:
        """(T, C): derivative of `weights` (V,) times the last position's logits by each embedding.

        Only the stream before each layer is kept; the rest is computed again on the way back.
        """
        x = self.embedding[np.asarray(ids)]
        turns = self._turns(len(ids))
        before: list[Array] = []
        for block in self.blocks:
            before.append(x)
            x = self._attended(x, block, turns)[0]
            x = x + self._fed(self._normed(x, block.before_feed_forward), block)
        slope: Array = np.zeros_like(x)
        slope[-1:] = self._back_through_norm((weights @ self._head)[None], x[-1:], self._final)
        for block, entering in zip(reversed(self.blocks), reversed(before), strict=True):
            slope = self._back(slope, entering, block, turns)
        return slope

    def _back(self, slope: Array, x: Array, block: Block, turns: tuple[Array, Array]) -> Array:
        """(T, C): the derivative by the stream before a layer, from that by the one after it."""
        middle, q, k, v = self._attended(x, block, turns)
        normed = self._normed(middle, block.before_feed_forward)
        gate, up = normed @ block.gate, normed @ block.up
        sigmoid = _sigmoid(gate)
        hidden = slope @ block.down.T  # (T, F), by the product of both
        by_gate = hidden * up * sigmoid * (1 + gate * (1 - sigmoid))
        by_up = hidden * gate * sigmoid
        by_normed = by_gate @ block.gate.T + by_up @ block.up.T
        slope = slope + self._back_through_norm(by_normed, middle, block.before_feed_forward)

        by_mixed = (slope @ block.o.T).reshape(q.shape)  # (T, H, D)
        by_q, by_k, by_v = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
        shape = (k.shape[1], -1)  # key heads and the query heads of each
        scale = np.float32(q.shape[-1] ** -0.5)
        for first, weights in self._weights(q, k):
            end = first + weights.shape[1]
            grouped = weights.reshape(*shape, *weights.shape[1:])  # (K, G, b, end)
            of_mixed = (
                by_mixed[first:end].transpose(1, 0, 2).reshape(*shape, end - first, q.shape[-1])
            )
            of_queries = q[first:end].transpose(1, 0, 2).reshape(of_mixed.shape)
            by_v[:end] += np.einsum("kgbt,kgbd->tkd", grouped, of_mixed, optimize=True)
            by_weights = np.einsum("kgbd,tkd->kgbt", of_mixed, v[:end], optimize=True)
            by_scores = grouped * (by_weights - (by_weights * grouped).sum(axis=-1, keepdims=True))
            by_scores *= scale
            of_q = np.einsum("kgbt,tkd->kgbd", by_scores, k[:end], optimize=True)
            by_q[first:end] = of_q.reshape(q.shape[1], end - first, -1).transpose(1, 0, 2)
            by_k[:end] += np.einsum("kgbt,kgbd->tkd", by_scores, of_queries, optimize=True)
        cosines, sines = turns
        by_q, by_k = (
            self._turned(one, (cosines, -sines)) for one in (by_q * self._times(len(x)), by_k)
        )
        count = len(x)
        by_normed = (
            by_q.reshape(count, -1) @ block.q.T
            + by_k.reshape(count, -1) @ block.k.T
            + by_v.reshape(count, -1) @ block.v.T
        )
        back: Array = slope + self._back_through_norm(by_normed, x, block.before_attention)
        return back

    def _attended(
        self, x: Array, block: Block, turns: tuple[Array, Array]
    ) -> tuple[Array, Array, Array, Array]:
        """The stream after attention, and turned queries, turned keys, and values."""
        q, k, v = self._projected(x, block)
        q, k = self._placed(q, k, turns)
        mixed = np.empty_like(q)
        for first, weights in self._weights(q, k):
            end = first + weights.shape[1]
            mixed[first:end] = _mix(weights, v[:end])
        return x + mixed.reshape(len(x), -1) @ block.o, q, k, v

    def _projected(self, x: Array, block: Block) -> tuple[Array, Array, Array]:
        """(T, H, D), (T, K, D), (T, K, D): queries, keys and values, without positions."""
        normed, width = self._normed(x, block.before_attention), self.config.head_width
        q, k, v = (
            self._round(normed @ matrix).reshape(len(x), -1, width)
            for matrix in (block.q, block.k, block.v)
        )
        return q, k, v

    def _turns(self, count: int, start: int = 0) -> tuple[Array, Array]:
        """(T - start, 1, D / 2) each: cosine and sine of the angle of each pair at each position
        from `start` on.
        """
        angles = np.arange(start, count, dtype=np.float32)[:, None, None] * self._frequencies
        size = np.float32(self._intervention.rotary_size)
        return self._round(np.cos(angles) * size), self._round(np.sin(angles) * size)

    def _times(self, count: int, start: int = 0) -> Array:
        """(T - start, 1, 1): what the scores of each position are multiplied by."""
        return self._intervention.temperature(np.arange(start + 1, count + 1))[:, None, None]

    def _placed(
        self, q: Array, k: Array, turns: tuple[Array, Array], start: int = 0
    ) -> tuple[Array, Array]:
        """Queries, with their temperature, and keys, with their positions turned in."""
        turned = self._turned(q, turns)
        if self._intervention.log_n is not None:
            turned = self._round(turned * self._times(start + len(q), start))
        return turned, self._turned(k, turns)

    def _turned(self, heads: Array, turns: tuple[Array, Array]) -> Array:
        """Queries or keys with their positions turned in; pair i is at i and i + D / 2."""
        to, (cosines, sines) = self._round, turns
        one, other = np.split(heads, 2, axis=-1)
        return np.concatenate(
            [to(to(one * cosines) - to(other * sines)), to(to(other * cosines) + to(one * sines))],
            axis=-1,
        )

    def _weights(self, q: Array, k: Array) -> Iterator[tuple[int, Array]]:
        """First position and attention weights (H, b, end) of blocks of positions, each with the
        keys up to the block's end; queries (S, H, D) are those of the last S of T keys.
        """
        to, (_, heads, width) = self._round, q.shape
        count, start = len(k), len(k) - len(q)
        group = heads // k.shape[1]
        scale = np.float32(width**-0.5)
        keys = k.transpose(1, 2, 0)  # (K, D, T)
        step = max(1, min(count, _BLOCK // (heads * count)))
        for first in range(start, count, step):
            end = min(count, first + step)
            queries = (
                q[first - start : end - start]
                .transpose(1, 0, 2)
                .reshape(-1, group * (end - first), width)
            )
            scores = to(to(queries @ keys[..., :end]) * scale).reshape(heads, end - first, end)
            positions = np.arange(first, end)
            ahead = positions[:, None] < positions
            scores[..., first:][:, ahead] = -np.inf
            if self._intervention.window is not None:
                scores[:, self._intervention.hides(positions[:, None], np.arange(end))] = -np.inf
            yield first, to(_softmax(scores, one=self._intervention.softmax_one))

    def _fed(self, normed: Array, block: Block) -> Array:
        """(T, C): the output of the feed-forward part, SwiGLU."""
        to = self._round
        gate, up = to(normed @ block.gate), to(normed @ block.up)
        return to(to(to(gate * _sigmoid(gate)) * up) @ block.down)

    def _normed(self, x: Array, weights: Array) -> Array:
        """(T, C): RMSNorm."""
        to = self._round
        return to(to(x * self._inverse_size(x)) * weights)

    def _inverse_size(self, x: Array) -> Array:
        """(T, 1): one over the root of the mean square."""
        mean_square = np.einsum("tc,tc->t", x, x) / np.float32(x.shape[1])
        inverse: Array = 1 / np.sqrt(mean_square + np.float32(self.config.norm_eps))
        return inverse[:, None]

    def _back_through_norm(self, slope: Array, x: Array, weights: Array) -> Array:
        """(T, C): the derivative by the input of RMSNorm, from that by its output."""
        inverse = self._inverse_size(x)
        scaled = slope * weights
        along = (scaled * x).mean(axis=1, keepdims=True) * inverse**2
        back: Array = inverse * (scaled - x * along)
        return back


class _Show:
    """Shows a watcher what a pass over the positions from `start` to `count` computes."""

    def __init__(self, watcher: Watcher | None, start: int, count: int) -> None:
        self._watcher, self._start, self._count = watcher, start, count
        self._at = {} if watcher is None else shown_of(watcher.wants, start, count)

    def __call__(self, event: Event, layer: int, *values: Array) -> None:
        """Shows the rows of some values, (S, …)."""
        if (at := self._at.get(event)) is not None:
            getattr(self._watcher, event)(layer, at, *(one[at - self._start] for one in values))

    def final(self, normed: Callable[[Positions], Array]) -> None:
        if self._watcher is not None and (at := self._at.get("final")) is not None:
            self._watcher.final(at, normed(at - self._start))

    def attention(self, layer: int, first: int, weights: Array) -> None:
        """Shows a block (H, b, end), with zeros for the positions after it."""
        if self._watcher is None or (at := self._at.get("attention")) is None:
            return
        at = at[(first <= at) & (at < first + weights.shape[1])]
        if len(at):
            wide: Array = np.zeros((len(weights), len(at), self._count), np.float32)
            wide[..., : weights.shape[-1]] = weights[:, at - first]
            self._watcher.attention(layer, at, wide)


def _softmax(scores: Array, *, one: bool) -> Array:
    """The softmax over the last axis, or that off by one; overwrites the scores."""
    largest = scores.max(axis=-1, keepdims=True)
    if one:
        largest = np.maximum(largest, 0)
    scores -= largest
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    scores /= total + np.exp(-largest) if one else total
    return scores


def _mix(weights: Array, values: Array) -> Array:
    """(b, H, D): weights (H, b, end) times values (end, K, D)."""
    keys = values.shape[1]
    grouped = weights.reshape(keys, -1, values.shape[0])  # (K, G b, end)
    mixed = grouped @ values.transpose(1, 0, 2)  # (K, G b, D)
    return mixed.reshape(*weights.shape[:2], -1).transpose(1, 0, 2)


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        sigmoid: Array = np.reciprocal(1 + np.exp(-x))
    return sigmoid


def _read_block(tensors: Tensors, config: Config, layer: int) -> Block:
    """The weights of a layer; raises `SetupError` if a tensor is missing or does not fit."""

    def take(name: str, *shape: int) -> Array:
        return tensors.take(f"model.layers.{layer}.{name}.weight", *shape)

    width, keys = config.hidden, config.key_heads * config.head_width
    queries, inner = config.heads * config.head_width, config.feed_forward
    return Block(
        before_attention=take("input_layernorm", width),
        q=take("self_attn.q_proj", queries, width).T,
        k=take("self_attn.k_proj", keys, width).T,
        v=take("self_attn.v_proj", keys, width).T,
        o=take("self_attn.o_proj", width, queries).T,
        before_feed_forward=take("post_attention_layernorm", width),
        gate=take("mlp.gate_proj", inner, width).T,
        up=take("mlp.up_proj", inner, width).T,
        down=take("mlp.down_proj", width, inner).T,
    )
