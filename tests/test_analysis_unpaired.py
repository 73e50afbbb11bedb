"""Comparison of sides with different rows: exact tests, intervals, and what is said."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.length_difference import (
    fitted_side,
    sides_difference,
)
from eyechart.harness.analysis.comparison.paired_curves import (
    compare_unpaired,
    difference_interval,
    fisher,
)
from eyechart.harness.settings.judging import THRESHOLD
from tests.curves import LENGTHS, answers, length_difference
from tests.simulated import logistic, simulated

N = 16


def binomial(n: int, share: float) -> np.ndarray:
    return np.array([math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)])


def test_fishers_test_is_the_published_one() -> None:
    """The lady tasting tea, and a table whose two-sided value is known."""
    assert fisher(3, 4, 1, 4) == pytest.approx(34 / 70)
    assert fisher(1, 10, 11, 14) == pytest.approx(0.002759, abs=1e-6)
    assert fisher(0, 5, 0, 5) == 1.0
    assert fisher(5, 5, 0, 5) == fisher(0, 5, 5, 5) == pytest.approx(2 / 252)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.85, 0.97])
def test_fishers_test_errs_in_five_percent_at_most(share: float) -> None:
    """Summed over all tables, not simulated."""
    first, second = binomial(N, share), binomial(11, share)
    rejected = sum(
        first[one] * second[other]
        for one, other in itertools.product(range(N + 1), range(12))
        if fisher(one, N, other, 11) < 0.05
    )
    assert rejected <= 0.05


@pytest.mark.parametrize("shares", [(0.9, 0.9), (0.9, 0.4), (0.97, 0.85), (0.5, 0.2)])
def test_the_interval_of_a_difference_holds_it_in_about_95_percent(
    shares: tuple[float, float],
) -> None:
    """Summed over all tables; and exchanging the sides changes the sign."""
    first, second = (binomial(N, share) for share in shares)
    held = 0.0
    for one, other in itertools.product(range(N + 1), repeat=2):
        low, high = difference_interval(one, N, other, N)
        assert difference_interval(other, N, one, N) == pytest.approx((-high, -low))
        held += first[one] * second[other] * (low <= shares[0] - shares[1] <= high)
    assert held > 0.93


class TestLengths:
    """The difference of two effective lengths on different rows."""

    def test_it_is_that_of_pairs_without_correlation(self) -> None:
        """On the same lines; exchanging the sides changes the signs."""
        far, near = simulated(logistic(80), 20), simulated(logistic(34), 20, 1)
        paired = length_difference(far, near, THRESHOLD)
        sides = fitted_side(far, THRESHOLD), fitted_side(near, THRESHOLD)
        found = sides_difference(*sides, paired=False)
        back = sides_difference(*reversed(sides), paired=False)
        assert found.octaves == pytest.approx(paired.octaves, abs=0.15)
        assert found.high - found.low >= paired.high - paired.low - 1e-9
        assert (back.octaves, back.low, back.high) == (-found.octaves, -found.high, -found.low)
        assert found.further == 1

    def test_lengths_are_compared_as_they_are_and_not_from_the_shortest_line(self) -> None:
        """Both see to 50; the second was asked from 20 on."""
        right = [[length <= 50 for length in LENGTHS]] * 20
        whole = answers(right)
        part = whole.at(slice(2, None))
        difference = sides_difference(
            fitted_side(whole, THRESHOLD), fitted_side(part, THRESHOLD), paired=False
        )
        assert difference.low < 0 < difference.high
        assert difference.octaves == pytest.approx(0, abs=0.3)
        assert difference.further == 0


def test_only_lines_of_both_are_tested() -> None:
    """With the samples that each side has; exchanging the sides changes the sign."""
    first = answers([[1, 1, 1]] * 16, (5, 10, 20))
    second = answers([[0, 1]] * 12, (10, 50))
    (line,) = compare_unpaired(first, second).lengths
    assert (line.length, line.n, line.n_second) == (10, 16, 12)
    assert (line.difference, line.p < 1e-6) == (1.0, True)
    (back,) = compare_unpaired(first, second).swapped.lengths
    assert (back.n, back.n_second, back.difference) == (12, 16, -1.0)
    assert back.difference_ci == (-line.difference_ci[1], -line.difference_ci[0])
