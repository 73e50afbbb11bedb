"""How well the count so far can be read off the states of a row by a linear map.

As Dai & Fan 2026, arXiv 2605.02028, ask of their models.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.measures.ridge import RIDGES, Matrix, Ridges
from eyechart_lab.probe.reading import SampleReading

BLOCKS = 12
"""Blocks of lengths; every third one is held out."""
_NEAR = 0.5
_LEAST = 24
"""States below which nothing is fitted."""


def counter_readings(
    states: Matrix, counts: Matrix, positions: Matrix, layer: int | None, prefix: str = ""
) -> Iterator[SampleReading]:
    """Readings of one layer from states (N, C) at `positions` of their rows, (N,), where the count
    is `counts`, (N,); none where there are too few.
    """
    if len(states) < _LEAST or np.ptp(counts) == 0:
        return
    places = (positions - positions.min()) * BLOCKS // (np.ptp(positions) + 1)
    block = np.minimum(places, BLOCKS - 1).astype(int)
    held = block % 3 == 1
    read, known = _read(states, counts, block, held), counts[held]
    apart = np.abs(read - known)
    spread = float(np.square(known - known.mean()).sum())
    yield SampleReading(f"{prefix}error", float(apart.mean()), layer)
    yield SampleReading(f"{prefix}within_half", float((apart <= _NEAR).mean()), layer)
    if spread > 0:
        left = float(np.square(read - known).sum())
        yield SampleReading(f"{prefix}r2", 1 - left / spread, layer)


def position_readings(counts: Matrix, positions: Matrix) -> Iterator[SampleReading]:
    """The same from the position alone, for comparison."""
    return counter_readings(positions[:, None], counts, positions, None, "position_")


def _read(
    states: Matrix, counts: Matrix, block: NDArray[np.intp], held: NDArray[np.bool_]
) -> Matrix:
    """What a linear map reads of the states that are held out, fitted to the others.

    The ridge is the one with which either of two halves of these blocks is best read by the other.
    """
    x, y = states[~held], counts[~held, None]
    half = block[~held] % 2 == 0
    errors = np.zeros(len(RIDGES))
    for known in (half, ~half) if half.any() and not half.all() else ():
        apart = Ridges(x[known], y[known]).read(x[~known]) - y[~known]
        errors += np.square(apart).sum(axis=(1, 2))
    read: Matrix = Ridges(x, y).read(states[held])[int(errors.argmin()), :, 0]
    return read
