"""The probability of each model that it sees furthest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from eyechart.harness.analysis.length.fit import Fit, fit
from eyechart.harness.analysis.ranking.furthest import furthest
from eyechart.harness.settings.judging import THRESHOLD
from tests.simulated import LINES, logistic, simulated

_SHORT = 60


def fits(crossings: Sequence[float], n: int = 20) -> list[Fit]:
    """Posteriors of models with these crossings, asked at 5 to 500 symbols."""
    return [
        fit(simulated(logistic(crossing), n, seed), THRESHOLD)
        for seed, crossing in enumerate(crossings)
    ]


def test_they_are_the_shares_of_draws() -> None:
    """As often as each has the highest crossing where all are drawn; together they are 1."""
    models = fits([60, 70, 75, 80, 40])
    found = furthest(models)
    rng = np.random.default_rng(0)
    draws = []
    for one in models:
        places = np.interp(rng.random(40_000), one.below, np.arange(len(one.below)))
        draws.append(np.log2(one.bins.shortest) + one.bins.octaves(places))
    shares = np.bincount(np.argmax(draws, axis=0), minlength=len(models)) / 40_000
    assert found == pytest.approx(shares.tolist(), abs=0.015)
    assert sum(one or 0.0 for one in found) == pytest.approx(1, abs=1e-3)
    assert furthest(models[:1]) == [pytest.approx(1, abs=1e-3)]
    assert furthest([]) == []


def test_of_a_model_beyond_its_rows_it_is_not_known() -> None:
    """To the others it is as far as its longest row, and no further."""
    lines = [line for line in LINES if line.high <= _SHORT]
    short = fit(simulated(logistic(400), 20, all_lines=lines), THRESHOLD)
    near, far = fits([20, 150])
    assert furthest([short, near])[0] is None
    assert furthest([short, near])[1] == pytest.approx(0, abs=1e-3)
    assert furthest([short, far])[1] == pytest.approx(1, abs=1e-2)
    assert furthest([far, near]) == furthest([near, far])[::-1]
