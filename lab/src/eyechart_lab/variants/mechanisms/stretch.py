"""Stretching: a trained model with rotary positions, asked for longer rows.

Formulas and their sources are those of `eyechart_lab.probe.intervention`, since a finished model of
others can be stretched in the same ways.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from eyechart_lab.probe.distances import Chunks, Distances, Rectified
from eyechart_lab.probe.intervention import Intervention
from eyechart_lab.variants.choices import DualChunk, DynamicNtk, LeakyReRope, ReRope, Stretch
from eyechart_lab.variants.mechanism import Mechanism
from eyechart_lab.variants.mechanisms.places import Move, RowPositions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def change_of(stretch: Mechanism) -> Intervention:
    """What stretching changes in the frequencies of rotary positions."""
    if isinstance(stretch, Stretch):
        return Intervention(scaling=stretch.name, factor=stretch.factor)
    if isinstance(stretch, DualChunk) and stretch.yarn > 1:
        return Intervention(scaling="yarn", factor=stretch.yarn)
    return Intervention()


def frequencies_of(
    stretch: Mechanism, base: float, width: int, trained_window: int, tokens: int = 0
) -> tuple[NDArray[np.float32], float]:
    """(width / 2,): the angle of each pair from one position to the next, and the factor of cosines
    and sines. `trained_window` is the number of tokens of the longest text of the training, and
    `tokens` those so far, on which dynamic NTK depends.
    """
    change = change_of(stretch)
    return change.frequencies(base, width, trained_window, tokens), change.rotary_size


def grows(stretch: Mechanism) -> bool:
    """Whether frequencies depend on the number of tokens so far."""
    return isinstance(stretch, DynamicNtk)


def distances_of(stretch: Mechanism, trained_window: int) -> Distances | None:
    """What changes the distances of pairs; `None` if nothing does."""
    if isinstance(stretch, DualChunk):
        return Chunks(trained_window)
    if isinstance(stretch, ReRope):
        return Rectified(stretch.window, math.inf)
    if isinstance(stretch, LeakyReRope):
        return Rectified(stretch.window, stretch.slower)
    return None


def moves_of(distances: Distances | None, places: RowPositions) -> list[Move]:
    """The moves of pairs to the distances that they are to have."""
    if distances is None:
        return []
    return [
        Move(band.queries - places.queries, band.keys - places.keys, band.where[:, None])
        for band in distances.bands(places.queries, places.keys)
        if bool(band.where.any())
    ]
