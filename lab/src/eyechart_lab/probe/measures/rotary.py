"""Which rotary pairs a model uses.

Barbero et al. 2025, arXiv 2410.06205.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.inside import Array, Positions, Wants, Watcher
from eyechart_lab.probe.reading import SampleReading


class RotaryWatcher(Watcher):
    """The norm of each pair of numbers that is turned, on average over heads and the row.

    Pairs come from the one that turns fastest to the slowest.
    """

    def __init__(self, row: Sequence[int], width: int) -> None:
        """`width`: numbers of a head that are turned."""
        self.wants: Wants = {"projections": row}
        self._row, self._width = row, width
        self._sums: dict[tuple[int, str], NDArray[np.float64]] = {}
        """(pairs,): sums over the row of the mean norm of the heads."""

    def projections(
        self, layer: int, at: Positions, queries: Array, keys: Array, values: Array
    ) -> None:
        del at, values
        for name, heads in (("query_norm", queries), ("key_norm", keys)):
            turned = heads[..., : self._width]
            norms = np.hypot(*np.split(turned, 2, axis=-1)).mean(axis=1, dtype=float).sum(axis=0)
            self._sums[layer, name] = self._sums.get((layer, name), 0) + norms

    def readings(self) -> Iterator[SampleReading]:
        for (layer, name), sums in self._sums.items():
            norms = sums / len(self._row)
            for pair, norm in enumerate(norms):
                yield SampleReading(name, float(norm), layer, pair)
            if norms.any():
                share = float((norms * _fast(len(norms))).sum() / norms.sum())
                yield SampleReading(f"{name}_fast", share, layer)


def _fast(pairs: int) -> NDArray[np.float64]:
    """(pairs,): how much of each pair is in the faster half; a middle one is in both."""
    return np.clip(pairs / 2 - np.arange(pairs), 0, 1)
