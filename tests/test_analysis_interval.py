"""Intervals of a share against published and hand-computed values; bounds as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyechart.harness.analysis.length.interval import Z95, Bound, span_text, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # by hand: z² / (n + z²) for 0 of n, and symmetry about a half for 5 of 10
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (0, 1, 0.0, 0.7935),
    ],
)
def test_wilson_is_the_published_interval(successes: int, n: int, low: float, high: float) -> None:
    """The interval agrees with published and hand-computed values to four digits."""
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_of_nothing_is_nothing() -> None:
    """Without a sample there is no interval, rather than one from 0 to 1."""
    assert wilson(0, 0) is None


def test_z95_is_the_normal_quantile() -> None:
    """97.5 % of a standard normal lie below it."""
    assert math.erf(Z95 / math.sqrt(2)) == pytest.approx(0.95, abs=1e-15)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(st.integers(1, 10**9))
    return draw(st.integers(0, n)), n


@given(counts())
def test_wilson_holds_the_share_and_mirrors(drawn: tuple[int, int]) -> None:
    """It lies in 0…1, holds the share, and failures have the mirrored interval."""
    successes, n = drawn
    interval, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert interval is not None
    assert mirrored is not None
    low, high = interval
    assert 0 <= low <= successes / n <= high <= 1
    assert low < high
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx(interval, abs=1e-9)


@given(counts())
def test_wilson_inverts_the_score_test(drawn: tuple[int, int]) -> None:
    """Each end inside 0…1 is the proportion from which the share is 1.96 deviations away."""
    successes, n = drawn
    interval = wilson(successes, n)
    assert interval is not None
    for end in interval:
        if 0 < end < 1:
            deviation = Z95 * math.sqrt(end * (1 - end) / n)
            assert abs(successes / n - end) == pytest.approx(deviation, rel=1e-5, abs=1e-12)


def test_spans_read_as_a_person_writes_them() -> None:
    """One number where both ends are the same."""
    low, mid, high = Bound("<", 5), Bound("=", 44.64), Bound(">", 500)
    assert span_text((low, mid)) == "< 5 to 44.6"
    assert span_text((mid, mid)) == "44.6"
    assert span_text((mid, high)) == "44.6 to > 500"
    assert span_text((high, high)) == "> 500"
    assert span_text((Bound("=", 1234.5), Bound(">", 1_000_000))) == "1234 to > 1000000"
