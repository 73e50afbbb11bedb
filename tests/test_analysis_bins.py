"""Bins of lengths: which lengths share one, and where they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eyechart.harness.analysis.length.bins import Bins, group_sums
from eyechart.harness.spec import Line, lines_of
from tests.curves import LINES


class TestUsual:
    """Bins of an eighth of an octave."""

    def test_there_are_eight_an_octave_and_one_more(self) -> None:
        """The first is at the shortest length, the last at the longest or near it."""
        assert Bins(10, 20).count == 9
        assert Bins(10, 10).count == 1
        assert Bins(5, 500).count == round(8 * math.log2(100)) + 1

    def test_a_length_is_in_the_nearest_bin(self) -> None:
        """By log length; beyond the bins in the last one."""
        assert Bins(10, 40).places([9, 10.0, 10.4, 10.5, 20.0, 40.0, 50]).tolist() == [
            *(0, 0, 0, 1, 8, 16, 16)
        ]

    def test_places_give_lengths_back(self) -> None:
        """Between two bins too; never beyond what was asked."""
        bins = Bins(10, 40)
        assert [bins.length(place) for place in (0, 8, 16)] == pytest.approx([10, 20, 40])
        assert bins.length(4) == pytest.approx(10 * math.sqrt(2))
        assert (bins.length(-1), bins.length(17)) == (10, 40)
        assert bins.octave(2.5) == 2.5 / 8


class TestOwn:
    """An exact length has its own bin where it would otherwise share one with another line."""

    @pytest.mark.parametrize(
        ("lines", "own"),
        [
            (lines_of((5, 10), "none"), ()),
            (lines_of((40, 44), "none"), ()),
            (lines_of((40, 41, 160), "none"), (40, 41)),
            (lines_of((5, 1000, 1001, 5000), "none"), (1000, 1001)),
            ([Line(40, 38, 40), Line.exact(41)], (41,)),
            ([Line(40, 35, 45), Line.exact(40)], (40,)),
            (LINES, ()),
        ],
    )
    def test_which(self, lines: list[Line], own: tuple[int, ...]) -> None:
        """Bands share bins with each other; an exact length shares one with no line."""
        bins = Bins.of(lines)
        assert bins.own == own
        for length in own:
            place = bins.places([length])[0]
            assert bins.length(place) == pytest.approx(length)
            assert bins.places([length - 1, length + 1]).tolist() != [place, place]
        assert (bins.shortest, bins.longest) == (lines[0].low, max(line.high for line in lines))
        assert Bins.of(lines, 9999.0).longest == 9999

    @pytest.mark.parametrize(
        "lengths", [range(5, 120), (1, 2, 3), (98, 99), (9999, 10_000, 50_001)]
    )
    def test_all_lengths_are_told_apart(self, lengths: range | tuple[int, ...]) -> None:
        """Centres ascend, and each length that would share a bin is at the centre of its own."""
        bins = Bins.of(lines_of(lengths, "none"))
        assert (np.diff(bins.centres) > 0).all()
        places = bins.places(list(lengths))
        assert len(set(places.tolist())) == len(lengths)
        assert places.tolist() == sorted(places.tolist())
        assert bins.count < len(lengths) + 8 * math.log2(lengths[-1] / lengths[0]) + 4
        assert [bins.length(place) for place in places] == pytest.approx(list(lengths), rel=0.045)

    def test_other_bins_stay(self) -> None:
        """Only the bins around are cut."""
        usual, cut = Bins(5, 500).centres, Bins(5, 500, (40, 41)).centres
        far = (usual < math.log2(34 / 5)) | (usual > math.log2(48 / 5))
        assert np.isin(usual[far], cut).all()
        assert len(cut) == len(usual) + 3

    def test_a_shorter_range_has_the_same_bins(self) -> None:
        """As far as it goes."""
        long, short = Bins(5, 500, (40, 41)), Bins(5, 90, (40, 41))
        assert long.centres[: short.count].tolist() == short.centres.tolist()


def test_groups_are_of_neighbours() -> None:
    """Four of an octave, however many bins they have."""
    values = np.arange(10.0)
    assert group_sums(values, np.arange(10) / 8).tolist() == [1, 5, 9, 13, 17]
    centres = np.array([0, 0.1, 0.2, 0.24, 0.25, 0.3, 0.5, 0.6, 0.7, 0.8])
    assert group_sums(np.stack([values, values]), centres).tolist() == [[6, 9, 21, 9]] * 2
