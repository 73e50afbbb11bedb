"""How well the count so far can be read off the states of a row by a linear map.

As Dai & Fan 2026, arXiv 2605.02028, ask of their models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.probe.reading import Reading

Matrix = NDArray[np.float64]
BLOCKS = 12
"""Blocks of lengths; every third one is held out."""
BEYOND = 0.7
"""Share of the lengths that a map is fitted to which is judged beyond them."""
_RIDGES = 10.0 ** np.arange(-6, 5)
_NEAR = 0.5
ENOUGH = 0.85
"""Share of readings within a half up to which a count can be read off."""
_LEAST = 24
"""States below which nothing is fitted."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a linear map reads on states that it was not fitted to."""

    counts: Matrix
    read: Matrix

    def readings(self, suffix: str, layer: int | None) -> Iterator[Reading]:
        apart = np.abs(self.read - self.counts)
        spread = float(np.square(self.counts - self.counts.mean()).sum())
        yield Reading(f"error{suffix}", float(apart.mean()), layer)
        yield Reading(f"within_half{suffix}", float((apart <= _NEAR).mean()), layer)
        if spread > 0:
            left = float(np.square(self.read - self.counts).sum())
            yield Reading(f"r2{suffix}", 1 - left / spread, layer)


def counter_readings(
    states: Matrix, counts: Matrix, positions: Matrix, layer: int | None
) -> Iterator[Reading]:
    """Readings of one layer from states (N, C) at `positions` of their rows, (N,), where the count
    is `counts`, (N,); none where there are too few.

    The ridge is chosen on blocks of lengths that the map is fitted to.
    """
    if len(states) < _LEAST or np.ptp(counts) == 0:
        return
    block = np.minimum(
        (positions - positions.min()) * BLOCKS // (np.ptp(positions) + 1), BLOCKS - 1
    ).astype(int)
    held = block % 3 == 1
    inside = _fit(states, counts, block, held)
    yield from inside.readings("", layer)
    yield Reading("reads_to", _reads_to(inside), layer)
    beyond = positions > positions.min() + BEYOND * np.ptp(positions)
    yield from _fit(states, counts, block, beyond).readings("_beyond", layer)


def position_readings(counts: Matrix, positions: Matrix) -> Iterator[Reading]:
    """The same from the position alone, for comparison."""
    for reading in counter_readings(positions[:, None], counts, positions, None):
        yield Reading(f"position_{reading.quantity}", reading.value)


def _fit(states: Matrix, counts: Matrix, block: NDArray[np.intp], held: NDArray[np.bool_]) -> Fit:
    """Fits to the states that are not `held` out, and reads the others."""
    known = ~held
    x, y, blocks = states[known], counts[known], block[known]
    parts = np.unique(blocks)
    errors = np.zeros(len(_RIDGES))
    for part in parts[1:-1] if len(parts) > 2 else parts:  # noqa: PLR2004  ends are extrapolated
        out = blocks == part
        if out.all() or not out.any():
            continue
        read = _ridge(x[~out], y[~out], x[out])
        errors += np.square(read - y[out]).sum(axis=1)
    best = int(errors.argmin())
    return Fit(counts[held], _ridge(x, y, states[held])[best])


def _ridge(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
    """(ridges, M): what the map reads of `new` (M, C), fitted to x (N, C) and y, for each ridge.

    In the form with a matrix of N × N, since states are wide.
    """
    middle, level = x.mean(axis=0), y.mean()
    spread = x.std(axis=0)
    scale = np.where(spread > 0, spread, 1)
    fitted, asked = (x - middle) / scale, (new - middle) / scale
    values, vectors = np.linalg.eigh(fitted @ fitted.T)
    turned = vectors.T @ (y - level)
    between = asked @ fitted.T @ vectors
    weights = turned / (np.clip(values, 0, None) + len(x) * _RIDGES[:, None] + 1e-9)
    read: Matrix = level + weights @ between.T
    return read


def _reads_to(fit: Fit) -> float:
    """The largest count such that of all states up to it enough are read within a half."""
    order = np.argsort(fit.counts, kind="stable")
    near = np.abs(fit.read - fit.counts)[order] <= _NEAR
    share = np.cumsum(near) / np.arange(1, len(near) + 1)
    counts = fit.counts[order]
    last_of_count = np.append(counts[1:] != counts[:-1], True)
    reached = counts[(share >= ENOUGH) & last_of_count]
    return float(reached.max()) if reached.size else 0.0
