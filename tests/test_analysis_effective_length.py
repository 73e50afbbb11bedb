"""Effective length, tested length and area with their intervals: known shapes, published values
and simulations.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.length_difference import fitted_side
from eyechart.harness.analysis.length.curve import RESAMPLES, areas_under, curve
from eyechart.harness.analysis.length.effective_length import (
    EffectiveLength,
    effective_length,
    few,
    passing_lengths,
)
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.analysis.length.interval import Bound, at_most
from eyechart.harness.settings.judging import THRESHOLD
from tests.curves import LENGTHS, answers, banded, falling, hold_95_percent, shares

Shape = Callable[[float], float]


def logistic(middle: float, slope: float, lapse: float = 0.0) -> Shape:
    """The accuracy at a length."""
    return lambda length: (1 - lapse) / (1 + (length / middle) ** slope)


def step(last: float, lapse: float = 0.0) -> Shape:
    """All right up to `last` but for lapses, and all wrong beyond it."""
    return lambda length: (1 - lapse) * (length <= last)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def octaves(found: EffectiveLength) -> float:
    """Width of the interval of the effective length, within the tested range."""
    low, high = found.length_ci
    return math.log2(high.length / low.length)


def length_of(found: EffectiveLength) -> Bound:
    """The length, which is known."""
    assert found.length is not None
    return found.length


@pytest.fixture
def without_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """No curve is fitted: tested length and area do not depend on it, and it takes most time."""
    module, known = (
        "eyechart.harness.analysis.length.effective_length",
        fit(shares(100, 50), THRESHOLD),
    )
    monkeypatch.setattr(f"{module}.fit", lambda *_: known)
    monkeypatch.setattr(f"{module}.has_single_threshold", lambda *_: True)


class TestKnownShapes:
    """Where the accuracy falls below the threshold, with a single threshold."""

    def test_of_a_steep_step_it_is_the_step(self) -> None:
        """Within an eighth of an octave, and the interval is short."""
        found = effective_length(banded(step(60), rng()))
        assert found.one_threshold
        assert length_of(found).sign == "="
        assert length_of(found).length == pytest.approx(60, rel=0.09)
        assert found.length_ci[0].length < 60 < found.length_ci[1].length
        assert octaves(found) < 0.6

    @pytest.mark.parametrize(("n", "tolerance"), [(20, 0.5), (1000, 0.1)])
    def test_of_a_logistic_curve_it_is_the_true_one(self, n: int, tolerance: float) -> None:
        """The nearer the more samples."""
        found = effective_length(banded(logistic(60, 3), rng(), n=n))
        true = 60 * (0.15 / 0.85) ** (1 / 3)
        assert length_of(found).length == pytest.approx(true, rel=tolerance)

    @pytest.mark.parametrize(("n", "widest"), [(20, 2.0), (100, 1.1), (1000, 0.5)])
    def test_more_samples_make_the_interval_shorter(self, n: int, widest: float) -> None:
        """In octaves."""
        assert octaves(effective_length(banded(logistic(60, 3), rng(), n=n))) < widest

    @pytest.mark.parametrize(
        ("share", "said"), [(0.95, "> 500"), (1.0, "> 500"), (0.5, "< 5"), (0.0, "< 5")]
    )
    def test_outside_the_tested_range_it_is_a_bound(self, share: float, said: str) -> None:
        """Never a number beyond what was asked."""
        found = effective_length(answers(rng().random((60, 7)) < share))
        assert (str(found.length), found.one_threshold) == (said, True)
        assert said in (str(found.length_ci[0]), str(found.length_ci[1]))

    def test_lapses_do_not_move_it(self) -> None:
        """8 % of wrong answers at all lengths; they move the tested length by more than an octave,
        as one line in ten falls short by chance. Means over eight curves.
        """
        plain, lapsing = (
            [effective_length(banded(step(60, lapse), rng(seed))) for seed in range(8)]
            for lapse in (0.0, 0.08)
        )
        assert np.mean([one.lapse for one in plain]) < 0.02
        assert np.mean([one.lapse for one in lapsing]) == pytest.approx(0.08, abs=0.02)

        def moved(length: Callable[[EffectiveLength], Bound]) -> float:
            """By how many octaves it is shorter with lapses."""
            logs = [[math.log2(length(one).length) for one in found] for found in (plain, lapsing)]
            return float(np.mean(logs[0]) - np.mean(logs[1]))

        assert moved(length_of) < 0.25
        assert moved(lambda one: one.tested_length) > 1

    def test_one_wrong_answer_at_the_shortest_length_moves_it_little(self) -> None:
        """Of twenty; two octaves away from where the model stops seeing."""
        table = np.ones((20, 7))
        table[:, 4:] = 0
        before = length_of(effective_length(answers(table))).length
        table[3, 0] = 0
        after = length_of(effective_length(answers(table))).length
        assert 50 < before < 100
        assert abs(math.log2(after / before)) < 0.125

    def test_rows_that_go_together_widen_the_interval(self) -> None:
        """Twenty-five rows tell less than 325 answers that have nothing to do with each other."""
        seeds = range(8)
        apart, together = (
            np.mean(
                [
                    octaves(
                        effective_length(banded(logistic(60, 1.5), rng(seed), n=25, nested=nested))
                    )
                    for seed in seeds
                ]
            )
            for nested in (False, True)
        )
        assert together > 1.25 * apart

    def test_of_one_line_it_is_a_bound(self) -> None:
        """Nothing is known about other lengths."""
        assert str(effective_length(shares(100))) == "> 5"
        assert str(effective_length(shares(40))) == "< 5"
        assert str(effective_length(shares(80))) == "not known (< 5 to > 5)"

    def test_nothing_right_is_not_seen(self) -> None:
        """The length is below the shortest one asked."""
        found = effective_length(shares(0, 0, 0))
        assert (str(found.length), str(found.tested_length)) == ("< 5", "< 5")


class TestNoSingleThreshold:
    """An accuracy that rises above the threshold after it fell below it."""

    def test_a_dip_gives_the_certified_length(self) -> None:
        """With its interval, and the dip is said."""
        samples = banded(lambda length: float(not 20 < length < 60), rng())
        found = effective_length(samples)
        assert not found.one_threshold
        assert found.length == found.tested_length == Bound("=", 15)
        assert found.length_ci == found.tested_length_ci  # each line has replies enough of its own
        assert str(found).endswith(", no single threshold: accuracy is below it at 19 to 61)")

    def test_an_early_slip_is_not_the_length(self) -> None:
        """One reply a line, as in recorded data: a single wrong one at 26 does not decide."""
        lengths = [round(26 * 1.04**step) for step in range(120)]
        table = np.array([[length != 26 and not 3000 < length < 3600 for length in lengths]])
        found = effective_length(curve(lengths, [0] * 120, table[0]))
        assert str(found.tested_length) == "< 26"
        assert not found.length or found.length.length > 26

    def test_a_bad_start_is_not_known(self) -> None:
        """A model that is half right at the first lines and all right at longer ones has no known
        length. It would be false to say that it is right to less than 5.
        """
        found = effective_length(shares(50, 50, 100, 100, 100, 100, 100))
        assert (found.length, found.one_threshold, found.dips) == (None, False, ((5, 10),))
        assert found.note == "no single threshold: accuracy is below it at 5 to 10"
        assert not found.is_ranked

    @pytest.mark.parametrize("n", [20, 1000, 20_000])
    def test_a_dip_of_many_samples(self, n: int) -> None:
        """All right, all wrong, all right; every number of it is one."""
        found = effective_length(shares(100, 0, 100, n=n), resamples=50)
        assert (str(found.length), found.one_threshold) == ("5", False)
        assert np.isfinite(found.fit.below).all()

    def test_a_length_beyond_a_failed_one_does_not_count(self) -> None:
        """A model that is right at 500 for another reason has not seen 50."""
        found = effective_length(shares(100, 100, 100, 0, 0, 0, 100))
        assert str(found) == "20 (no single threshold: accuracy is below it at 50 to 200)"

    @pytest.mark.parametrize(
        ("shape", "least"),
        [(lambda _: 0.87, 0.85), (logistic(60, 1.5), 0.95), (step(60, lapse=0.1), 0.9)],
        ids=["flat", "slow", "lapses"],
    )
    def test_chance_alone_is_no_dip(self, shape: Shape, least: float) -> None:
        """Most often where a flat accuracy lies so near the threshold that lines are on both sides
        of it.
        """
        single = [
            effective_length(banded(shape, rng(seed)), resamples=5).one_threshold
            for seed in range(40)
        ]
        assert np.mean(single) >= least


class TestInterval:
    """Neither too narrow nor too wide."""

    @pytest.mark.parametrize(
        ("shape", "true", "spare"),
        # half a bin is added at both ends, and ends are whole lengths: an eighth of an octave and
        # more; a step lies between two samples, of which each is right or wrong for certain
        [
            (logistic(60, 5), 60 * (0.15 / 0.85) ** (1 / 5), 0.25),
            # how slowly it falls is not known either, and wide intervals leave room for a plateau
            (logistic(60, 3), 60 * (0.15 / 0.85) ** (1 / 3), 0.5),
            (logistic(150, 1.5), 150 * (0.15 / 0.85) ** (1 / 1.5), 1.4),
            (logistic(60, 4, lapse=0.06), 60 * (0.94 / 0.85 - 1) ** (1 / 4), 0.9),
            (step(60), 60.5, 0.6),
        ],
        ids=["steep", "logistic", "slow", "lapses", "step"],
    )
    def test_it_covers(self, shape: Shape, true: float, spare: float) -> None:
        """In octaves, over sixty curves of twenty samples a line. The few that are said to have no
        single threshold have an interval of something else, and are left out.
        """
        draws = rng(5)
        found = [effective_length(banded(shape, draws), resamples=10) for _ in range(60)]
        single = [one for one in found if one.one_threshold]
        assert len(single) >= 0.9 * len(found)
        logs = np.log2(
            [[bound.length for bound in (length_of(one), *one.length_ci)] for one in single]
        )
        assert hold_95_percent(math.log2(true), logs[:, 0].tolist(), logs[:, 1:].tolist(), spare)

    def test_it_covers_where_rows_go_together(self) -> None:
        """At most one in five misses: a variance between 20 rows is itself uncertain."""
        draws = rng(6)
        found = [
            effective_length(banded(logistic(60, 2), draws, nested=True), resamples=10)
            for _ in range(60)
        ]
        true = 60 * (0.15 / 0.85) ** (1 / 2)
        missed = [not one.length_ci[0].length <= true <= one.length_ci[1].length for one in found]
        assert np.mean(missed) <= 0.2

    def test_it_contains_its_estimate(self) -> None:
        """Of all three."""
        draws = rng(8)
        for _ in range(20):
            found = effective_length(banded(logistic(60, 1.5), draws, n=5), resamples=50)
            for bound, (low, high) in (
                (length_of(found), found.length_ci),
                (found.tested_length, found.tested_length_ci),
            ):
                assert low.length <= bound.length <= high.length
            assert found.area_ci[0] <= found.area <= found.area_ci[1]

    def test_many_rows_draw_no_more_numbers_than_their_patterns(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of seven right or wrong answers there are 2**7, and two further ones for each length."""
        drawn: list[int] = []

        class Counting(np.random.Generator):
            def standard_gamma(self, *given: Any) -> Any:  # type: ignore[override]
                numbers = super().standard_gamma(*given)
                drawn.append(numbers.size)
                return numbers

        monkeypatch.setattr(np.random, "default_rng", lambda seed: Counting(np.random.PCG64(seed)))
        samples = answers(rng().random((14_300, 7)) < falling(60, 3))
        found = effective_length(samples)
        assert 0 < sum(drawn) <= RESAMPLES * (2**7 + 2 * 7)
        assert 20 <= found.length_ci[0].length <= found.length_ci[1].length <= 50

    def test_the_same_samples_give_the_same_interval(self) -> None:
        """And other draws about the same; the effective length does not depend on them."""
        samples = shares(100, 90, 70, 30)
        compute = inspect.unwrap(effective_length)  # which keeps what it has computed
        one, again, other = (compute(samples, resamples=n) for n in (2000, 2000, 1900))
        assert one == again
        assert (one.length, one.length_ci) == (other.length, other.length_ci)
        assert one.area_ci != other.area_ci
        assert one.area_ci == pytest.approx(other.area_ci, abs=0.01)


class TestTestedLength:
    """RULER's statistic: the longest line such that it and every shorter one pass."""

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
        assert passing_lengths(accuracies, 0.856).tolist() == [passed], model

    def test_the_threshold_itself_passes(self) -> None:
        """17 of 20 is 85 %."""
        assert effective_length(shares(85, 84)).tested_length == Bound("=", 5)

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
        found = effective_length(shares(*percent)).tested_length
        assert (str(found), found.at_least, found.at_most) == (said, at_least, at_most)

    @pytest.mark.usefixtures("without_fit")
    @pytest.mark.parametrize(
        ("middle", "slope", "n"),
        [(20, 4, 25), (60, 2, 25), (60, 6, 25), (150, 1.5, 25), (60, 2, 100), (150, 1.5, 100)],
    )
    def test_its_interval_covers(self, middle: float, slope: float, n: int) -> None:
        """Counted in lines; part of a line is to spare, since it is a whole number of them."""
        draws, truth = rng(7), falling(middle, slope)

        def count(bound: Bound) -> int:
            return 0 if bound.sign == "<" else LENGTHS.index(int(bound.length)) + 1

        found = [
            effective_length(answers(draws.random((n, 7)) < truth), resamples=300)
            for _ in range(120)
        ]
        assert hold_95_percent(
            passing_lengths(truth[None], THRESHOLD)[0],
            [count(one.tested_length) for one in found],
            [list(map(count, one.tested_length_ci)) for one in found],
            spare=0.5,
        )

    def test_its_upper_end_is_before_the_first_line_that_fails_for_certain(self) -> None:
        """Lines that fall short by chance alone do not end it."""
        found = effective_length(shares(100, 80, 90, 100, 0, n=20))
        assert found.tested_length == Bound("=", 5)
        assert found.tested_length_ci[1] == Bound("=", 50)

    @pytest.mark.parametrize(
        ("successes", "n", "share", "probability"),
        [
            (0, 3, 0.5, 0.125),
            (1, 3, 0.5, 0.5),
            (3, 3, 0.5, 1.0),
            (17, 20, 0.85, 0.5951),  # scipy.stats.binom.cdf
            (12, 20, 0.85, 0.0059),
            (84_700, 100_000, 0.85, 0.0041),
            (0, 5, 0.0, 1.0),
            (4, 5, 1.0, 0.0),
        ],
    )
    def test_at_most_is_the_binomial_distribution(
        self, successes: int, n: int, share: float, probability: float
    ) -> None:
        """By its published values, and at the ends."""
        assert at_most(successes, n, share) == pytest.approx(probability, abs=5e-5)


class TestArea:
    """Under accuracy over log length."""

    def test_many_rows_are_weighed_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the same result but for chance."""
        whole = effective_length(shares(100, 70, 30)).area_ci
        monkeypatch.setattr("eyechart.harness.analysis.length.curve._MOST_WEIGHTS", 700)
        assert effective_length(shares(100, 70, 30)).area_ci == pytest.approx(whole, abs=0.02)

    def test_of_one_length_it_is_the_accuracy(self) -> None:
        """There is no width to take it over."""
        assert effective_length(shares(40)).area == pytest.approx(0.4)

    @pytest.mark.usefixtures("without_fit")
    @pytest.mark.parametrize(
        ("middle", "slope", "spare", "nested"),
        # in the steepest curve, cells have answers of one kind alone, so that the prior is seen
        [(20, 4, 0, False), (60, 2, 0, False), (30, 12, 0.04, False), (60, 2, 0, True)],
    )
    def test_its_interval_covers(
        self, middle: float, slope: float, spare: float, nested: bool
    ) -> None:
        """At its nominal rate, also where rows are hard or easy at all lengths, and at 0 and 1."""
        draws = rng(11)
        truth = falling(middle, slope)
        found = []
        for _ in range(120):
            luck = draws.random((25, 1)) if nested else draws.random((25, 7))
            found.append(effective_length(answers(luck < truth), resamples=300))
        true = float(areas_under(np.asarray(LENGTHS, float), truth[None])[0])
        areas = [one.area for one in found]
        assert hold_95_percent(true, areas, [one.area_ci for one in found], spare)


def test_an_effective_length_of_few_replies_or_rows_says_so() -> None:
    """From eight replies, or from twenty rows that are asked at several lengths, it does not."""
    assert [few(scored, None) for scored in (1, 7, 8)] == [
        "only 1 reply",
        "only 7 replies",
        "",
    ]
    assert [few(200, rows) for rows in (1, 19, 20)] == [
        "not sure: 1 row",
        "not sure: 19 rows",
        "",
    ]
    three, eight = (effective_length(answers([[0]] * n, (4,))) for n in (3, 8))
    assert (three.note, eight.note) == ("only 3 replies", "")
    assert (three.length, str(eight.length)) == (None, "< 4")
    assert str(three) == "not known (< 4, only 3 replies)"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (8, 0, "not known (< 4 to > 4)"),
        (15, 0, "not known (< 4 to > 4)"),
        (16, 0, "> 4"),
        (19, 1, "not known (< 4 to > 4)"),
        (12, 8, "< 4"),
    ],
)
def test_one_line_says_no_more_than_its_accuracy(right: int, wrong: int, said: str) -> None:
    """Eight right replies of eight are a chance of 10 % for a model that is right in 75 %."""
    found = effective_length(answers([[1]] * right + [[0]] * wrong, (4,)))
    assert str(found) == said
    side = fitted_side(answers([[1]] * right + [[0]] * wrong, (4,)), THRESHOLD)
    assert side.length == found.length
