"""Two models on the same samples: exact tests and differences with their intervals."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyechart.harness.analysis.comparison.paired_curves import (
    LineDifference,
    Pair,
    compare_pairs,
    holm,
    mcnemar,
    mean_area,
    paired,
)
from eyechart.harness.analysis.length.curve import Curve, areas_under, curve
from eyechart.harness.spec import Line
from tests.curves import LENGTHS, answers, falling, hold_95_percent


class TestPairs:
    """The same samples, asked twice."""

    def test_mcnemar_by_hand(self) -> None:
        """2 (C(10,0) + C(10,1)) / 2^10; symmetric; 1 without a discordant pair."""
        assert mcnemar(1, 9) == mcnemar(9, 1) == pytest.approx(22 / 1024)
        assert mcnemar(0, 0) == mcnemar(3, 3) == 1.0

    @pytest.mark.parametrize("discordant", range(61))
    def test_mcnemar_is_the_exact_fraction_and_that_of_scipy(self, discordant: int) -> None:
        """Of every split of so many discordant pairs."""
        from scipy.stats import binomtest

        for fewer in range(discordant // 2 + 1):
            outcomes = sum(math.comb(discordant, count) for count in range(fewer + 1))
            p = mcnemar(fewer, discordant - fewer)
            assert p == mcnemar(discordant - fewer, fewer)
            assert p == pytest.approx(min(1, outcomes / 2 ** (discordant - 1)), rel=1e-14, abs=0)
            if discordant:
                reference = binomtest(fewer, discordant).pvalue
                assert p == pytest.approx(reference, rel=1e-12, abs=0)

    @pytest.mark.parametrize("discordant", [61, 100, 999, 1000, 99_999, 1_000_000])
    def test_mcnemar_of_many_pairs_is_that_of_scipy(self, discordant: int) -> None:
        """From half of the pairs down to thirty-six standard deviations fewer, where p is 1e-283.

        Down to none of them, where p is below what a float can hold.
        """
        from scipy.stats import binomtest

        deviations = np.array([0, 0.01, 0.5, 1, 2, 3, 5, 8, 12, 20, 30, 36, math.inf])
        splits = np.maximum(discordant / 2 - deviations * math.sqrt(discordant) / 2, 0)
        for fewer in map(int, splits):
            reference = binomtest(fewer, discordant).pvalue
            p = mcnemar(fewer, discordant - fewer)
            assert p == pytest.approx(reference, rel=1e-11, abs=1e-290)

    def test_holm_by_hand(self) -> None:
        """In the given order; a larger p never ends below a smaller one."""
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
        assert holm([0.9, 0.8]) == [1.0, 1.0]
        assert holm([]) == []

    def test_counts_and_differences(self) -> None:
        """Of each length its discordant pairs; only pairs scored in both."""
        first = curve([5, 5, 5, 10, 20], [0, 1, 2, 0, 0], [True, True, False, True, True])
        second = curve([5, 5, 5, 10], [0, 1, 3, 0], [True, False, True, False])
        pair = paired(first, second)
        assert pair is not None
        (five, ten) = compare_pairs(pair).lengths
        assert (five.length, five.n, five.first, five.second) == (5, 2, 1.0, 0.5)
        assert (five.only_first, five.only_second, five.difference) == (1, 0, 0.5)
        assert (ten.length, ten.n, ten.only_first) == (10, 1, 1)

    def test_without_a_pair_there_is_nothing_to_compare(self) -> None:
        """Other lengths, or other samples."""
        assert paired(curve([5], [0], [True]), curve([10], [0], [True])) is None
        assert paired(curve([5], [0], [True]), curve([5], [1], [True])) is None

    def test_equal_models_are_told_apart_as_rarely_as_claimed(self) -> None:
        """One in twenty intervals of the area, and fewer families of exact tests."""
        rng = np.random.default_rng(5)
        truth = falling(60, 2)
        rounds, areas, found = 150, [], 0
        for _ in range(rounds):
            hardness = rng.random((25, 1))
            sides = [(hardness + 0.4 * rng.random((25, 7)) - 0.2 < truth) for _ in range(2)]
            pair = paired(*map(answers, sides))
            assert pair is not None
            areas.append(mean_area([pair], resamples=300))
            first, second = (one.correct for one in pair)
            alone = (first > second).sum(axis=0), (second > first).sum(axis=0)
            p_values = [mcnemar(int(one), int(other)) for one, other in zip(*alone, strict=True)]
            found += min(holm(p_values)) < 0.05
            if len(areas) % 50 == 0:
                compared = compare_pairs(pair, resamples=300)
                assert ([row.p for row in compared.lengths], compared.area) == (p_values, areas[-1])
        assert hold_95_percent(
            0, [one.difference for one in areas], [one.difference_ci for one in areas]
        )
        assert found / rounds <= 0.05 + 3 * math.sqrt(0.95 * 0.05 / rounds)

    def test_the_label_test_is_that_of_all_exchanges(self) -> None:
        """Of eight rows there are 2^8. An interval leaves out 0 exactly where it is significant."""
        rng = np.random.default_rng(3)
        significant = 0
        for _ in range(40):
            sides = [answers(rng.random((8, 7)) < share) for share in (0.9, 0.6)]
            pair = paired(*sides)
            assert pair is not None
            first, second = pair
            rows = [
                areas_under(first.lengths, (one - other)[None])[0]
                for one, other in zip(first.correct, second.correct, strict=True)
            ]
            flips = np.array(list(product((1, -1), repeat=8)))
            exact = (abs(flips @ rows) >= abs(sum(rows)) - 1e-9).mean()
            area = mean_area([pair])
            assert area.p == pytest.approx(exact, abs=4 * math.sqrt(exact / 2000) + 1e-3)
            low, high = area.difference_ci
            assert (low > 0 or high < 0) == (area.p < 0.05) == (area.larger != 0)
            significant += area.p < 0.05
        assert 5 < significant < 40

    def test_labels_are_exchanged_in_whole_rows(self) -> None:
        """Rows that go together make the test no surer than their number: five show nothing."""
        rows = np.ones((5, 7))
        pair = paired(answers(rows > 0), answers(rows < 0))
        assert pair is not None
        area = mean_area([pair] * 3)
        assert area.p == pytest.approx(2 / 2**5, abs=0.02)
        assert area.difference == pytest.approx(1)
        assert area.larger == 0
        same = mean_area([(pair[0], pair[0])])
        assert (same.p, same.difference) == (1.0, 0.0)

    def test_the_narrow_interval_has_zero_where_p_is_above_a_tenth(self) -> None:
        """Four rows that all differ have p 0.125, and draws that are all above 0.1."""
        rows = np.ones((4, 7))
        pair = paired(answers(rows > 0), answers(rows < 0))
        assert pair is not None
        area = mean_area([pair])
        assert area.p == pytest.approx(2 / 2**4, abs=0.02)
        assert area.equivalence_ci[0] == 0 < area.equivalence_ci[1]

    def test_a_difference_is_covered(self) -> None:
        """Of areas, at the nominal rate."""
        rng = np.random.default_rng(6)
        better, worse = falling(90, 2), falling(50, 2)
        lengths = np.asarray(LENGTHS, float)
        areas = areas_under(lengths, np.stack([better, worse]))
        true = float(areas[0] - areas[1])
        found = []
        for _ in range(150):
            hardness = rng.random((25, 1))
            pair = paired(answers(hardness < better), answers(hardness < worse))
            assert pair is not None
            found.append(mean_area([pair], resamples=300))
        ends = [one.difference_ci for one in found]
        # rows stay together and the prior of every cell is its own, so that the prior is seen
        assert hold_95_percent(true, [one.difference for one in found], ends, spare=0.01)

    @given(
        st.integers(0, 2**32 - 1),
        st.integers(1, 30),
        st.integers(1, 4),
        st.integers(1, 3),
        st.booleans(),
    )
    @settings(max_examples=40, deadline=None)
    def test_who_is_first_changes_the_sign_alone(
        self, seed: int, n: int, lengths: int, conditions: int, alike: bool
    ) -> None:
        """Of each length and of the areas, to the last bit, whatever was not scored."""
        rng = np.random.default_rng(seed)
        pairs: list[Pair] = []
        for _ in range(conditions):
            sides = [
                Curve(
                    tuple(map(Line.exact, LENGTHS[:lengths])),
                    scored * (luck < 0.6),
                    scored,
                    np.where(scored, np.asarray(LENGTHS[:lengths], float), np.nan),
                )
                for scored, luck in (
                    ((rng.random((n, lengths)) < 0.9).astype(float), rng.random((n, lengths)))
                    for _ in range(2)
                )
            ]
            if pair := paired(sides[0], sides[0] if alike else sides[1]):
                pairs.append(pair)
        turned = [(second, first) for first, second in pairs]
        for pair, other in zip(pairs, turned, strict=True):
            for row, back in zip(
                compare_pairs(pair, resamples=50).lengths,
                compare_pairs(other, resamples=50).lengths,
                strict=True,
            ):
                assert row.difference_ci == (-back.difference_ci[1], -back.difference_ci[0])
                assert row.p == back.p
        if pairs:
            area = mean_area(pairs, resamples=50)
            assert area.swapped == mean_area(turned, resamples=50)
            assert not alike or area.difference_ci == (
                -area.difference_ci[1],
                area.difference_ci[1],
            )

    def test_the_same_answers_have_the_same_interval_wherever_they_are(self) -> None:
        """Equal arms where both answer alike, at whatever length and beside whatever others."""
        same = [[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 1, 0]]
        one = answers(same * 5, LENGTHS[:5])
        other = answers([[0, *row[1:]] for row in same * 5], LENGTHS[:5])
        pair = paired(one, other)
        assert pair is not None
        rows = compare_pairs(pair).lengths
        ends = [row.difference_ci for row in rows]
        assert ends[1] == ends[2] == ends[4] == (-ends[1][1], ends[1][1])
        assert ends[3] == (-ends[3][1], ends[3][1])

    def test_a_difference_at_one_length_is_covered(self) -> None:
        """At the nominal rate, of pairs that agree more than by chance."""
        rng = np.random.default_rng(9)
        found: list[LineDifference] = []
        for _ in range(150):
            hardness = rng.random((25, 1))
            luck = [hardness + 0.4 * rng.random((25, 1)) - 0.2 for _ in range(2)]
            pair = paired(answers(luck[0] < 0.8, (5,)), answers(luck[1] < 0.5, (5,)))
            assert pair is not None
            found += compare_pairs(pair, resamples=300).lengths
        assert hold_95_percent(
            0.8 - 0.5, [row.difference for row in found], [row.difference_ci for row in found]
        )

    def test_conditions_that_share_rows_stay_together(self) -> None:
        """Twice the same pair is no more evidence than once."""
        rng = np.random.default_rng(8)
        sides = [answers(rng.random((50, 7)) < falling(middle, 2)) for middle in (80, 50)]
        pair = paired(*sides)
        assert pair is not None
        once, twice = (mean_area([pair] * count).difference_ci for count in (1, 2))
        assert twice[1] - twice[0] == pytest.approx(once[1] - once[0], rel=0.1)
