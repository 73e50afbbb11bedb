"""The factor between two effective lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.comparison_text import number_text
from eyechart.harness.analysis.comparison.length_difference import LengthDifference
from eyechart.harness.analysis.length.interval import Bound


def difference(
    first: float, second: float, octaves: float, *, one_threshold: bool = True
) -> LengthDifference:
    """Half an octave on both sides of `octaves`."""
    low, high = octaves - 0.5, octaves + 0.5
    bounds = Bound("=", first), Bound("=", second)
    ends = np.array([[low], [high]])
    return LengthDifference(*bounds, octaves, low, high, one_threshold, ends, 1.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.500"), (3.2, "3.20"), (16.0, "16.0"), (100.0, "100"), (12_300.0, "12,300")],
)
def test_three_digits_without_an_exponent(value: float, text: str) -> None:
    """Whatever the size."""
    assert number_text(value) == text


def test_no_factor_without_a_single_threshold() -> None:
    """The lengths beside it are then the tested ones, which it does not go by."""
    assert difference(9, 7, -0.25, one_threshold=False).factors == (None, None, None)
    assert difference(9, 7, -0.25).factors == (0.841, 0.595, 1.19)
    unlimited = LengthDifference(
        *(Bound(">", 9.0), Bound("=", 7.0), math.inf, 0.5, math.inf, True),
        *(np.array([[0.5], [math.inf]]), 1.0),
    )
    assert unlimited.factors == (None, 1.41, None)


@pytest.mark.parametrize(
    ("first", "second", "octaves", "differs"),
    [(40, 20, 1.0, False), (29, 12, 1.287, False), (29, 12, 1.5, True), (37, 38, -0.2, True)],
)
def test_a_factor_that_is_not_the_ratio(
    first: float, second: float, octaves: float, *, differs: bool
) -> None:
    """By more than a twentieth; without a single threshold there is none."""
    assert difference(first, second, octaves).is_the_ratio != differs
    assert difference(first, second, octaves, one_threshold=False).is_the_ratio
