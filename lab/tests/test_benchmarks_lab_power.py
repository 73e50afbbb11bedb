"""What the published studies would have found."""

from __future__ import annotations

import numpy as np

from eyechart_lab.variants.results.seeds import SeedValue, permutation_p
from lab.benchmarks.lab_power import found, table
from lab.pages import HERE


def test_the_share_is_that_of_the_test_that_the_laboratory_uses() -> None:
    """On the same draws; a study without a difference finds one in at most 5 %."""
    drawn = np.random.default_rng([4, 2, 20]).normal(size=(50, 8))
    drawn[:, :4] += 2
    ps = [
        permutation_p(*([SeedValue(one, 0.0, 0.0) for one in half] for half in (row[:4], row[4:])))
        for row in drawn
    ]
    assert found(4, 2, 2.0, studies=50) == np.mean([2 * p <= 0.05 for p in ps])
    assert 0.02 < found(5, 1, 0.0) <= 0.055


def test_the_published_table() -> None:
    assert "\n".join(table()) in (HERE / "README.md").read_text(encoding="utf-8")
