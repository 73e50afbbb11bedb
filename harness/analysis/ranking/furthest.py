"""Which of many models sees furthest: the probability of each, from their posteriors together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.fit import OUTSIDE, Fit

_STEPS_AN_OCTAVE = 64
"""Steps of the scale on which posteriors meet; a bin of a fit has eight of them."""


def furthest(fits: Sequence[Fit]) -> list[float | None]:
    """For each fit the probability that its effective length is the longest: 0 to 1, 1 together
    where all of them lie within the lengths asked.

    `None` where the longest row asked may be too short for it, with a probability of 0.01 or more:
    nobody knows how far it sees. To the others it counts as no longer than that row.

    The posteriors are taken as independent. Where models have answered the same rows, errors that
    they share are in each of them, so that the probabilities are nearer to each other than need be.
    """
    if not fits:
        return []
    low = min(math.log2(one.bins.shortest) for one in fits)
    high = max(math.log2(one.bins.longest) for one in fits)
    scale = np.linspace(low, high, 2 + math.ceil((high - low) * _STEPS_AN_OCTAVE))
    below = np.array([_below(one, scale) for one in fits])
    middle = (below[:, 1:] + below[:, :-1]) / 2
    others = _products_of_others(middle)
    found = (np.diff(below, axis=1) * others).sum(axis=1)
    return [
        None if 1 - float(one.below[-1]) >= OUTSIDE else float(probability)
        for one, probability in zip(fits, found, strict=True)
    ]


def _below(one: Fit, scale: Floats) -> Floats:
    """Probability that the effective length is at most each length of `scale`, in octaves above 1:
    0 below the lengths asked, 1 from the longest one on.
    """
    found: Floats = 1 - one.reaches(2.0**scale)
    found[scale < math.log2(one.bins.shortest)] = 0.0
    found[scale >= math.log2(one.bins.longest)] = 1.0
    return found


def _products_of_others(values: Floats) -> Floats:
    """For each row the product of all other rows: shape (N, K)."""
    before, after = np.ones_like(values), np.ones_like(values)
    before[1:] = np.cumprod(values[:-1], axis=0)
    after[:-1] = np.cumprod(values[:0:-1], axis=0)[::-1]
    return before * after
