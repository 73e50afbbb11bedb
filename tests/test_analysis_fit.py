"""The fit of one condition: its estimate, its interval, and the dispersion in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eyechart.harness.analysis.length.bins import Bins
from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.falling_curve import FallingCurve
from eyechart.harness.analysis.length.fit import Fit, fit
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.length.one_threshold import RowCorrelation
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import lines_of
from tests.curves import LINES, answers, banded, shares
from tests.simulated import LINES as MORE_LINES
from tests.simulated import logistic, simulated

NONE = np.zeros(0)
APART = RowCorrelation(0.0, np.zeros((0, 0)))


def two_levels(below: Floats) -> FallingCurve:
    """A posterior in which a model is always right, or with these probabilities never: (B,)."""
    levels = np.stack([below, 1 - below], -1)[None]
    return FallingCurve(below[None], levels, np.array([0.0, 1.0]), np.zeros(len(below)))


def known(*below: float) -> Fit:
    """A fit from length 16 on with these probabilities, one bin of an eighth of an octave each."""
    longest = 16 * 2 ** ((len(below) - 1) / 8)
    return Fit(Bins(16, longest), 0.85, NONE, NONE, two_levels(np.array(below)), NONE, APART, 1.0)


class TestEnds:
    """Estimate and interval from the probabilities alone."""

    def test_the_estimate_is_the_median(self) -> None:
        """Half-way between bins 7 and 9, which is an octave above the shortest."""
        found = known(*[0.0] * 8, 0.5, *[1.0] * 8)
        assert found.place(0.5) == 8
        assert found.median == Bound("=", 32)

    def test_between_two_bins_it_is_interpolated(self) -> None:
        """Linearly in probability."""
        assert known(0.0, 0.2, 0.6, 1.0).place(0.5) == pytest.approx(1.75)

    def test_it_is_a_whole_length_that_is_still_seen(self) -> None:
        """Rounded down; the ends of the interval are rounded outwards."""
        found = known(*[0.0] * 5, *[1.0] * 12)
        assert found.bins.length(found.place(0.5)) == pytest.approx(23.63, abs=0.01)
        assert found.median == Bound("=", 23)
        low, high = (found.bins.length(place) for place in (3.525, 5.475))
        assert found.interval() == (Bound("=", np.floor(low)), Bound("=", np.ceil(high)))

    @pytest.mark.parametrize(
        ("below", "median", "low", "high"),
        [
            ((0.0, 0.0, 0.0), ">", ">", ">"),
            ((1.0, 1.0, 1.0), "<", "<", "<"),
            ((0.1, 0.2, 0.3), ">", "<", ">"),
            ((0.0, 0.01, 0.3), ">", "=", ">"),
            ((0.6, 1.0, 1.0), "<", "<", "="),
            ((0.02, 0.5, 0.98), "=", "<", ">"),  # the half bin leaves the range
            ((0.005, 0.5, 0.995), "=", "=", "="),  # so it does here, but nothing lies there
        ],
    )
    def test_outside_the_tested_range_it_is_a_bound(
        self, below: tuple[float, ...], median: str, low: str, high: str
    ) -> None:
        """At the end of the range that it is beyond."""
        found = known(*below)
        signs = (found.median.sign, *(bound.sign for bound in found.interval()))
        assert signs == (median, low, high)
        ends = {"<": found.bins.shortest, ">": found.bins.longest}
        for bound in (found.median, *found.interval()):
            assert bound.length == ends.get(bound.sign, bound.length)

    @pytest.mark.parametrize("longest", [215, 225])
    def test_an_end_in_a_gap_is_exact(self, longest: int) -> None:
        """Whether the longest length lies above or below the middle of the last bin."""
        bins = Bins(50, longest)
        below = np.concatenate([np.zeros(5), np.linspace(0.1, 0.978, bins.count - 5)])
        found = Fit(
            bins, 0.85, NONE, NONE, two_levels(below), NONE, APART, 1.0, gaps=[(75, longest)]
        )
        assert found.between_quantiles()[1] == Bound("=", longest)

    @pytest.mark.parametrize(("last", "low"), [(1.0, "<"), (0.9, "=")])
    def test_a_lower_end_that_a_gap_moves_to_the_shortest_length(
        self, last: float, low: str
    ) -> None:
        """It is a bound where the crossing may lie below, unless the upper end is a bound too."""
        bins = Bins(50, 225)
        below = np.concatenate([np.linspace(0.02, 0.04, 5), np.linspace(0.5, last, bins.count - 5)])
        found = Fit(bins, 0.85, NONE, NONE, two_levels(below), NONE, APART, 1.0, gaps=[(50, 80)])
        assert found.between_quantiles()[0].sign == low

    def test_half_a_bin_is_added_to_both_ends(self) -> None:
        """A step between two bins is known no better than that; the width is in octaves."""
        found = known(*[0.0] * 8, *[1.0] * 8)
        assert found.octaves() == pytest.approx((0.95 + 1) / 8)
        assert found.octaves((0.5, 0.5)) == pytest.approx(1 / 8)
        assert known(0.1, 0.2, 0.3).octaves() == pytest.approx(2 / 8)  # the tested range

    def test_the_probability_to_reach_the_threshold(self) -> None:
        """At any length of the range; between two bins it changes evenly."""
        found = known(0.1, 0.2, 0.7)
        lengths = 16 * 2 ** np.array([0.0, 1 / 8, 3 / 16, 2 / 8])
        assert found.reaches(lengths) == pytest.approx([0.9, 0.8, 0.55, 0.3])

    @pytest.mark.parametrize("seed", range(40))
    def test_the_estimate_and_the_probability_are_one_reading(self, seed: int) -> None:
        """At the effective length the threshold is reached with one half or more, behind it with
        less; so no table has a model that sees to 515 and reaches the threshold at 500 with 0.49.
        """
        lines = tuple(lines_of((5, 10, 20, 40, 80, 160, 320), "none" if seed % 2 else "bands"))
        found = fit(simulated(logistic(50), 12, seed, lines), THRESHOLD)
        assert found.median.sign == "="
        at, behind = found.reaches(found.median.length + np.array([0.0, 1.0]))
        assert behind < 0.5 <= at + 1e-6

    def test_an_exact_length_is_read_from_its_own_answers(self) -> None:
        """110 lies off the centre of its bin; nothing there is mixed with the bin before, which has
        no answers.
        """
        lines = tuple(lines_of((10, 50, 100, 110), "none"))
        found = fit(
            simulated(lambda lengths: np.where(lengths < 110, 1.0, 0.0), 20, 0, lines), THRESHOLD
        )
        place = int(found.bins.places(110))
        assert found.bins.centres[place] != pytest.approx(np.log2(110 / 10))
        assert found.accuracy_at(110)[0] == found.accuracy[place]
        assert found.reaches(np.array(110.0)) == 1 - found.below[place]
        assert found.up_to(100).bins.exact == (10, 50, 100)

    def test_accuracy_and_probability_are_mixed_alike(self) -> None:
        """Between two bins the levels above the threshold have the probability to reach it."""
        found = fit(simulated(logistic(50), 12), THRESHOLD)
        for length in (12, 31, 47, 52, 203):
            place = float(found.bins.read_at(length))
            near = found.curve.levels[0, [int(place), int(place) + 1]]
            mixed = (1 - place % 1) * near[0] + place % 1 * near[1]
            reaching = mixed[found.curve.accuracies >= found.required].sum()
            assert reaching == pytest.approx(float(found.reaches(np.array(float(length)))))
            assert found.accuracy_at(length)[0] == pytest.approx(mixed @ found.curve.accuracies)


class TestFit:
    """From answers to probabilities."""

    def test_answers_are_counted_in_the_bin_of_their_length(self) -> None:
        """Not in that of their line; what was not scored is in none."""
        samples = banded(lambda length: float(length <= 60), np.random.default_rng(0))
        found = fit(samples, THRESHOLD)
        assert found.answered.sum() == samples.scored.sum()
        assert found.correct.sum() == samples.correct.sum()
        assert np.count_nonzero(found.answered) > 2 * len(LINES)
        scored = samples.scored.copy()
        scored[3:, :] = 0
        fewer = replace(
            samples,
            scored=scored,
            correct=samples.correct * scored,
            true_lengths=np.where(scored > 0, samples.true_lengths, np.nan),
        )
        assert fit(fewer, THRESHOLD).answered.sum() == 3 * len(LINES)

    @pytest.mark.parametrize(
        ("longest", "ends"),
        [
            (7, (Bound("<", 10), Bound("<", 10))),
            (10, (Bound("=", 10), Bound("=", 40))),
            (40, (Bound("=", 38), Bound("=", 43))),
            (41, (Bound("=", 41), Bound("=", 160))),
            (160, (Bound(">", 160), Bound(">", 160))),
        ],
    )
    def test_an_end_in_a_gap_is_the_length_beside_it(
        self, longest: int, ends: tuple[Bound, Bound]
    ) -> None:
        """Between 41 and 160 no reply says where the accuracy falls; 40 and 41 have no gap."""
        lines = lines_of([10, 40, 41, 160], "none")

        def perfect(lengths: Floats) -> Floats:
            return np.where(lengths <= longest, 1.0, 0.0)

        found = fit(simulated(perfect, 40, all_lines=lines), THRESHOLD)
        assert found.gaps == [(10, 40), (41, 160)]
        assert found.interval() == ends

    @pytest.mark.parametrize("longest", [40, 103])
    def test_neighbouring_lengths_are_told_apart(self, longest: int) -> None:
        """What is always right is within the effective length, and what is always wrong beyond."""
        lines = lines_of(range(longest - 1, longest + 3), "none")

        def perfect(lengths: Floats) -> Floats:
            return np.where(lengths <= longest, 1.0, 0.0)

        found = fit(simulated(perfect, 20, all_lines=lines), THRESHOLD)
        assert found.median == Bound("=", longest)
        low, high = found.interval()
        assert low.length <= longest < high.length

    def test_bands_that_meet_or_overlap_have_no_gap(self) -> None:
        """Lines without an answer do."""
        assert fit(simulated(logistic(60), 20), THRESHOLD).gaps == []
        overlapping = lines_of([30, 32, 34, 60], "fifth")
        assert fit(simulated(logistic(40), 20, all_lines=overlapping), THRESHOLD).gaps == [(41, 48)]
        some = {line: 20 for line in MORE_LINES if line.length != 50}
        (gap,) = fit(simulated(logistic(60), some), THRESHOLD).gaps
        assert gap == (40, 62)

    def test_the_lapse_rate_is_that_of_the_shortest_length(self) -> None:
        """With many answers it is the share of wrong ones."""
        table = np.random.default_rng(1).random((2000, 7)) < [0.93] * 4 + [0.1] * 3
        assert fit(answers(table), THRESHOLD).lapse == pytest.approx(0.07, abs=0.015)

    def test_answers_that_go_together_weigh_less(self) -> None:
        """The same counts, once with rows that are right up to one and the same place."""
        rows = np.linspace(0, 1, 50, endpoint=False)[:, None]
        shares_of = np.array([1.0, 0.95, 0.9, 0.8, 0.6, 0.3, 0.1])
        together = rows < shares_of
        rng = np.random.default_rng(3)
        apart = np.stack([rng.permutation(column) for column in together.T], axis=1)
        tied, free = (fit(answers(table), THRESHOLD) for table in (together, apart))
        assert tied.correct.tolist() == free.correct.tolist()
        assert tied.dispersion > 1.5 * free.dispersion >= 1.5
        assert tied.octaves() > free.octaves()

    def test_rows_have_a_sum_each(self) -> None:
        """Above 0 where the model was better on a row than on others."""
        table = np.ones((20, 7))
        table[:, 3:] = np.arange(20)[:, None] < 10
        sums = fit(answers(table), THRESHOLD).row_sums
        assert (sums[:10] > 0).all()
        assert (sums[10:] < 0).all()

    def test_of_one_line_it_is_one_bin(self) -> None:
        """Without a curve."""
        found = fit(shares(50), THRESHOLD)
        assert len(found.below) == 1
        assert found.below[0] > 0.999

    def test_a_shorter_range_says_the_same(self) -> None:
        """A fit that is cut to the range of the answers equals a fit over that range."""
        samples = simulated(logistic(60), dict.fromkeys(MORE_LINES[:8], 12))
        short, long = fit(samples, THRESHOLD), fit(samples, THRESHOLD, longest=500)
        assert (short.bins.longest, long.bins.longest) == (MORE_LINES[7].high, 500)
        within = long.up_to(MORE_LINES[7].high)
        assert within.bins == short.bins
        assert within.dispersion == pytest.approx(short.dispersion)
        for name in ("correct", "answered", "below", "accuracy"):
            assert getattr(within, name) == pytest.approx(getattr(short, name))
        assert within.interval() == short.interval()
