"""Accuracy over length, and the area under it, against hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest

from harness.analysis.curve import areas_under, curve, drawn_accuracies
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


class TestArea:
    """Under accuracy over log length."""

    def test_by_hand(self) -> None:
        """Two trapezoids of the same width, 3/4 and 1/4."""
        areas = areas_under(np.array([10.0, 100.0, 1000.0]), np.array([[1, 0.5, 0], [1, 1, 1]]))
        assert areas.tolist() == pytest.approx([0.5, 1.0])

    def test_alone_a_cell_follows_jeffreys_posterior(self) -> None:
        """Beta(right + 1/2, wrong + 1/2), as the docstring says."""
        from scipy.stats import beta

        draws = drawn_accuracies([shares(90, n=20)], 20_000, 0)[0][:, 0]
        at = [0.025, 0.5, 0.975]
        assert np.quantile(draws, at).tolist() == pytest.approx(
            beta(18.5, 2.5).ppf(at).tolist(), abs=0.01
        )
