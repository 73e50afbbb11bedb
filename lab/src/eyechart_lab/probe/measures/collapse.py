"""Representational collapse: how far apart the states of rows of n and n + 1 symbols are.

Barbero et al. 2024, arXiv 2406.04267: Theorem 4.2, Proposition B.4, figure 5.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eyechart_lab.probe.inside import Array
from eyechart_lab.probe.measures.states import States
from eyechart_lab.probe.reading import SampleReading

LINE = 2.0**-7
"""Two numbers of bfloat16 between 1 and 2 are at least so far apart."""
ROUNDED = "_bfloat16"
"""The end of the names of distances in a pass that is rounded to bfloat16."""
AT = ("symbol", "end")
"""The last symbol of the row, and the end of the prompt: the places of `States` of a collapse."""


def distances(one: States, other: States, suffix: str = "") -> Iterator[SampleReading]:
    """The distances of two passes at both places; `suffix` names the precision."""
    for layer in one.outputs:
        apart = np.abs(one.outputs[layer] - other.outputs[layer])  # (2, H, D)
        for place, at in enumerate(AT):
            for head, values in enumerate(apart[place]):
                yield SampleReading(f"heads_l1_{at}{suffix}", float(values.sum()), layer, head)
                yield SampleReading(f"heads_linf_{at}{suffix}", float(values.max()), layer, head)
    for layer in one.streams:
        yield from _of_vectors("stream", one.streams[layer], other.streams[layer], suffix, layer)
    if one.ended is not None and other.ended is not None:
        yield from _of_vectors("final", one.ended, other.ended, suffix)


def weights_apart(
    one: States, other: States, row_end: int, suffix: str = ""
) -> Iterator[SampleReading]:
    """How much the attention of the last token differs between n and n + 1 symbols: the sum of the
    differences of all weights, 2 at most. Tokens after the row are compared with each other;
    `row_end` is the place after the last symbol of the shorter row.
    """
    for layer, weights in one.weights.items():
        longer = other.weights[layer]
        added = longer.shape[1] - weights.shape[1]
        widened = np.insert(weights, [row_end] * added, 0, axis=1)
        for head, apart in enumerate(np.abs(widened - longer).sum(axis=1, dtype=float)):
            yield SampleReading(f"weights_l1_end{suffix}", float(apart), layer, head)


def _of_vectors(
    what: str, one: Array, other: Array, suffix: str, layer: int | None = None
) -> Iterator[SampleReading]:
    """Readings of two states (2, C) each."""
    apart = np.abs(one - other)
    size = np.maximum(np.abs(one), np.abs(other)).max(axis=1)
    for place, at in enumerate(AT):
        yield SampleReading(f"{what}_l1_{at}{suffix}", float(apart[place].sum()), layer)
        yield SampleReading(f"{what}_linf_{at}{suffix}", float(apart[place].max()), layer)
        if size[place] > 0:
            relative = float(apart[place].max() / size[place])
            yield SampleReading(f"{what}_relative_{at}{suffix}", relative, layer)
        if suffix == ROUNDED:
            equal = float((apart[place] == 0).mean())
            yield SampleReading(f"{what}_equal_{at}{suffix}", equal, layer)
