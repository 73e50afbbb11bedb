"""A Llama-style decoder in plain NumPy: batched, with a key-value cache.

The prompts of one call are packed one after another without padding, and each attends only to
itself. During decoding, rows of different lengths share one array; positions after the end of a row
get the weight exp(-inf), which is 0. So a reply depends on the other rows of its batch only through
the rounding of float32.

Letters in shape comments: B rows, T positions, C hidden width, H query heads, K key heads,
G = H / K query heads for each key head, D width of a head, F feed-forward width, V vocabulary.
"""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from eyechart.providers.in_process.halving import StoppedError
from eyechart.providers.tiny.weights import (
    Array,
    Config,
    Indices,
    Layer,
    Tensors,
    input_first,
    read_config,
    read_layer,
    rotations,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_PREFILL_TOKENS = 1024
"""Most tokens of prompts in one forward pass; its arrays are then about as large as the cache."""
_SCORES = 1 << 17
"""Attention scores in memory at once: 512 KiB, the second-level cache of one core."""
_ROTATIONS = 1 << 12
"""Positions whose rotations are computed at once; a longer prompt computes its own."""
_CACHE_BYTES = 192 << 20
"""Most bytes of keys and values in memory at once, of all workers together."""


@dataclass(frozen=True, slots=True)
class GeneratedReply:
    """A reply."""

    ids: tuple[int, ...]
    """Token ids, including the end token if there is one."""
    finish_reason: Literal["stop", "length"]


class Sampling(NamedTuple):
    """How the tokens of a reply are drawn."""

    temperature: float
    seed: int


class _Job(NamedTuple):
    """A reply that is to be generated."""

    prompt: Sequence[int]
    room: int
    """Most tokens of the reply."""
    choose: Callable[[Array], int] | None
    """The next token from logits of shape (V,); `None` takes the likeliest."""


class _Cache:
    """Keys and values of all layers, one row for each prompt; zeros where none are written yet."""

    def __init__(self, config: Config, rows: int, capacity: int) -> None:
        layers, heads, width = config.layers, config.key_heads, config.head_width
        self.keys: Array = np.zeros((layers, rows, heads, width, capacity), np.float32)
        """(layers, B, K, D, capacity)"""
        self.values: Array = np.zeros((layers, rows, heads, capacity, width), np.float32)
        """(layers, B, K, capacity, D)"""

    def reserve(self, length: int, maximum: int) -> None:
        """Makes room for `length` positions, and for half as many more up to `maximum`."""
        capacity = self.keys.shape[-1]
        if length > capacity:
            added = (0, min(maximum, max(length, capacity + capacity // 2)) - capacity)
            none = (0, 0)
            self.keys = np.pad(self.keys, (none, none, none, none, added))
            self.values = np.pad(self.values, (none, none, none, added, none))

    def move(self, source: int, target: int, length: int) -> None:
        """Copies the first `length` positions of row `source` to row `target`."""
        self.keys[:, target, :, :, :length] = self.keys[:, source, :, :, :length]
        self.values[:, target, :, :length] = self.values[:, source, :, :length]


class TinyModel:
    """A model in memory. Its methods change nothing but the number of rotations that are kept, so
    many threads may use it at once.
    """

    def __init__(self, config: Config, tensors: Tensors) -> None:
        c = self.config = config
        self._embedding = tensors.take("model.embed_tokens.weight", c.vocabulary, c.hidden)
        self._layers = [read_layer(tensors, c, index) for index in range(c.layers)]
        head = self._embedding
        if not c.tied:
            head = tensors.take("lm_head.weight", c.vocabulary, c.hidden)
        self._head = input_first(head * tensors.take("model.norm.weight", c.hidden))  # (C, V)
        self._rotations = rotations(c, min(c.window, _ROTATIONS))
        tensors.check_all_read()
        self.parameters = tensors.parameters
        self.weights_sha256 = tensors.sha256

    @classmethod
    def load(cls, folder: Path) -> TinyModel:
        """Loads a model from a folder in Hugging Face form.

        Raises:
            SetupError: a file is missing or damaged, or has a feature that is not implemented.
        """
        config = read_config(folder)
        return cls(config, Tensors(folder / "model.safetensors", config))

    def logits(self, ids: Sequence[int]) -> Array:
        """(T, V): for each position of one prompt, the logits of the next token."""
        cache = _Cache(self.config, 1, len(ids))
        with np.errstate(over="ignore"):
            return self._prefill([ids], cache, 0, last_only=False)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        max_new_tokens: Sequence[int],
        *,
        workers: int = 1,
        on_finished: Callable[[int, GeneratedReply], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        sampling: Sequence[Sampling | None] = (),
    ) -> list[GeneratedReply]:
        """Replies in the order of the prompts: greedy, or drawn where `sampling` says how.

        A reply ends with an end token, at its limit in `max_new_tokens`, or when prompt and reply
        fill the window. `on_finished(place, reply)` is called when a reply ends, on the thread of
        its worker; `place` is that of the prompt in `prompts`. `should_stop()` is called before
        each step.

        Raises:
            ValueError: a prompt is empty, or leaves no room for a token of reply.
            StoppedError: `should_stop` returned true.
        """
        room = [
            min(limit, self.config.window - len(prompt))
            for prompt, limit in zip(prompts, max_new_tokens, strict=True)
        ]
        if min(room, default=1) < 1 or not all(prompts):
            raise ValueError(f"no room for a token of reply: {min(room, default=0)}, or no prompt")
        replies: dict[int, GeneratedReply] = {}

        def work(members: list[int]) -> None:
            jobs = [
                _Job(
                    list(prompts[index]),
                    room[index],
                    _chooser(prompts[index], sampling[index] if sampling else None),
                )
                for index in members
            ]
            with np.errstate(over="ignore"):
                for place, reply in self._replies(jobs, should_stop):
                    replies[members[place]] = reply
                    if on_finished is not None:
                        on_finished(members[place], reply)

        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(work, self._batches(prompts, room, workers)):
                pass
        return [replies[index] for index in range(len(prompts))]

    def logprobs(self, before: Sequence[int], tails: Sequence[Sequence[int]]) -> list[list[float]]:
        """The natural logarithms of the probabilities of each token of the `tails`, each of which
        comes after `before`. That is computed once for all tails that fit into memory together.
        """
        capacity = len(before) + max(map(len, tails))
        at_once = max(1, _CACHE_BYTES // (capacity * self.config.cache_bytes_per_token))
        order = sorted(range(len(tails)), key=lambda place: -len(tails[place]))
        found: list[list[float]] = [[] for _ in tails]
        with np.errstate(over="ignore"):
            for start in range(0, len(tails), at_once):
                places = order[start : start + at_once]
                values = self._logprobs(before, [tails[place] for place in places], capacity)
                for place, of_tail in zip(places, values, strict=True):
                    found[place] = of_tail
        return found

    def _logprobs(
        self, before: Sequence[int], tails: Sequence[Sequence[int]], capacity: int
    ) -> list[list[float]]:
        """`logprobs` of tails that are ordered from long to short."""
        going_on = sum(len(tail) > 1 for tail in tails)
        cache = _Cache(self.config, max(1, going_on), capacity)
        logits = self._prefill([before], cache, 0, last_only=True)
        for row in range(1, going_on):
            cache.move(0, row, len(before))
        logits = np.repeat(logits, len(tails), axis=0)
        found: list[list[float]] = [[] for _ in tails]
        for step in range(len(tails[0])):
            rows = sum(len(tail) > step for tail in tails)
            ids = np.array([tail[step] for tail in tails[:rows]])
            chosen = _log_softmax(logits[:rows])[np.arange(rows), ids]
            for values, value in zip(found, chosen.tolist(), strict=False):
                values.append(value)
            rows = sum(len(tail) > step + 1 for tail in tails)
            if rows:
                logits = self._step(ids[:rows], np.full(rows, len(before) + step), cache)
        return found

    def _batches(
        self, prompts: Sequence[Sequence[int]], room: Sequence[int], workers: int
    ) -> list[list[int]]:
        """Batches of places in `prompts`: similar lengths together, the longest first, and each
        batch small enough for its share of the memory.
        """
        share = sum(map(len, prompts)) // workers
        positions = _CACHE_BYTES // workers // self.config.cache_bytes_per_token
        batches: list[list[int]] = []
        used = capacity = 0
        for index in sorted(range(len(prompts)), key=lambda index: -len(prompts[index])):
            length = len(prompts[index])
            capacity = max(capacity, length + room[index])
            full = batches and (len(batches[-1]) + 1) * capacity > positions
            if full or not batches or (used >= share and used >= _PREFILL_TOKENS):
                batches.append([])
                used, capacity = 0, length + room[index]
            batches[-1].append(index)
            used += length
        return batches

    def _replies(
        self, jobs: Sequence[_Job], should_stop: Callable[[], bool]
    ) -> Iterator[tuple[int, GeneratedReply]]:
        """Place and reply of each job as it ends.

        When a row ends, the last row moves into it, so that the rows stay without gaps.
        """
        capacity = max(len(job.prompt) + job.room for job in jobs)
        lengths = np.array([len(job.prompt) for job in jobs])
        cache = _Cache(self.config, len(jobs), min(capacity, int(lengths.max()) + 32))
        firsts = []
        for start, end in _packs(lengths.tolist()):
            if should_stop():
                raise StoppedError
            packed = [job.prompt for job in jobs[start:end]]
            logits = self._prefill(packed, cache, start, last_only=True)
            firsts.append(_chosen(logits, jobs[start:end]))
        ids = np.concatenate(firsts)
        places = list(range(len(jobs)))
        replies: list[list[int]] = [[] for _ in jobs]
        while True:
            for row in reversed(range(len(places))):
                replies[row].append(int(ids[row]))
                ended = replies[row][-1] in self.config.eos_ids
                if not ended and len(replies[row]) < jobs[places[row]].room:
                    continue
                yield (
                    places[row],
                    GeneratedReply(tuple(replies[row]), "stop" if ended else "length"),
                )
                last = len(places) - 1
                ids[row] = ids[last]
                if row < last:
                    cache.move(last, row, int(lengths[last]))
                lengths[row] = lengths[last]
                places[row], replies[row] = places[last], replies[last]
                ids, lengths = ids[:last], lengths[:last]
                del places[last], replies[last]
            if not places:
                return
            if should_stop():
                raise StoppedError
            cache.reserve(int(lengths.max()) + 1, capacity)
            ids = _chosen(self._step(ids, lengths, cache), [jobs[place] for place in places])
            lengths += 1

    def _prefill(
        self, prompts: Sequence[Sequence[int]], cache: _Cache, row: int, *, last_only: bool
    ) -> Array:
        """Logits of packed prompts, (T, V), or with `last_only` those of the last position of each
        prompt, (B, V). Fills the cache from row `row` on.

        With `last_only` the last layer computes only these positions.
        """
        lengths = [len(prompt) for prompt in prompts]
        positions = np.concatenate([np.arange(length) for length in lengths])
        x = self._embedding[np.concatenate([np.asarray(prompt) for prompt in prompts])]  # (T, C)
        for index, layer in enumerate(self._layers):
            heads = self._projected(x, layer, positions)
            cuts = last_only and layer is self._layers[-1]
            keys, values = cache.keys[index], cache.values[index]
            parts, at, to = [], 0, row
            for length, same in groupby(lengths):
                count = sum(1 for _ in same)
                part = heads[at : at + count * length].reshape(count, length, -1, heads.shape[-1])
                rows = slice(to, to + count)
                parts.append(
                    self._attend(part, keys[rows], values[rows], length - 1 if cuts else 0)
                )
                at, to = at + count * length, to + count
            if cuts:
                x = x[np.cumsum(lengths) - 1]
            x = self._mixed(x, np.concatenate(parts), layer)
        return self._normed(x) @ self._head

    def _attend(self, heads: Array, keys: Array, values: Array, first: int) -> Array:
        """Causal attention of prompts of the same length, from position `first` on.

        heads (B, T, H + 2K, D), keys (B, K, D, >=T), values (B, K, >=T, D); the result is
        (B * (T - first), H * D). Queries are computed in blocks, each with the keys up to the
        block's end.
        """
        rows, length, _, width = heads.shape
        heads_n, keys_n = self.config.heads, self.config.key_heads
        by_head = heads.transpose(0, 2, 1, 3)  # (B, H + 2K, T, D)
        keys[..., :length] = by_head[:, heads_n : heads_n + keys_n].swapaxes(-1, -2)
        values[:, :, :length] = by_head[:, heads_n + keys_n :]
        queries = by_head[:, :heads_n].reshape(rows, keys_n, -1, length, width)
        group = queries.shape[2]
        mixed: Array = np.empty((rows, length - first, keys_n, group, width), np.float32)
        block = min(len(_CAUSAL_MASK), max(16, _SCORES // (rows * heads_n * length)))
        for start in range(first, length, block):
            end = min(length, start + block)
            block_queries = queries[:, :, :, start:end].reshape(rows, keys_n, -1, width)
            scores = block_queries @ keys[..., :end]  # (B, K, G * block, end)
            diagonal = scores.reshape(rows, keys_n, group, end - start, end)[..., start:]
            diagonal += _CAUSAL_MASK[: end - start, : end - start]
            attended = _weighted(scores, values[:, :, :end])
            attended = attended.reshape(rows, keys_n, group, end - start, width)
            mixed[:, start - first : end - first] = attended.transpose(0, 3, 1, 2, 4)
        return mixed.reshape(-1, heads_n * width)

    def _step(self, ids: Indices, lengths: Indices, cache: _Cache) -> Array:
        """(B, V): the logits after one more token in each row; adds the tokens to the cache.

        `lengths` are those of the rows before this token.
        """
        rows, longest = np.arange(len(ids)), int(lengths.max()) + 1
        heads_n, keys_n = self.config.heads, self.config.key_heads
        mask: Array = np.where(np.arange(longest) > lengths[:, None], -np.inf, 0)
        mask = mask.astype(np.float32)[:, None, None]  # (B, 1, 1, T)
        x = self._embedding[ids]  # (B, C)
        for index, layer in enumerate(self._layers):
            heads = self._projected(x, layer, lengths)
            keys, values = cache.keys[index], cache.values[index]
            keys[rows, :, :, lengths] = heads[:, heads_n : heads_n + keys_n]
            values[rows, :, lengths] = heads[:, heads_n + keys_n :]
            queries = heads[:, :heads_n].reshape(len(ids), keys_n, -1, heads.shape[-1])
            scores = queries @ keys[: len(ids), :, :, :longest]  # (B, K, G, T)
            scores += mask
            attended = _weighted(scores, values[: len(ids), :, :longest])
            x = self._mixed(x, attended.reshape(len(ids), -1), layer)
        return self._normed(x) @ self._head

    def _projected(self, x: Array, layer: Layer, positions: Indices) -> Array:
        """(T, H + 2K, D): queries and keys with rotary position embedding, then values."""
        heads = (self._normed(x) @ layer.qkv).reshape(len(x), -1, self.config.head_width)
        rotated = heads[:, : self.config.heads + self.config.key_heads].view(np.complex64)
        rotated *= self._rotations_of(positions)[:, None]
        return heads

    def _rotations_of(self, positions: Indices) -> NDArray[np.complex64]:
        """(T, D/2): the rotary embedding of each position."""
        kept, count = self._rotations, int(positions.max()) + 1
        if count > len(kept):
            count = min(self.config.window, max(count, 2 * len(kept)))
            self._rotations = kept = rotations(self.config, count)
        return kept[positions]

    def _mixed(self, x: Array, attended: Array, layer: Layer) -> Array:
        """(T, C): adds the output of attention (T, H * D) and of the feed-forward part, SwiGLU."""
        x = x + attended @ layer.out
        both = self._normed(x) @ layer.gate_up  # (T, 2F)
        gate, up = np.split(both, 2, axis=1)
        hidden: Array = np.negative(gate)
        np.exp(hidden, out=hidden)
        hidden += 1
        np.divide(gate, hidden, out=hidden)
        hidden *= up
        return x + hidden @ layer.down

    def _normed(self, x: Array) -> Array:
        """(T, C): RMSNorm without its weights, which are part of the next matrix."""
        mean_square: Array = np.einsum("tc,tc->t", x, x) / np.float32(x.shape[1])
        normed: Array = x / np.sqrt(mean_square + np.float32(self.config.norm_eps))[:, None]
        return normed


def _weighted(scores: Array, values: Array) -> Array:
    """softmax(scores) @ values; overwrites the scores."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    weighted: Array = scores @ values
    weighted /= scores.sum(axis=-1, keepdims=True)
    return weighted


def _log_softmax(logits: Array) -> NDArray[np.float64]:
    """(B, V): the logarithms of the probabilities of the next token."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=-1, keepdims=True)
    logs: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def _chooser(prompt: Sequence[int], how: Sampling | None) -> Callable[[Array], int] | None:
    """Draws the tokens of a reply; `None` for a greedy one.

    The largest of the logits over the temperature, each with noise of Gumbel's distribution added,
    is a draw from their softmax. The noise follows from seed and prompt alone, so that a reply can
    be drawn again in any order and any batch.
    """
    if how is None or not how.temperature:
        return None
    rng = np.random.default_rng([how.seed, zlib.crc32(np.asarray(prompt, np.int64).tobytes())])
    return lambda logits: int((logits / how.temperature + rng.gumbel(size=len(logits))).argmax())


def _chosen(logits: Array, jobs: Sequence[_Job]) -> Indices:
    """(B,): the next token of each job, from logits of shape (B, V)."""
    ids: Indices = logits.argmax(axis=-1)
    for row, job in enumerate(jobs):
        if job.choose is not None:
            ids[row] = job.choose(logits[row])
    return ids


def _packs(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges (start, end) of prompts with at most `_PREFILL_TOKENS` together, or of one prompt."""
    start = tokens = 0
    for end, length in enumerate(lengths):
        if end > start and tokens + length > _PREFILL_TOKENS:
            yield start, end
            start, tokens = end, 0
        tokens += length
    yield start, len(lengths)


_CAUSAL_MASK: Array = np.triu(np.full((256, 256), -np.inf, np.float32), 1)
"""Added to the scores of a block of queries with the keys of the same block."""
