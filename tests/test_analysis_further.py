"""The difference of two effective lengths."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from math import comb
from statistics import NormalDist

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.length_difference import (
    LEAST_P,
    Crossings,
    JoinedPosteriors,
    LengthDifference,
    Side,
    _lower_ends,
    fitted_side,
    joined,
    mean_difference,
    sides_difference,
)
from eyechart.harness.analysis.length.bins import Bins
from eyechart.harness.analysis.length.curve import SIGNIFICANT, Curve, Floats
from eyechart.harness.analysis.length.fit import Fit, fit
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.length.one_threshold import RowCorrelation
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line
from tests.curves import length_difference
from tests.simulated import logistic, simulated
from tests.test_analysis_fit import two_levels


def difference(first: float, second: float, n: int = 40, seed: int = 0) -> LengthDifference:
    """Of two logistic curves with these crossings, answered independently."""
    return length_difference(
        simulated(logistic(first), n, seed),
        simulated(logistic(second), n, 1000 + seed),
        THRESHOLD,
    )


def test_a_factor_of_four_is_found_and_measured() -> None:
    """Two octaves, with an interval that holds them and is not wide."""
    found = difference(160, 40)
    assert found.further == 1
    assert found.low < 2 < found.high
    assert found.high - found.low < 2.5
    assert found.octaves == pytest.approx(2, abs=0.7)


def test_the_best_of_200_models_can_be_told_from_the_worst() -> None:
    """The smallest p-value is significant after Holm's correction over all their pairs."""
    sides = [fitted_side(simulated(logistic(length), 200, 1), THRESHOLD) for length in (2000, 6)]
    p = joined(sides[0], sides[1], paired=True).p
    assert p == LEAST_P
    assert p * comb(200, 2) < SIGNIFICANT


def test_it_is_symmetric() -> None:
    """Exchanging the sides changes the sign alone."""
    one, other = simulated(logistic(80), 30, 1), simulated(logistic(60), 30, 2)
    forth = length_difference(one, other, THRESHOLD)
    back = length_difference(other, one, THRESHOLD)
    assert forth.low == pytest.approx(back.swapped.low, abs=0.03)
    assert forth.high == pytest.approx(back.swapped.high, abs=0.03)


@cache
def equal_sides() -> list[LengthDifference]:
    """Sixty comparisons of equal accuracies."""
    return [difference(60, 60, n=20, seed=seed) for seed in range(60)]


def test_equal_sides_are_rarely_told_apart() -> None:
    """Sixty comparisons of equal accuracies; also bounded from below: intervals are no wider than
    they have to be.
    """
    found = equal_sides()
    assert sum(one.further != 0 for one in found) <= 4
    assert np.median([one.high - one.low for one in found]) < 2.2


def test_answers_that_go_together_make_it_narrower() -> None:
    """The same answers on both sides: the rows' sums are perfectly correlated."""
    same = simulated(logistic(60), 40, 3)
    together = length_difference(same, same, THRESHOLD)
    apart = difference(60, 60, seed=3)
    assert together.high - together.low < 0.7 * (apart.high - apart.low)
    assert together.octaves == pytest.approx(0, abs=0.02)


def normal_fit(middle: float, rows: np.ndarray) -> Fit:
    """A crossing that is normal around a bin, with a standard deviation of three bins."""
    spread = NormalDist(middle, 3.0)
    bins = Bins(5.0, 1280.0)
    below = np.array([spread.cdf(place) for place in range(bins.count)])
    nothing = np.zeros(bins.count)
    apart = RowCorrelation(0.0, np.diag(nothing))
    return Fit(bins, 0.85, nothing, nothing, two_levels(below), rows, apart, 1.0)


@pytest.mark.parametrize("together", [0.0, 0.5, 0.8])
def test_normal_crossings_have_a_normal_difference(together: float) -> None:
    """Its standard deviation is that of two correlated normal variables."""
    rng = np.random.default_rng(5)
    shared, *own = rng.standard_normal((3, 2000))
    first_rows, second_rows = (
        math.sqrt(together) * shared + math.sqrt(1 - together) * side for side in own
    )
    samples = simulated(logistic(60), 2)
    sides = [
        Side(samples, normal_fit(middle, rows), THRESHOLD)
        for middle, rows in ((36, first_rows), (28, second_rows))
    ]
    both = sides_difference(*sides)
    found = both.low, both.octaves, both.high
    correlation = max(0.0, np.corrcoef(first_rows, second_rows)[0, 1] - 1 / math.sqrt(2000))
    half = (2.128 * math.sqrt(2 * 3.0**2 * (1 - correlation)) + 0.5) / 8
    assert found == pytest.approx((1 - half, 1, 1 + half), abs=0.03)


def test_the_detectable_factor_is_that_of_a_normal_difference() -> None:
    """The standard error is half an interval over 2.128, as 96.7 % of draws are in it; 80 % of
    draws reach its end at 2.970.
    """
    found = difference(60, 60)
    for low, octaves in ((-1, 1.0), (0, 0.5)):
        factor = replace(found, low=low, high=1).detectable
        assert factor == pytest.approx(2 ** (octaves * 2.970 / 2.128), rel=1e-3)


def test_without_a_single_threshold_lengths_are_the_tested_ones() -> None:
    """A side that sees again after a gap has its tested length, the other its estimate."""

    def gap(lengths: Floats) -> Floats:
        return np.where((lengths > 30) & (lengths < 90), 0.1, 0.99)

    dipped, single = simulated(gap, 40), simulated(logistic(150), 40, 1)
    found = length_difference(dipped, single, THRESHOLD)
    assert not found.one_threshold
    assert found.further == 0
    assert found.first == Bound("=", 22.0)
    assert found.second == fit(single, THRESHOLD).median


def test_beyond_the_longest_line_on_one_side() -> None:
    """The first counts exactly further by at least so much; how much is not limited."""
    found = length_difference(
        simulated(lambda lengths: np.full_like(lengths, 0.99), 40),
        simulated(logistic(40), 40, 1),
        THRESHOLD,
    )
    assert found.first == Bound(">", 500.0)
    assert found.further == 1
    assert found.low > 2
    assert math.isinf(found.high)
    assert math.isinf(found.detectable)


@pytest.mark.parametrize("rows", [40, 120])
def test_one_side_passes_where_the_other_fails(rows: int) -> None:
    """Of two exact lengths: where between them it fails is open, and the sign is not."""
    lines, scored = (Line.exact(10), Line.exact(100)), np.ones((rows, 2))
    lengths = np.tile([10.0, 100.0], (rows, 1))
    fails = np.ones((rows, 2))
    fails[rows // 8 :, 1] = 0
    passing, failing = (Curve(lines, correct, scored, lengths) for correct in (scored, fails))
    found = length_difference(passing, failing, THRESHOLD)
    assert found.further == 1
    assert str(found.first) == "> 100"
    assert math.isinf(found.high)


def test_beyond_the_longest_line_on_both_sides() -> None:
    """Nothing is known, not even the sign."""
    always = simulated(lambda lengths: np.full_like(lengths, 0.99), 20)
    found = length_difference(always, always, THRESHOLD)
    assert (found.low, found.high, found.further) == (-math.inf, math.inf, 0)
    assert math.isnan(found.octaves)


def test_a_flat_curve_below_the_threshold_does_not_see_further() -> None:
    """80 % everywhere has the larger area, and sees less far than one that holds to 70."""
    found = length_difference(
        simulated(lambda lengths: np.full_like(lengths, 0.8), 100),
        simulated(logistic(90, slope=8), 100, 1),
        THRESHOLD,
    )
    assert found.further == -1


def test_without_a_single_threshold_nobody_sees_further() -> None:
    """A dip that a falling curve cannot have."""
    dip = simulated(lambda lengths: np.where((lengths > 16) & (lengths < 27), 0.2, 0.99), 40)
    found = length_difference(simulated(logistic(60), 40), dip, THRESHOLD)
    assert not found.one_threshold
    assert found.further == 0


def test_the_mean_of_conditions_is_as_wide_as_they_are() -> None:
    """Conditions share rows, so their number does not make the interval narrower."""
    one, other = difference(60, 50), difference(60, 40)
    mean = mean_difference([one, other])
    assert mean.octaves == pytest.approx((one.octaves + other.octaves) / 2)
    assert mean.high - mean.low == pytest.approx((one.high - one.low + other.high - other.low) / 2)
    open_ended = replace(one, ends=np.array([one.ends[0], np.full_like(one.ends[1], math.inf)]))
    assert math.isinf(mean_difference([one, open_ended]).high)


def test_what_could_have_been_found_shrinks_with_samples() -> None:
    """A factor above 1."""
    few, many = difference(60, 60, n=20), difference(60, 60, n=160)
    assert few.detectable > many.detectable > 1


def p_of(found: LengthDifference) -> float:
    """The p-value of a difference; fails if the two sides could not be compared."""
    assert found.p is not None
    return found.p


def test_the_p_value_agrees_with_the_interval() -> None:
    """It is below 5 % exactly where the interval leaves out 0, on either side."""
    found = [
        difference(60, crossing, n=40, seed=seed) for seed in range(6) for crossing in (25, 60)
    ]
    assert {p_of(one) < 0.05 for one in found} == {True, False}
    for one in found:
        assert (p_of(one) < 0.05) == (one.low > 0 or one.high < 0)
        assert one.swapped.p == one.p
        assert one.swapped.further == -one.further


def test_the_p_value_reaches_far_out() -> None:
    """A factor of sixteen survives the correction for a thousand tests."""
    assert p_of(difference(320, 20)) < 0.05 / 1000


def test_p_values_of_equal_sides_are_spread_over_0_to_1() -> None:
    """At most a tenth of them is below 0.1; they are cautious, so most are 1."""
    values = [p_of(found) for found in equal_sides()]
    assert sum(p < 0.1 for p in values) <= 6
    assert sum(p < 1 for p in values) >= 3


def test_a_corrected_difference_may_not_be_shown_any_more() -> None:
    """`further` goes by the p-value."""
    found = difference(60, 25)
    assert found.further == 1
    assert replace(found, p=0.06).further == 0


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("crossing", [40, 60, 90, 300])
def test_a_p_value_alone_is_that_of_the_difference(crossing: int, paired: bool) -> None:
    """From one side of the distribution; its bound is less than one level below it."""
    first, second = (
        fitted_side(simulated(logistic(middle), 30, seed), THRESHOLD)
        for seed, middle in enumerate((60, crossing))
    )
    found = sides_difference(first, second, paired=paired)
    alone = joined(first, second, paired=paired)
    assert alone.p == found.p
    assert 0.96 * p_of(found) < alone.least_p <= p_of(found)
    if p_of(found) < 1:
        assert alone.sign == (1 if found.octaves > 0 else -1)


def crossings(middle: float, spread: float, below: int, above: int) -> Crossings:
    """Quantiles of a crossing; so many of them have no limit below, and so many none above."""
    low, high = (np.linspace(middle - spread, middle + spread, 181) for _ in range(2))
    low[:below] = -math.inf
    high[len(high) - above :] = math.inf
    return low, high


@pytest.mark.parametrize("unlimited", [(0, 0), (20, 0), (0, 60), (60, 100), (181, 0), (181, 181)])
def test_values_above_the_median_change_no_end(unlimited: tuple[int, int]) -> None:
    """They are not sorted; also where some crossings, or all, have no limit."""
    for spread in (0.1, 1.0, 9.0):
        first, second = crossings(5, spread, *unlimited), crossings(5.3, 0.7, 30, 10)
        pair = JoinedPosteriors(first, second, 0.4, 4.0)
        whole = [_lower_ends(one, math.inf) for one in (pair, pair.swapped)]
        assert np.array_equal(pair.ends, [whole[0], -whole[1]])
