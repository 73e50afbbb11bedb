"""Which lines are asked next, and when a comparison is decided."""

from __future__ import annotations

import numpy as np
import pytest

from eyechart.harness.analysis.adaptive.next_pairs import (
    WAVES,
    is_decided,
    line_weights,
    next_wave,
    rows_more,
)
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.settings.judging import MARGIN, THRESHOLD
from tests.benchmarks.simulation.equivalence import compare
from tests.simulated import LINES, logistic, simulated


def test_lines_around_both_crossings_tell_most() -> None:
    """Not those where both are right, or both wrong."""
    far, near = (
        fit(simulated(logistic(crossing, slope=6), 40, seed), THRESHOLD)
        for seed, crossing in enumerate((120, 40))
    )
    weights = line_weights(far, near, LINES)
    more = rows_more(weights, 30)
    lengths = [LINES[place].length for place in more]
    assert min(lengths) > 15
    assert max(lengths) < 240
    assert {50, 75} <= set(lengths)
    assert sum(more.values()) <= 30


@pytest.mark.parametrize(
    ("most", "rows"), [(0, {}), (1, {1: 1}), (2, {1: 1, 2: 1}), (5, {1: 2, 2: 2})]
)
def test_few_rows_go_to_the_best_lines(most: int, rows: dict[int, int]) -> None:
    """No line gets a part of one."""
    assert rows_more(np.array([0.1, 0.9, 0.8, 0.3]), most) == rows
    assert rows_more(np.array([]), most) == {}


def test_the_waves_use_up_the_price() -> None:
    """The last one takes what is left."""
    left = 103
    for done in range(WAVES):
        left -= next_wave(left, done)
    assert left == 0
    assert next_wave(50, WAVES) == 0


def test_a_look_must_be_surer_than_a_verdict() -> None:
    """So that looking several times is as seldom wrong as looking once."""
    found = [
        compare(simulated(logistic(90), 20, seed), simulated(logistic(50), 20, 100 + seed))
        for seed in range(30)
    ]
    said = [one for one in found if one.length.further]
    sure = [one for one in said if is_decided(one, MARGIN)]
    assert 0 < len(sure) < len(said)
    assert all(one.length.p is not None and one.length.p < 0.02 for one in sure)
    same = simulated(logistic(60), 200, 1)
    assert is_decided(compare(same, same), MARGIN)
