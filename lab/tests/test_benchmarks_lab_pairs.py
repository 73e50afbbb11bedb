"""The simulated studies of `lab_pairs`."""

from __future__ import annotations

import numpy as np
import pytest

from eyechart_lab.variants.results.seeds import smallest_pair_p
from lab.benchmarks.lab_pairs import sign_flip_p


def test_the_smallest_p_of_changes_of_signs_is_that_of_all_of_them() -> None:
    """Two of 64 for six pairs that agree; pairs that cancel show nothing."""
    assert sign_flip_p(np.ones(6)) == pytest.approx(smallest_pair_p(6)) == 2 / 64
    assert sign_flip_p(np.array([1.0, -1.0, 2.0, -2.0])) == 1.0
