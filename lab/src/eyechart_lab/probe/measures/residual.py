"""Rank collapse: how alike the states of a row's symbols are, layer by layer.

Dong et al. 2021, arXiv 2103.03404; Roy & Vetterli 2007, "The effective rank".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.inside import Array, Positions, Wants, Watcher
from eyechart_lab.probe.reading import SampleReading

Matrix = NDArray[np.float64]


class Residual(Watcher):
    """The stream before each layer, and after the last one, at the tokens of the row."""

    def __init__(self, row: Sequence[int]) -> None:
        self.wants: Wants = {"residual": row}
        self._row = row
        self._parts: dict[int, list[Array]] = {}
        self._readings: list[SampleReading] = []

    def residual(self, layer: int, at: Positions, states: Array) -> None:
        parts = self._parts.setdefault(layer, [])
        parts.append(states)
        if at[-1] < self._row[-1]:
            parts[-1] = states.copy()  # the rest comes from another pass
            return
        values = np.concatenate(self._parts.pop(layer)).astype(float)
        norms = np.linalg.norm(values, axis=1)
        found = {"norm": float(norms.mean()), "effective_rank": effective_rank(values)}
        size = float(np.linalg.norm(values))
        if size > 0:
            found["rank_one_distance"] = rank_one_distance(values)
        self._readings += [SampleReading(name, value, layer) for name, value in found.items()]

    def readings(self) -> Iterator[SampleReading]:
        yield from self._readings


def effective_rank(values: Matrix) -> float:
    """Exp of the entropy of the singular values' shares of their sum: 1 to the rank; 0 of zeros."""
    short = values if values.shape[0] <= values.shape[1] else values.T
    squares = np.linalg.eigvalsh(short @ short.T)
    singular = np.sqrt(np.clip(squares, 0, None))
    # what rounding leaves of zeros would count as rank
    singular = singular[singular > singular.max(initial=0) * 1e-6]
    if not singular.size:
        return 0.0
    shares = singular / singular.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def rank_one_distance(values: Matrix) -> float:
    """‖X − 1xᵀ‖ / ‖X‖, Frobenius, with x the mean of the rows of X: 0 if all rows are equal."""
    return float(np.linalg.norm(values - values.mean(axis=0)) / np.linalg.norm(values))


def spectral_norm(matrix: Array, *, rounds: int = 1000) -> float:
    """The largest singular value, by power iteration, to a relative 1e-6."""
    direction = np.random.default_rng(0).normal(size=matrix.shape[1])
    double = matrix.astype(float)
    before = found = 0.0
    for _ in range(rounds):
        size = np.linalg.norm(direction)
        if not size > 0:
            return 0.0
        direction = double.T @ (double @ (direction / size))
        found = float(np.linalg.norm(direction)) ** 0.5
        if abs(found - before) <= found * 1e-9:
            break
        before = found
    return found
