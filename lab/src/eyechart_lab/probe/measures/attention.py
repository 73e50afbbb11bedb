"""Attention sinks and the dispersion of the softmax.

Xiao et al. 2023, arXiv 2309.17453; Gu et al. 2024, arXiv 2410.10781 (the rate of sinks); Veličković
et al. 2024, arXiv 2410.01104.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.inside import Array, Positions, Wants, Watcher
from eyechart_lab.probe.reading import SampleReading

SINKS = (0.3, 0.8)
"""Mean weights on the first token from which a head is a sink."""


class Attention(Watcher):
    """Some numbers of the weights of each head and position; no matrix of weights is kept."""

    def __init__(self, row: Sequence[int], count: int) -> None:
        """`row`: places of the row's tokens; `count`: tokens of the prompt."""
        self._row = np.array([place for place in row if place > 0], int)
        """Without the prompt's first position, which only attends to itself."""
        self._in_row = np.isin(np.arange(count), row)
        self._count = count
        self.wants: Wants = {"attention": range(count)}
        self._of_layer: dict[int, _Layer] = {}

    def resume(self, earlier: Attention, upto: int) -> None:
        """Takes over what another has seen before position `upto`, where both prompts are equal."""
        for layer, known in earlier._of_layer.items():
            self._of_layer.setdefault(layer, _Layer(self._count)).take(known, upto)
        self.wants = {"attention": range(upto, self._count)}

    def attention(self, layer: int, at: Positions, weights: Array) -> None:
        mine = self._of_layer.setdefault(layer, _Layer(self._count))
        mine.add(at, weights)
        if at[-1] == self._count - 1:
            mine.in_row = weights[:, -1, : self._count][:, self._in_row].sum(axis=1, dtype=float)

    def readings(self) -> Iterator[SampleReading]:
        """The values for each layer and head, as far as the row has positions for them."""
        others = self._count - 1
        layers = self._of_layer
        if others and layers:
            on_first = np.concatenate([one.of["first"][:, 1:].mean(1) for one in layers.values()])
            for limit in SINKS:
                yield SampleReading(f"sinks_{limit}", float((on_first > limit).mean()))
        for layer, mine in layers.items():
            of_heads = mine.at_the_end()
            if others:
                of_heads["first_token"] = mine.of["first"][:, 1:].mean(axis=1)
            if len(self._row):
                of_heads |= mine.over(self._row)
            for name, values in of_heads.items():
                for head, value in enumerate(values):
                    yield SampleReading(name, float(value), layer, head)


_KEPT = ("first", "previous", "diagonal", "entropy", "largest")


class _Layer:
    """What is kept of one layer: (H, T) each."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.of: dict[str, NDArray[np.float64]] = {}
        self.in_row: NDArray[np.float64] = np.zeros(0)
        """(H,): the weight of the end on the row."""

    def _room(self, heads: int) -> None:
        if not self.of:
            self.of = {name: np.zeros((heads, self._count)) for name in _KEPT}

    def take(self, known: _Layer, upto: int) -> None:
        self._room(len(known.of["first"]))
        for name, values in self.of.items():
            values[:, :upto] = known.of[name][:, :upto]

    def add(self, at: Positions, weights: Array) -> None:
        """Adds a block (H, P, T) of positions."""
        self._room(len(weights))
        rows = np.arange(len(at))
        self.of["first"][:, at] = weights[:, :, 0]
        self.of["diagonal"][:, at] = weights[:, rows, at]
        self.of["previous"][:, at] = weights[:, rows, np.maximum(at - 1, 0)]
        self.of["entropy"][:, at] = _entropy(weights)
        self.of["largest"][:, at] = weights.max(axis=-1)

    def over(self, row: NDArray[np.intp]) -> dict[str, NDArray[np.float64]]:
        """(H,) each: means over the row."""
        chosen = {name: values[:, row] for name, values in self.of.items() if name != "first"}
        chosen["entropy_share"] = chosen["entropy"] / np.log(row + 1)
        return {name: values.mean(axis=1) for name, values in chosen.items()}

    def at_the_end(self) -> dict[str, NDArray[np.float64]]:
        entropy = self.of["entropy"][:, -1]
        return {
            "largest_end": self.of["largest"][:, -1],
            "entropy_end": entropy,
            "attended_end": np.exp(entropy),
            "row_weight_end": self.in_row,
        }


def _entropy(weights: Array) -> NDArray[np.float64]:
    """(H, b): the entropy of each position's weights, in nats."""
    logs = np.log(np.where(weights > 0, weights, 1))
    entropy: NDArray[np.float64] = -np.einsum("hbt,hbt->hb", weights, logs, dtype=float)
    return entropy
