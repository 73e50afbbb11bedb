"""How well the count so far can be read off the states of a row by a linear map.

As Dai & Fan 2026, arXiv 2605.02028, ask of their models.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.reading import SampleReading

Matrix = NDArray[np.float64]
BLOCKS = 12
"""Blocks of lengths; every third one is held out."""
_RIDGES = 10.0 ** np.arange(-6, 5)
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
    x, y = states[~held], counts[~held]
    half = block[~held] % 2 == 0
    errors = np.zeros(len(_RIDGES))
    for known in (half, ~half) if half.any() and not half.all() else ():
        errors += np.square(_ridge(x[known], y[known], x[~known]) - y[~known]).sum(axis=1)
    read: Matrix = _ridge(x, y, states[held])[int(errors.argmin())]
    return read


def _ridge(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
    """(ridges, M): what the map reads of `new` (M, C), fitted to x (N, C) and y, for each ridge."""
    middle, level = x.mean(axis=0), y.mean()
    spread = x.std(axis=0)
    scale = np.where(spread > 0, spread, 1)
    fitted, asked = (x - middle) / scale, (new - middle) / scale
    if fitted.shape[0] <= fitted.shape[1]:  # states are wide
        values, vectors = np.linalg.eigh(fitted @ fitted.T)
        turned, between = vectors.T @ (y - level), asked @ fitted.T @ vectors
    else:
        values, vectors = np.linalg.eigh(fitted.T @ fitted)
        turned, between = vectors.T @ (fitted.T @ (y - level)), asked @ vectors
    weights = turned / (np.clip(values, 0, None) + len(x) * _RIDGES[:, None] + 1e-9)
    read: Matrix = level + weights @ between.T
    return read
