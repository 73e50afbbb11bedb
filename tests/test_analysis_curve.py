"""Accuracy over length, and the area under it, against hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.paired_curves import paired
from eyechart.harness.analysis.length.curve import areas_under, curve, drawn_accuracies
from eyechart.harness.spec import Line
from tests.curves import shares


class TestCurve:
    """Accuracies from scored samples."""

    def test_nothing_scored_is_no_curve(self) -> None:
        """Rather than a curve of zeros."""
        with pytest.raises(ValueError, match="no sample"):
            curve([], [], [])

    def test_what_was_not_scored_is_not_wrong(self) -> None:
        """Missing samples leave the accuracy of the others."""
        samples = curve([5, 5, 10], [0, 3, 3], [True, False, True])
        assert samples.accuracies.tolist() == [0.5, 1.0]
        assert samples.n.tolist() == [2, 1]

    def test_lines_are_columns_and_true_lengths_stay(self) -> None:
        """Two lines may have one nominal length; lines come in any order."""
        lines = [Line(50, 41, 61), Line(10, 10, 40), Line.exact(50)]
        samples = curve(
            *([57, 12, 50, 44], [0, 1, 1, 1], [True, True, False, True]),
            lines=lines,
            places=[0, 1, 2, 0],
        )
        assert samples.lines == (lines[1], lines[0], lines[2])
        assert samples.lengths.tolist() == [10, 50, 50]
        assert samples.accuracies.tolist() == [1, 1, 0]
        np.testing.assert_array_equal(samples.true_lengths, [[np.nan, 57, np.nan], [12, 44, 50]])
        np.testing.assert_array_equal(samples.at([2]).true_lengths, [[np.nan], [50]])

    def test_pairs_are_of_the_same_line(self) -> None:
        """A band and an exact line of one nominal length have other samples."""
        band, exact = Line(50, 41, 61), Line.exact(50)
        first = curve([57, 50], [0, 0], [True, True], lines=[band, exact], places=[0, 1])
        second = curve([57, 44], [0, 1], [False, True], lines=[band], places=[0, 0])
        pair = paired(first, second)
        assert pair is not None
        assert pair[0].lines == pair[1].lines == (band,)
        assert pair[0].n.tolist() == [1]
        assert pair[1].true_lengths.tolist() == [[57]]
        assert paired(curve([50], [0], [True]), second) is None


class TestArea:
    """Under accuracy over log length."""

    def test_by_hand(self) -> None:
        """Two trapezoids of the same width, 3/4 and 1/4."""
        areas = areas_under(np.array([10.0, 100.0, 1000.0]), np.array([[1, 0.5, 0], [1, 1, 1]]))
        assert areas.tolist() == pytest.approx([0.5, 1.0])

    def test_alone_a_cell_follows_jeffreys_posterior(self) -> None:
        """Beta(right + 1/2, wrong + 1/2), as the docstring says."""
        from scipy.stats import beta

        draws = drawn_accuracies([shares(90, n=20)], 20_000)[0][:, 0]
        at = [0.025, 0.5, 0.975]
        assert np.quantile(draws, at).tolist() == pytest.approx(
            beta(18.5, 2.5).ppf(at).tolist(), abs=0.01
        )
