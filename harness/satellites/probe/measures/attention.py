"""Attention sinks and the dispersion of the softmax.

Xiao et al. 2023, arXiv 2309.17453; Gu et al. 2024, arXiv 2410.10781 (the rate of sinks); Veličković
et al. 2024, arXiv 2410.01104.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eyechart.harness.satellites.probe.inside import Array, Event
from eyechart.harness.satellites.probe.measures.states import Watch
from eyechart.harness.satellites.probe.reading import Reading

SINKS = (0.3, 0.8)
"""Mean weights on the first token from which a head is a sink."""


class Attention(Watch):
    """Sums of the weights of each head; no matrix of weights is kept."""

    wants: frozenset[Event] = frozenset(["attention"])

    def __init__(self, row: Sequence[int], count: int) -> None:
        """`row`: places of the row's tokens; `count`: tokens of the prompt."""
        self._in_row = np.zeros(count, bool)
        self._in_row[list(row)] = True
        self._count = count
        self._of_layer: dict[int, _Sums] = {}

    def attention(self, layer: int, first: int, weights: Array) -> None:
        sums = self._of_layer.setdefault(layer, _Sums(len(weights)))
        sums.add(first, weights, self._in_row)

    def readings(self) -> Iterator[Reading]:
        """The values for each layer and head, as far as the row has positions for them."""
        others = self._count - 1
        if others and self._of_layer:
            on_first = np.concatenate([sums.on_first for sums in self._of_layer.values()]) / others
            for limit in SINKS:
                yield Reading(f"sinks_{limit}", float((on_first > limit).mean()))
        for layer, sums in self._of_layer.items():
            of_heads = dict(sums.at_the_end)
            if others:
                of_heads["first_token"] = sums.on_first / others
            if sums.rows:
                of_heads |= {name: total / sums.rows for name, total in sums.of_row.items()}
            for name, values in of_heads.items():
                for head, value in enumerate(values):
                    yield Reading(name, float(value), layer, head)


class _Sums:
    """The sums of one layer, (H,) each."""

    def __init__(self, heads: int) -> None:
        self.on_first: NDArray[np.float64] = np.zeros(heads)
        """Weight on the first token, summed over all positions but the first."""
        self.of_row: dict[str, NDArray[np.float64]] = {
            name: np.zeros(heads)
            for name in ("previous", "diagonal", "entropy", "entropy_share", "largest")
        }
        """Sums over the row, without the prompt's first position, which only attends to itself."""
        self.at_the_end: dict[str, NDArray[np.float64]] = {}
        """Values at the last position that was added."""
        self.rows = 0

    def add(self, first: int, weights: Array, in_row: NDArray[np.bool_]) -> None:
        """Adds a block (H, b, T) of positions from `first` on."""
        positions = np.arange(first, first + weights.shape[1])
        self.on_first += weights[:, positions > 0, 0].sum(axis=1, dtype=float)
        entropy = _entropy(weights)  # (H, b)
        largest = weights.max(axis=-1)
        chosen = in_row[positions] & (positions > 0)
        self.rows += int(chosen.sum())
        places, at = np.flatnonzero(chosen), positions[chosen]
        of_row = self.of_row
        of_row["diagonal"] += weights[:, places, at].sum(axis=1, dtype=float)
        of_row["previous"] += weights[:, places, at - 1].sum(axis=1, dtype=float)
        of_row["entropy"] += entropy[:, chosen].sum(axis=1)
        of_row["entropy_share"] += (entropy[:, chosen] / np.log(at + 1)).sum(axis=1)
        of_row["largest"] += largest[:, chosen].sum(axis=1, dtype=float)
        self.at_the_end = {
            "largest_end": largest[:, -1].astype(float),
            "entropy_end": entropy[:, -1],
            "attended_end": np.exp(entropy[:, -1]),
            "row_weight_end": weights[:, -1, in_row].sum(axis=1, dtype=float),
        }


def _entropy(weights: Array) -> NDArray[np.float64]:
    """(H, b): the entropy of each position's weights, in nats."""
    logs = np.log(np.where(weights > 0, weights, 1))
    entropy: NDArray[np.float64] = -np.einsum("hbt,hbt->hb", weights, logs, dtype=float)
    return entropy
