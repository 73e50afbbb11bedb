"""How much more answers vary than independent ones, by simulation and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from eyechart.harness.analysis.length.curve import curve
from eyechart.harness.analysis.length.dispersion import (
    between_lengths,
    between_rows,
    nearness,
    row_correlation,
    row_residuals,
)
from eyechart.harness.analysis.length.effective_length import effective_length
from tests.curves import LENGTHS, answers

EIGHTHS = np.arange(40) / 8
"""Octaves of forty bins."""


def rng() -> np.random.Generator:
    return np.random.default_rng(9)


class TestNearness:
    """Answers far from the threshold tell nothing about a crossing."""

    def test_it_is_largest_at_the_threshold(self) -> None:
        """And the same on both sides of it, in logits."""
        weights = nearness(np.array([0.5, 0.731059, 0.268941, 0.999]), 0.5)
        assert weights[0] == 1
        assert weights[1] == pytest.approx(np.exp(-0.25), abs=1e-5)
        assert weights[1] == pytest.approx(weights[2], abs=1e-5)
        assert weights[3] < 0.01

    @pytest.mark.parametrize("threshold", [0.0, 1.0])
    def test_at_the_ends_it_is_a_number(self, threshold: float) -> None:
        """A threshold may be 100 %."""
        assert np.isfinite(nearness(np.array([0.01, 0.5, 0.99]), threshold)).all()


class TestBetweenRows:
    """Rows that are hard or easy at all lengths."""

    def test_residuals_are_weighted_and_summed_over_a_row(self) -> None:
        """What was not scored is 0."""
        samples = answers([[1, 0], [1, 1]], (5, 10))
        places = np.array([[0, 1], [0, 1]])
        residuals, sums = row_residuals(samples, places, np.array([0.9, 0.5]), np.array([0.2, 1.0]))
        assert residuals.ravel() == pytest.approx([0.02, -0.5, 0.02, 0.5])
        assert sums == pytest.approx([-0.48, 0.52])

    def test_of_independent_answers_it_is_about_one(self) -> None:
        """In the mean over many runs; it is never less."""
        draws = rng()
        found = []
        for _ in range(100):
            residuals = draws.normal(size=(200, 6))
            found.append(between_rows(residuals, np.ones((200, 6))))
        assert min(found) >= 1
        assert np.mean(found) == pytest.approx(1.0, abs=0.1)

    @pytest.mark.parametrize("lengths", [2, 6])
    def test_of_equal_answers_it_is_their_number(self, lengths: int) -> None:
        """A row that is the same at all lengths tells as much as one answer."""
        residuals = np.repeat(rng().normal(size=(4000, 1)), lengths, axis=1)
        found = between_rows(residuals, np.ones(residuals.shape))
        assert found == pytest.approx(lengths, rel=0.01)

    def test_few_rows_are_taken_to_go_together_a_little(self) -> None:
        """One row counts as a sixth, five rows of correlation 0.25 as the rest."""
        assert between_rows(np.ones((1, 6)), np.ones((1, 6))) == pytest.approx(
            1 + 5 * (1 + 5 * 0.25) / 6
        )

    def test_what_all_rows_have_in_common_can_be_left_out(self) -> None:
        """At each length all rows have the same residual, because all replies are right or all are
        wrong. Then nothing shows that rows differ.
        """
        one, two = np.ones((1, 6)), np.array([[1.0] * 6, [-1.0] * 6])
        nothing, all_there_is = (
            between_rows(rows, np.ones(rows.shape), in_common=False) for rows in (one, two)
        )
        assert nothing == pytest.approx(1 + 5 * 5 * 0.25 / 6)
        assert all_there_is == pytest.approx(1 + 5 * (2 + 5 * 0.25) / 7)
        common = np.tile([0.011, 0.013, 0.02, 0.3, -0.2, -0.1], (20, 1))
        only_prior = 1 + 5 * 0.25 / 25 * (0.644**2 - 0.140690) / 0.140690
        assert between_rows(common, np.ones((20, 6)), in_common=False) == pytest.approx(only_prior)
        noise = np.where(np.arange(20) < 10, 0.4, -0.4)[:, None]
        assert between_rows(common + noise, np.ones((20, 6)), in_common=False) > 4

    def test_rows_at_one_length_have_nothing_to_go_together(self) -> None:
        """Nor have rows where all answers are as expected."""
        assert between_rows(np.ones((9, 1)), np.ones((9, 1))) == 1
        assert between_rows(np.zeros((5, 6)), np.ones((5, 6))) == 1


class TestBetweenLengths:
    """Neighbouring lengths that differ more than chance makes them."""

    def test_of_binomial_counts_it_is_about_one(self) -> None:
        """In the mean over many runs; it is never less."""
        draws, accuracy = rng(), np.linspace(0.95, 0.2, 40)
        answered = np.full(40, 12.0)
        found = [
            between_lengths(
                draws.binomial(12, accuracy).astype(float), answered, accuracy, np.ones(40), EIGHTHS
            )
            for _ in range(300)
        ]
        assert min(found) >= 1
        assert np.mean(found) == pytest.approx(1.1, abs=0.1)

    def test_of_lengths_that_differ_it_is_their_variance(self) -> None:
        """Accuracies of 0.8 and 0.2 in turn, two bins each, about a fitted 0.5."""
        accuracy, answered = np.full(40, 0.5), np.full(40, 10.0)
        correct = np.where(np.arange(40) // 2 % 2, 8.0, 2.0)
        # each group of two bins is 6 of 20 away from its expectation, of variance 5
        assert between_lengths(correct, answered, accuracy, np.ones(40), EIGHTHS) == pytest.approx(
            20 * 36 / 5 / 19
        )

    def test_lengths_far_from_the_threshold_do_not_count(self) -> None:
        """Their weight is 0."""
        accuracy, answered = np.full(40, 0.5), np.full(40, 10.0)
        correct = np.where(np.arange(40) < 20, 5.0, 10.0)
        near = (np.arange(40) < 20).astype(float)
        assert between_lengths(correct, answered, accuracy, np.ones(40), EIGHTHS) > 5
        assert between_lengths(correct, answered, accuracy, near, EIGHTHS) == 1

    def test_bins_without_an_answer_do_not_count(self) -> None:
        """However many there are."""
        accuracy = np.full(40, 0.5)
        answered = np.where(np.arange(40) < 4, 10.0, 0.0)
        correct = np.array([2.0, 2.0, 8.0, 8.0] + [0.0] * 36)
        assert between_lengths(correct, answered, accuracy, np.ones(40), EIGHTHS) == pytest.approx(
            2 * 36 / 5
        )


class TestRowCorrelation:
    """How answers to one row at several lines go together."""

    def test_it_is_near_that_of_the_answers(self) -> None:
        """Of 400 rows: independent answers, and half of the rows right everywhere or nowhere."""
        draws = rng()
        apart = draws.random((400, 6)) < 0.8
        together = np.where(draws.random((400, 1)) < 0.5, draws.random((400, 1)) < 0.8, apart)
        found = [row_correlation(answers(table, LENGTHS[:6])) for table in (apart, together)]
        assert found == pytest.approx([0.0, 0.5], abs=0.08)

    def test_a_few_rows_count_as_if_twenty_more_were_apart(self) -> None:
        """Two rows, one all right and one all wrong."""
        rows = answers([[1, 1, 1], [0, 0, 0]], LENGTHS[:3])
        assert row_correlation(rows) == pytest.approx(2 / 22)

    @pytest.mark.parametrize("table", [[[1], [0]], [[1, 1], [1, 1]]])
    def test_without_two_lengths_or_an_error_it_is_0(self, table: list[list[int]]) -> None:
        """Nothing can go together."""
        assert row_correlation(answers(table, LENGTHS[: len(table[0])])) == 0


def test_rows_that_all_differ_are_not_one_row() -> None:
    """Sixty rows with sixty lengths limit a length, where one row at sixty lengths does not."""
    lengths = np.arange(24, 84)
    right = (np.arange(60) * 3 % 5 < 3).tolist()
    apart = curve(lengths, np.zeros(60, int), right, own_rows=True)
    together = curve(lengths, np.zeros(60, int), right)
    assert effective_length(together).length is None
    found = effective_length(apart)
    assert found.length is not None
    assert str(found.length) == "< 24"
