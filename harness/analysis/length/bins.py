"""Bins of lengths, an eighth of an octave each; an exact length shares its bin with no line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.spec import Line

BINS_AN_OCTAVE = 8
_GROUPS_AN_OCTAVE = 4


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins in log length, from the shortest length asked to the longest.

    Their centres are an eighth of an octave apart. Where a length has a bin of its own, that bin is
    cut out of the others.
    """

    shortest: float
    longest: float
    own: tuple[int, ...] = ()
    """Lengths that have a bin of their own, ascending."""
    exact: tuple[int, ...] = ()
    """Lengths that were asked as such, ascending; each is alone in its bin."""

    @classmethod
    def of(cls, lines: Sequence[Line], longest: float = 0.0) -> Bins:
        """Bins for these lines, continued to `longest`. An exact length has a bin of its own where
        it would share one with another line.
        """
        lows, highs = np.array([(line.low, line.high) for line in lines]).T
        bins = cls(float(lows.min()), max(float(highs.max()), longest))
        first, last = bins.places(lows), bins.places(highs)
        exact = {
            int(low): ((first <= place) & (place <= last)).sum() > 1
            for low, high, place in zip(lows, highs, first, strict=True)
            if low == high
        }
        own = tuple(length for length in sorted(exact) if exact[length])
        return replace(bins, own=own, exact=tuple(sorted(exact)))

    @property
    def centres(self) -> Floats:
        """How far each bin's centre is above the shortest length, in octaves: shape (B,)."""
        return _cells(self.shortest, self.longest, self.own)[1]

    @property
    def count(self) -> int:
        return len(self.centres)

    def places(self, lengths: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The bin of each length; the first or the last one of a length beyond them."""
        edges, _ = _cells(self.shortest, self.longest, self.own)
        octaves = np.log2(np.asarray(lengths, float) / self.shortest)
        return np.searchsorted(edges, octaves).astype(np.int64)

    def read_at(self, lengths: npt.ArrayLike) -> Floats:
        """The places, with fractions, at which a posterior is read for lengths within the range.

        A bin stands for the exact length that was asked in it, else for its centre; between two
        bins the place changes evenly with the octaves.
        """
        stands = self.centres.copy()
        if self.exact:
            stands[self.places(self.exact)] = np.log2(np.array(self.exact) / self.shortest)
        octaves = np.log2(np.asarray(lengths, float) / self.shortest)
        return np.interp(octaves, stands, np.arange(self.count))

    def octaves(self, places: Floats) -> Floats:
        """Octaves of places beyond the shortest length; a place may lie between two bins."""
        return np.interp(places, np.arange(self.count), self.centres)

    def length(self, place: float) -> float:
        """The length at a place, limited to the range asked."""
        return self.length_at(self.octave(place))

    def octave(self, place: float) -> float:
        """Octaves of one place, see `octaves`."""
        return float(self.octaves(np.array([place]))[0])

    def length_at(self, octave: float) -> float:
        """The length this many octaves beyond the shortest, limited to the range asked."""
        return min(max(self.shortest * 2**octave, self.shortest), self.longest)


@lru_cache(maxsize=256)
def _cells(shortest: float, longest: float, own: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The octaves between neighbouring bins, (B - 1,), and of the bins' centres, (B,)."""
    last = math.log2(longest / shortest)
    usual = np.arange(round(last * BINS_AN_OCTAVE) + 1) / BINS_AN_OCTAVE
    half = 0.5 / BINS_AN_OCTAVE
    edges = usual[1:] - half
    if not own:
        return edges, usual
    below, at, above = (np.log2((np.array(own) + side) / shortest) for side in (-0.5, 0.0, 0.5))
    is_cut = ((below[:, None] < edges) & (edges < above[:, None])).any(axis=0)
    edges = np.unique(np.concatenate([edges[~is_cut], below, above]))
    edges = edges[(edges > 0) & (edges < last)]
    ends = np.array([0.0, *edges, max(last, float(usual[-1]) + half)])
    centres = (ends[:-1] + ends[1:]) / 2
    for values in (usual, at):
        centres[np.searchsorted(edges, values)] = values
    return edges, centres


def groups_of(centres: Floats) -> Floats:
    """The number of the quarter octave that each bin lies in: shape (B,), ascending."""
    groups: Floats = np.floor(centres * _GROUPS_AN_OCTAVE)
    return groups


def group_sums(values: Floats, centres: Floats) -> Floats:
    """Sums over groups of neighbouring bins, a quarter of an octave each.

    `values` has shape (…, B), and `centres` the octaves of the bins, (B,).
    """
    first = np.flatnonzero(np.diff(groups_of(centres), prepend=-1))
    return np.add.reduceat(values, first, axis=-1)
