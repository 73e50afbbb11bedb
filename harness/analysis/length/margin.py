"""What a margin is over the lines that are compared: a difference of areas, and a factor of length.
A share is held against the areas, and a factor against the effective lengths.

A model that is right a factor less far has the same curve at shorter lengths, so its area is less
by the octaves of that factor, as a share of those between the shortest and the longest line. That
is exact where accuracy falls from 1 to that of guesses within the lines. Where it falls less, the
same difference of areas is a larger factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eyechart.harness.analysis.length.curve import Curve, areas_under
from eyechart.harness.settings.judging import Margin, factor_of


def as_points(margin: Margin, curves: Sequence[Curve]) -> float:
    """A margin as a difference of the mean areas of these conditions, 0 to 1; above 1 for a factor
    that the lines do not span, and infinite where they have one length.
    """
    factor = factor_of(margin)
    return float(margin) if factor is None else math.log2(factor) * _of_an_octave(curves)


def as_factor(margin: Margin, curves: Sequence[Curve]) -> float | None:
    """A margin as a factor of length, above 1; `None` for a share, where the lines have
    one length.
    """
    factor, fall = factor_of(margin), _of_an_octave(curves)
    if factor is not None or math.isinf(fall):
        return factor
    return float(2 ** (float(margin) / fall))


def is_at_floor(curves: Sequence[Curve], margin: Margin) -> bool:
    """Whether the mean area of these conditions is at most `margin` above that of guessing. Nearly
    all answers are wrong then, and a fall of more than `margin` could not be seen.
    """
    area = float(np.mean([curve.area_above_guesses for curve in curves]))
    return area <= as_points(margin, curves)


def _of_an_octave(curves: Sequence[Curve]) -> float:
    """How much less the mean area of these conditions is for a model that is right half as far."""
    falls = []
    for curve in curves:
        octaves = math.log2(curve.lengths[-1] / curve.lengths[0])
        height = 1 - float(areas_under(curve.lengths, curve.chance[None])[0])
        falls.append(height / octaves if octaves else math.inf)
    return sum(falls) / len(falls)
