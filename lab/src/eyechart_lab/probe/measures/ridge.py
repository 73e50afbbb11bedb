"""Linear maps with a ridge, in closed form, for all ridges at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
RIDGES = 10.0 ** np.arange(-6, 5)
"""The penalties that are tried, for columns of size 1 and the mean of the squared errors."""


class Ridges:
    """Ridge regressions of y, shape (N, K), on x, shape (N, C): one linear map for each penalty in
    `RIDGES`. The columns of x are first scaled to mean 0 and standard deviation 1.
    """

    def __init__(self, x: Matrix, y: Matrix) -> None:
        self._middle, self._level = x.mean(axis=0), y.mean(axis=0)
        spread = x.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1)
        fitted, apart = (x - self._middle) / self._scale, y - self._level
        self._wide = fitted if fitted.shape[0] <= fitted.shape[1] else None  # states are wide
        square = fitted.T @ fitted if self._wide is None else fitted @ fitted.T
        values, self._vectors = np.linalg.eigh(square)
        turned = self._vectors.T @ (fitted.T @ apart if self._wide is None else apart)
        penalty = np.clip(values, 0, None) + len(x) * RIDGES[:, None] + 1e-9
        self._weights = turned / penalty[:, :, None]

    def read(self, new: Matrix) -> Matrix:
        """(ridges, M, K): what each map reads of (M, C)."""
        asked = (new - self._middle) / self._scale
        if self._wide is not None:
            asked = asked @ self._wide.T
        read: Matrix = self._level + asked @ self._vectors @ self._weights
        return read

    def directions(self, ridge: int) -> Matrix:
        """(K, C): what the map at this place of `RIDGES` multiplies a state with."""
        weights = self._vectors @ self._weights[ridge]
        if self._wide is not None:
            weights = self._wide.T @ weights
        found: Matrix = (weights / self._scale[:, None]).T
        return found
