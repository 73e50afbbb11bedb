"""Effective length, crossing and area with their intervals: published values and simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.analysis.curve import Threshold, areas_under
from harness.analysis.effective_length import (
    _likelihoods,
    crossing_length,
    effective_length,
    passing_lengths,
)
from harness.analysis.interval import Bound
from tests.curves import LENGTHS, answers, falling, hold_95_percent, shares


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
