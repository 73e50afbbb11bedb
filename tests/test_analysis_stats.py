"""Intervals against published and hand-computed values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.curve import Curve, Threshold, areas_under, curve, drawn_accuracies
from harness.analysis.effective_length import (
    _likelihoods,
    crossing_length,
    effective_length,
    passing_lengths,
)
from harness.analysis.interval import Z95, Bound, span_text, wilson
from harness.analysis.paired import (
    Pair,
    PairedLength,
    compare_pairs,
    holm,
    mcnemar,
    mean_area,
    paired,
    smallest_difference,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # by hand: z² / (n + z²) for 0 of n, and symmetry about a half for 5 of 10
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (0, 1, 0.0, 0.7935),
    ],
)
def test_wilson_is_the_published_interval(successes: int, n: int, low: float, high: float) -> None:
    """The interval agrees with published and hand-computed values to four digits."""
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_of_nothing_is_nothing() -> None:
    """Without a sample there is no interval, rather than one from 0 to 1."""
    assert wilson(0, 0) is None


def test_z95_is_the_normal_quantile() -> None:
    """97.5 % of a standard normal lie below it."""
    assert math.erf(Z95 / math.sqrt(2)) == pytest.approx(0.95, abs=1e-15)


@pytest.mark.parametrize(
    ("pairs", "tests", "needed"),
    [(25, 1, 6), (25, 7, 9), (50, 7, 9), (5, 1, None), (10, 16, 10)],
)
def test_the_smallest_difference_is_that_of_the_exact_test(
    pairs: int, tests: int, needed: int | None
) -> None:
    """Fewer discordant pairs than needed are not significant; so many, all one way, just are.

    Four times out of five there are as many, drawn at that difference.
    """
    found = smallest_difference(pairs, tests)
    if needed is None:
        assert found is None
        return
    assert mcnemar(needed, 0) * tests <= 0.05 < mcnemar(needed - 1, 0) * tests
    assert found is not None
    drawn = np.random.default_rng(0).binomial(pairs, found, 20_000)
    assert (drawn >= needed).mean() == pytest.approx(0.8, abs=0.015)


@pytest.mark.parametrize("tests", [1, 2, 7, 100, 10**6])
def test_the_smallest_difference_is_that_of_scipy(tests: int) -> None:
    """The same share of a thousand is found with SciPy's binomial distribution."""
    from scipy.stats import binom

    needed = math.ceil(math.log2(40 * tests))
    shares = np.linspace(0, 1, 1001)
    for pairs in [*range(61), 100, 999, 25_000, 1_000_000]:
        if pairs < needed:
            assert smallest_difference(pairs, tests) is None
        else:
            enough = shares[binom.sf(needed - 1, pairs, shares) >= 0.8]
            assert smallest_difference(pairs, tests) == enough[0]


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(st.integers(1, 10**9))
    return draw(st.integers(0, n)), n


@given(counts())
def test_wilson_holds_the_share_and_mirrors(drawn: tuple[int, int]) -> None:
    """It lies in 0…1, holds the share, and failures have the mirrored interval."""
    successes, n = drawn
    interval, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert interval is not None
    assert mirrored is not None
    low, high = interval
    assert 0 <= low <= successes / n <= high <= 1
    assert low < high
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx(interval, abs=1e-9)


@given(counts())
def test_wilson_inverts_the_score_test(drawn: tuple[int, int]) -> None:
    """Each end inside 0…1 is the proportion from which the share is 1.96 deviations away."""
    successes, n = drawn
    interval = wilson(successes, n)
    assert interval is not None
    for end in interval:
        if 0 < end < 1:
            deviation = Z95 * math.sqrt(end * (1 - end) / n)
            assert abs(successes / n - end) == pytest.approx(deviation, rel=1e-5, abs=1e-12)


LENGTHS = (5, 10, 20, 50, 100, 200, 500)


def answers(right: object, lengths: tuple[int, ...] = LENGTHS) -> Curve:
    """A curve from rows of 0 and 1, one column a length."""
    table = np.asarray(right)
    indexes, columns = np.indices(table.shape)
    return curve(np.asarray(lengths)[columns.ravel()], indexes.ravel(), table.ravel())


def shares(*percent: int, n: int = 100) -> Curve:
    """A curve with these accuracies."""
    lengths = LENGTHS[: len(percent)]
    return answers([[index < share * n / 100 for share in percent] for index in range(n)], lengths)


def falling(middle: float, slope: float) -> np.ndarray:
    """Accuracies of a logistic curve at `LENGTHS`."""
    return 1 / (1 + (np.asarray(LENGTHS) / middle) ** slope)


def hold_95_percent(
    true: float, estimates: Sequence[float], intervals: Sequence[Sequence[float]], spare: float = 0
) -> bool:
    """Asserts that intervals hold what they should, and are no wider than that takes.

    95 % of them hold the true value, less three standard errors of the simulation. Their mean width
    is at most 1.3 times that of the middle 95 % of a normal distribution with the standard
    deviation of the estimates, and `spare` more; 120 estimates tell that deviation to 6 %.
    """
    low, high = np.transpose(intervals)
    missed = ((true < low) | (high < true)).mean()
    assert missed <= 0.05 + 3 * math.sqrt(0.95 * 0.05 / len(intervals))
    width, spread = (high - low).mean(), 2 * Z95 * np.std(estimates)
    assert 0 < width <= 1.3 * spread + spare
    return True


@pytest.fixture
def no_crossing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`effective_length` looks for no crossing, which takes most of its time."""
    nowhere = Bound("<", LENGTHS[0])
    found = nowhere, (nowhere, nowhere)
    monkeypatch.setattr("harness.analysis.effective_length.crossing_length", lambda *_: found)


class TestEffectiveLength:
    """The longest tested length up to which accuracy holds."""

    @pytest.mark.parametrize(
        ("model", "scores", "passed"),
        [
            # RULER (arXiv 2404.06654), table 3: 4K 8K 16K 32K 64K 128K, threshold 85.6
            ("GPT-4", (96.6, 96.3, 95.2, 93.2, 87.0, 81.2), 5),
            ("Command-R", (93.8, 93.3, 92.4, 89.5, 84.9, 76.0), 4),
            ("Yi", (93.3, 92.2, 91.3, 87.5, 83.2, 77.3), 4),
            ("Mixtral 8x22B", (95.6, 94.9, 93.4, 90.9, 84.7, 31.7), 4),
            ("Mistral v0.2", (93.6, 91.2, 87.2, 75.4, 49.0, 13.8), 3),
        ],
    )
    def test_as_ruler_publishes_it(
        self, model: str, scores: tuple[float, ...], passed: int
    ) -> None:
        """The scores of its table reach the lengths that it claims."""
        accuracies = np.asarray([scores]) / 100
        assert passing_lengths(accuracies, Threshold(0.856)).tolist() == [passed], model

    @pytest.mark.parametrize(
        ("model", "scores", "passed"),
        [
            # NoLiMa (arXiv 2502.05167), table 3: base, 1K 2K 4K 8K 16K 32K
            ("GPT-4o", (99.3, 98.1, 98.0, 95.7, 89.2, 81.6, 69.7), 5),
            ("Llama 3.3 70B", (97.3, 94.2, 87.4, 81.5, 72.1, 59.5, 42.7), 3),
        ],
    )
    def test_relative_as_nolima_publishes_it(
        self, model: str, scores: tuple[float, ...], passed: int
    ) -> None:
        """85 % of the model's own short score, the first of these."""
        accuracies = np.asarray([scores]) / 100
        assert passing_lengths(accuracies, Threshold(0.85, relative=True)).tolist() == [passed], (
            model
        )

    def test_a_length_beyond_a_failed_one_does_not_count(self) -> None:
        """A model that is right at 500 for another reason has not seen 50."""
        assert effective_length(shares(100, 100, 100, 0, 0, 0, 100)).length == Bound("=", 20)

    def test_the_threshold_itself_passes(self) -> None:
        """17 of 20 is 85 %."""
        assert effective_length(shares(85, 84)).length == Bound("=", 5)

    @pytest.mark.parametrize(
        ("percent", "said", "at_least", "at_most"),
        [
            ((100, 90, 20), "10", 10, 10),
            ((100, 100, 100), "> 20", 20, None),
            ((0, 0, 0), "< 5", None, 5),
        ],
    )
    def test_outside_the_tested_range_it_is_a_bound(
        self, percent: tuple[int, ...], said: str, at_least: float, at_most: float
    ) -> None:
        """Never a number that was not measured."""
        found = effective_length(shares(*percent)).length
        assert (str(found), found.at_least, found.at_most) == (said, at_least, at_most)

    @pytest.mark.parametrize(("middle", "slope"), [(20, 4), (60, 2), (60, 6), (150, 1.5)])
    @pytest.mark.parametrize("n", [25, 100])
    @pytest.mark.usefixtures("no_crossing")
    def test_its_interval_covers(self, middle: float, slope: float, n: int) -> None:
        """Counted in lengths; part of a length is to spare, since it is a whole number of them."""
        rng = np.random.default_rng(7)
        truth = falling(middle, slope)

        def count(bound: Bound) -> int:
            return 0 if bound.sign == "<" else LENGTHS.index(int(bound.length)) + 1

        found = [
            effective_length(answers(rng.random((n, 7)) < truth), resamples=300) for _ in range(150)
        ]
        assert hold_95_percent(
            passing_lengths(truth[None], Threshold())[0],
            [count(one.length) for one in found],
            [list(map(count, one.length_ci)) for one in found],
            spare=0.2,
        )

    def test_nothing_right_is_not_seen(self) -> None:
        """Also where the threshold is a share of nothing."""
        found = effective_length(shares(0, 0, 0), Threshold(relative=True))
        assert (str(found.length), str(found.crossing_length)) == ("< 5", "< 5")

    def test_many_rows_are_weighed_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the same result but for chance."""
        whole = effective_length(shares(100, 70, 30)).area_ci
        monkeypatch.setattr("harness.analysis.curve._MOST_WEIGHTS", 700)
        assert effective_length(shares(100, 70, 30)).area_ci == pytest.approx(whole, abs=0.02)

    def test_the_same_seed_gives_the_same_interval(self) -> None:
        """And another seed about the same."""
        samples = shares(100, 90, 70, 30)
        assert effective_length(samples) == effective_length(samples)
        assert effective_length(samples).area_ci != effective_length(samples, seed=1).area_ci
        assert effective_length(samples).area_ci == pytest.approx(
            effective_length(samples, seed=1).area_ci, abs=0.01
        )

    def test_nothing_scored_is_no_curve(self) -> None:
        """Rather than a curve of zeros."""
        with pytest.raises(ValueError, match="no sample"):
            curve([], [], [])

    def test_what_was_not_scored_is_not_wrong(self) -> None:
        """Missing samples leave the accuracy of the others."""
        samples = curve([5, 5, 10], [0, 3, 3], [True, False, True])
        assert samples.accuracies.tolist() == [0.5, 1.0]
        assert samples.n.tolist() == [2, 1]


def test_spans_read_as_a_person_writes_them() -> None:
    """One number where both ends are the same."""
    low, mid, high = Bound("<", 5), Bound("=", 44.64), Bound(">", 500)
    assert span_text((low, mid)) == "< 5 to 44.6"
    assert span_text((mid, mid)) == "44.6"
    assert span_text((mid, high)) == "44.6 to > 500"
    assert span_text((high, high)) == "> 500"
    assert span_text((Bound("=", 1234.5), Bound(">", 1_000_000))) == "1234 to > 1000000"


class TestCrossing:
    """Where a logistic curve in log length falls below the threshold."""

    def test_the_penalty_is_half_the_log_determinant_of_the_information(self) -> None:
        """Firth 1993; the likelihood is the binomial one: both by their formulas."""
        samples = shares(100, 100, 60, 40, 0, 0, 0)
        log_lengths = np.log(samples.lengths)
        crossings, slopes = np.log([10.0, 30.0, 90.0]), np.array([-0.5, -3.0])
        likelihood, penalty = _likelihoods(log_lengths, samples, crossings, slopes, 0.7)
        design = np.stack([np.ones_like(log_lengths), log_lengths], axis=1)
        right = samples.correct.sum(axis=0)
        for row, crossing in enumerate(crossings):
            for column, slope in enumerate(slopes):
                share = 1 / (1 + np.exp(-(0.7 + slope * (log_lengths - crossing))))
                information = design.T @ np.diag(samples.n * share * (1 - share)) @ design
                half = 0.5 * np.log(np.linalg.det(information))
                assert penalty[row, column] == pytest.approx(half)
                logs = right * np.log(share) + (samples.n - right) * np.log(1 - share)
                assert likelihood[row, column] == pytest.approx(logs.sum())

    def test_of_a_logistic_curve_it_is_the_true_one(self) -> None:
        """With many samples."""
        truth = falling(60, 3)
        rng = np.random.default_rng(1)
        found, _ = crossing_length(answers(rng.random((4000, 7)) < truth), Threshold(0.5))
        assert found.sign == "="
        assert found.length == pytest.approx(60, rel=0.03)

    def test_between_all_right_and_all_wrong_it_lies_in_the_gap(self) -> None:
        """And its interval is about the whole gap, not a point."""
        found, (low, high) = crossing_length(shares(100, 100, 100, 0, 0), Threshold())
        assert 20 < low.length < 22
        assert low.length < found.length < high.length
        assert 45 < high.length < 50

    @pytest.mark.parametrize(
        ("percent", "sign"), [((100, 100, 100), ">"), ((0, 0, 0), "<"), ((95, 96, 97), ">")]
    )
    def test_outside_the_tested_range_it_is_a_bound(
        self, percent: tuple[int, ...], sign: str
    ) -> None:
        """Also where accuracy does not fall."""
        assert crossing_length(shares(*percent), Threshold())[0].sign == sign

    @pytest.mark.parametrize(("percent", "sign"), [(100, ">"), (80, "<")])
    def test_one_length_passes_or_does_not(self, percent: int, sign: str) -> None:
        """There is no curve through one point."""
        found, interval = crossing_length(shares(percent), Threshold())
        assert (found, interval) == (Bound(sign, 5), (found, found))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("middle", "slope", "spare"),
        # in the steepest curve, two lengths are right and wrong, and the gap between is log 2.5
        [(20, 4, 0), (60, 2, 0), (150, 1.5, 0), (40, 8, 0.5 * math.log(2.5))],
    )
    def test_its_interval_covers(self, middle: float, slope: float, spare: float) -> None:
        """In log length; at its nominal rate."""
        rng = np.random.default_rng(3)
        truth = falling(middle, slope)
        found = [
            crossing_length(answers(rng.random((25, 7)) < truth), Threshold()) for _ in range(150)
        ]
        bounds = [[crossing, *interval] for crossing, interval in found]
        assert {bound.sign for row in bounds for bound in row} == {"="}
        logs = np.log([[bound.length for bound in row] for row in bounds])
        true = math.log(middle * (0.15 / 0.85) ** (1 / slope))
        assert hold_95_percent(true, logs[:, 0].tolist(), logs[:, 1:].tolist(), spare)


class TestArea:
    """Under accuracy over log length."""

    def test_by_hand(self) -> None:
        """Two trapezoids of the same width, 3/4 and 1/4."""
        areas = areas_under(np.array([10.0, 100.0, 1000.0]), np.array([[1, 0.5, 0], [1, 1, 1]]))
        assert areas.tolist() == pytest.approx([0.5, 1.0])

    def test_of_one_length_it_is_the_accuracy(self) -> None:
        """There is no width to take it over."""
        assert effective_length(shares(40)).area == pytest.approx(0.4)

    @pytest.mark.parametrize(
        ("middle", "slope", "spare"),
        # in the steepest curve, cells have answers of one kind alone, so that the prior is seen
        [(20, 4, 0), (60, 2, 0), (30, 12, 0.04)],
    )
    @pytest.mark.parametrize("nested", [False, True])
    @pytest.mark.usefixtures("no_crossing")
    def test_its_interval_covers(
        self, middle: float, slope: float, spare: float, *, nested: bool
    ) -> None:
        """At its nominal rate, also where rows are hard or easy at all lengths, and at 0 and 1."""
        rng = np.random.default_rng(11)
        truth = falling(middle, slope)
        found = []
        for _ in range(120):
            luck = rng.random((25, 1)) if nested else rng.random((25, 7))
            found.append(effective_length(answers(luck < truth), resamples=300))
        true = float(areas_under(np.asarray(LENGTHS, float), truth[None])[0])
        areas = [one.area for one in found]
        assert hold_95_percent(true, areas, [one.area_ci for one in found], spare)

    def test_alone_a_cell_follows_jeffreys_posterior(self) -> None:
        """Beta(right + 1/2, wrong + 1/2), as the docstring says."""
        from scipy.stats import beta

        draws = drawn_accuracies([shares(90, n=20)], 20_000, 0)[0][:, 0]
        at = [0.025, 0.5, 0.975]
        assert np.quantile(draws, at).tolist() == pytest.approx(
            beta(18.5, 2.5).ppf(at).tolist(), abs=0.01
        )


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
        rounds, areas, found = 300, [], 0
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

    def test_a_difference_is_covered(self) -> None:
        """Of areas, at the nominal rate."""
        rng = np.random.default_rng(6)
        better, worse = falling(90, 2), falling(50, 2)
        lengths = np.asarray(LENGTHS, float)
        areas = areas_under(lengths, np.stack([better, worse]))
        true = float(areas[0] - areas[1])
        found = []
        for _ in range(300):
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
                Curve(np.asarray(LENGTHS[:lengths], float), scored * (luck < 0.6), scored)
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
        found: list[PairedLength] = []
        for _ in range(300):
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
