"""What a planned comparison can show: the power of the exact test, and of effective lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.paired_curves import mcnemar
from eyechart.harness.analysis.comparison.power import (
    FROM,
    critical_counts,
    power_of_fall,
    smallest_factor,
    smallest_fall,
)
from eyechart.harness.analysis.length.curve import Curve
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line, lines_of
from tests.curves import length_difference

LENGTHS = (5, 7, 10, 15, 22, 33, 50, 75, 110, 160, 240, 350, 500)


@pytest.mark.parametrize("tests", [1, 7, 26, 10**6])
def test_the_critical_counts_are_those_of_mcnemar(tests: int) -> None:
    """One pair more of the worse side, and the p-value is no longer below the level."""
    level = 0.05 / tests
    counts = critical_counts(3000, level)
    for discordant in (*range(301), 999, 2000, 3000):
        fewer = int(counts[discordant])
        if fewer >= 0:
            assert mcnemar(discordant - fewer, fewer) < level
        assert mcnemar(discordant - fewer - 1, fewer + 1) >= level or not discordant


@pytest.mark.parametrize(("pairs", "second"), [(8, 0.1), (20, 0.4), (60, 0.7), (60, 0.0)])
def test_the_power_is_the_sum_over_all_outcomes(pairs: int, second: float) -> None:
    """Numbers of pairs in which both, only one or neither side is right, one by one."""
    level = 0.05 / 3
    only_first, only_second = FROM * (1 - second), second * (1 - FROM)
    power = 0.0
    for first_alone in range(pairs + 1):
        for second_alone in range(min(first_alone, pairs - first_alone + 1)):
            if mcnemar(first_alone, second_alone) < level:
                rest = pairs - first_alone - second_alone
                power += (
                    math.comb(pairs, first_alone)
                    * math.comb(pairs - first_alone, second_alone)
                    * only_first**first_alone
                    * only_second**second_alone
                    * (1 - only_first - only_second) ** rest
                )
    assert power_of_fall(FROM, second, critical_counts(pairs, level)) == pytest.approx(power)


@pytest.mark.parametrize(("pairs", "tests"), [(20, 1), (20, 26), (100, 13), (1000, 4)])
def test_the_smallest_fall_is_found_four_times_out_of_five(pairs: int, tests: int) -> None:
    """In simulated answers; and a fall that is a thousandth smaller has less power than 80 %."""
    fall = smallest_fall(pairs, tests)
    assert fall is not None
    rng = np.random.default_rng(0)
    first = rng.random((4000, pairs)) < FROM
    second = rng.random((4000, pairs)) < FROM - fall
    only_first, only_second = (first & ~second).sum(axis=1), (second & ~first).sum(axis=1)
    found = [
        ahead > behind and mcnemar(int(ahead), int(behind)) * tests < 0.05
        for ahead, behind in zip(only_first, only_second, strict=True)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.025 + 2 / pairs)
    assert power_of_fall(FROM, FROM - fall + 0.001, critical_counts(pairs, 0.05 / tests)) < 0.8


def test_too_few_pairs() -> None:
    """Five pairs have no p-value below 5 %; a hundred thousand find a small fall."""
    assert smallest_fall(5) is None
    assert smallest_fall(0) is None
    assert smallest_fall(100_000) == pytest.approx(0.004, abs=0.001)


def simulated(lines: list[Line], samples: int, crossing: float, rng: np.random.Generator) -> Curve:
    """A model with 2 % lapses that falls below 85 % at `crossing`."""
    lengths = np.array([[line.length_of(row, 0) for line in lines] for row in range(samples)])
    accuracies = 0.98 / (1 + (0.98 / 0.85 - 1) * (lengths / crossing) ** 3)
    correct = (rng.random(lengths.shape) < accuracies).astype(float)
    return Curve(tuple(lines), correct, np.ones_like(correct), lengths.astype(float))


def test_the_factor_is_found_about_four_times_out_of_five() -> None:
    """Between two models that lie so far apart, by the comparison that users get."""
    lines = lines_of(LENGTHS, "bands")
    factor = smallest_factor(tuple((line, 20) for line in lines))
    assert factor is not None
    rng = np.random.default_rng(1)
    nearer, further = (50 * factor**half for half in (-0.5, 0.5))
    found = [
        length_difference(
            simulated(lines, 20, further, rng), simulated(lines, 20, nearer, rng), THRESHOLD
        ).further
        for _ in range(60)
    ]
    assert -1 not in found
    assert 0.65 <= np.mean(found) <= 0.95


def test_more_samples_show_smaller_factors() -> None:
    """A single length shows none, and neither do two samples of two lengths."""
    lines = lines_of(LENGTHS, "bands")
    few, usual, many = (smallest_factor(tuple((line, n) for line in lines)) for n in (5, 20, 200))
    assert few is not None
    assert usual is not None
    assert many is not None
    assert few > 1.5 * usual > 1.5 * many > 1.5
    assert smallest_factor(((Line.exact(314), 20),)) is None
    assert smallest_factor(((Line.exact(10), 2), (Line.exact(20), 2))) is None


def test_lines_may_have_unequal_samples() -> None:
    """Samples that are not planned are not simulated."""
    lines = lines_of(LENGTHS, "bands")
    equal = smallest_factor(tuple((line, 20) for line in lines))
    fewer = smallest_factor(tuple((line, 4 if line.low < 90 else 20) for line in lines))
    assert equal is not None
    assert fewer is not None
    assert fewer > 1.2 * equal
