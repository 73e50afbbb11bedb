"""Which rotary pairs a model uses.

Barbero et al. 2025, arXiv 2410.06205.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eyechart.harness.satellites.probe.inside import Array, Event
from eyechart.harness.satellites.probe.measures.states import Watch
from eyechart.harness.satellites.probe.reading import Reading


class Rotary(Watch):
    """The norm of each pair of numbers that is turned, on average over heads and the row.

    Pairs come from the one that turns fastest to the slowest.
    """

    wants: frozenset[Event] = frozenset(["projections"])

    def __init__(self, row: Sequence[int], width: int) -> None:
        """`width`: numbers of a head that are turned."""
        self._row, self._width = list(row), width
        self._readings: list[Reading] = []

    def projections(self, layer: int, queries: Array, keys: Array, values: Array) -> None:
        del values
        for name, heads in (("query_norm", queries), ("key_norm", keys)):
            turned = heads[self._row][..., : self._width]
            norms = np.hypot(*np.split(turned, 2, axis=-1)).mean(axis=(0, 1), dtype=float)
            self._readings += [
                Reading(name, float(norm), layer, pair) for pair, norm in enumerate(norms)
            ]
            if norms.any():
                share = float((norms * _fast(len(norms))).sum() / norms.sum())
                self._readings.append(Reading(f"{name}_fast", share, layer))

    def readings(self) -> Iterator[Reading]:
        yield from self._readings


def _fast(pairs: int) -> NDArray[np.float64]:
    """(pairs,): how much of each pair is in the faster half; a middle one is in both."""
    return np.clip(pairs / 2 - np.arange(pairs), 0, 1)
