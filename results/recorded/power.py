"""What a test of two variants can show."""

from __future__ import annotations

from typing import Any

import numpy as np

from results.recorded.contrasts import Strata, stratified_fisher

_POWER = 0.8
_DRAWS = 300
_STEPS = 9
"""Halvings of the range of falls."""
_LARGEST = 8.0
"""Largest fall that is tried, as a difference of log odds."""


def smallest_fall(strata: Strata, level: float) -> tuple[float, float]:
    """The accuracies, in percent, before and after the smallest fall that the stratified test shows
    at `level` in 80 % of repetitions.

    Before it, both variants have their common accuracy on each line; the fall is the same
    difference of log odds on every line. By simulation with a fixed seed.
    """
    n, other_n = (np.array([one[place] for one in strata]) for place in (1, 3))
    right = np.array([one[0] + one[2] for one in strata])
    shares = (right + 0.5) / (n + other_n + 1)
    low, high = 0.0, _LARGEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _power(shares, _fallen(shares, middle), n, other_n, level) < _POWER:
            low = middle
        else:
            high = middle
    after = _fallen(shares, high)
    return 100 * float(shares @ n / n.sum()), 100 * float(after @ other_n / other_n.sum())


def _fallen(shares: np.ndarray[Any, Any], by: float) -> np.ndarray[Any, Any]:
    odds = shares / (1 - shares) * np.exp(-by)
    return np.asarray(odds / (1 + odds))


def _power(
    first: np.ndarray[Any, Any],
    second: np.ndarray[Any, Any],
    n: np.ndarray[Any, Any],
    other_n: np.ndarray[Any, Any],
    level: float,
) -> float:
    rng = np.random.default_rng(0)
    shown = 0
    for _ in range(_DRAWS):
        columns = (rng.binomial(n, first), n, rng.binomial(other_n, second), other_n)
        shown += stratified_fisher(list(zip(*map(_ints, columns), strict=True))) <= level
    return shown / _DRAWS


def _ints(numbers: np.ndarray[Any, Any]) -> list[int]:
    return [int(number) for number in numbers]
