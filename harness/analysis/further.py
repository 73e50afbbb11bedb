"""Whether one side sees further: the difference of two effective lengths on the same samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness.analysis.curve import Curve, Floats, Threshold
from harness.analysis.effective_length import longest_tested
from harness.analysis.falling_curve import BINS_AN_OCTAVE
from harness.analysis.fit import HALF_BIN, TAILS, Fit, fit
from harness.analysis.interval import Bound

_QUANTILES = 200
"""Quantiles of each crossing; their pairs make up the distribution of the difference."""
_MOST_CORRELATION = 0.95
_POWER_OVER_CONFIDENCE = (NormalDist().inv_cdf(0.8) + NormalDist().inv_cdf(0.975)) / (
    NormalDist().inv_cdf(0.975)
)
"""A difference of so many half widths of a 95 % interval is found with a power of 80 %."""


@dataclass(frozen=True, slots=True)
class LengthDifference:
    """The effective length of first over that of second, in octaves, with its 95 % interval.

    An octave is a factor of 2. An end is infinite where the answers do not limit it, such as where
    both sides see beyond the tested range.
    """

    first: Bound
    second: Bound
    octaves: float
    """Median of the difference; infinite where it lies outside what was tested, NaN where even the
    sign is open."""
    low: float
    high: float
    one_threshold: bool
    """Whether both sides have a single threshold; otherwise nobody is said to see further."""

    @property
    def further(self) -> int:
        """1 where first sees further, -1 where second does, 0 where neither is shown."""
        if not self.one_threshold:
            return 0
        return int(self.low > 0) - int(self.high < 0)

    @property
    def swapped(self) -> LengthDifference:
        """The same with first and second exchanged."""
        return LengthDifference(
            self.second, self.first, -self.octaves, -self.high, -self.low, self.one_threshold
        )

    @property
    def detectable(self) -> float:
        """The factor that would have been found with a power of 80 %, about; may be infinite."""
        return detectable_factor(self.low, self.high)


def detectable_factor(low: float, high: float) -> float:
    """The factor that is found with a power of 80 %, about, where a 95 % interval goes from `low`
    to `high`, in octaves.
    """
    half = (high - low) / 2
    return 2 ** (half * _POWER_OVER_CONFIDENCE) if math.isfinite(half) else math.inf


def length_difference(first: Curve, second: Curve, threshold: Threshold) -> LengthDifference:
    """The difference of the effective lengths of two curves of equal shape, whose rows are pairs.

    See `octaves_between`.
    """
    fits = fit(first, threshold), fit(second, threshold)
    low, middle, high = octaves_between(*fits)
    singles = [side.one_threshold() for side in fits]
    first_length, second_length = (
        side.median if single else longest_tested(samples, threshold)
        for side, single, samples in zip(fits, singles, (first, second), strict=True)
    )
    return LengthDifference(first_length, second_length, middle, low, high, all(singles))


def mean_difference(differences: Sequence[LengthDifference]) -> LengthDifference:
    """The mean of the differences under several conditions; lengths are those of the first one.

    Its interval is as wide as the mean of theirs: conditions share rows, so nothing is gained from
    their number.
    """
    octaves, low, high = (
        sum(getattr(difference, name) for difference in differences) / len(differences)
        for name in ("octaves", "low", "high")
    )
    return LengthDifference(
        differences[0].first,
        differences[0].second,
        octaves,
        low,
        high,
        all(difference.one_threshold for difference in differences),
    )


def _correlation(first: Floats, second: Floats) -> float:
    """The correlation of two sets of row sums, less its standard error; 0 to 0.95."""
    size = math.sqrt(float((first**2).sum() * (second**2).sum()))
    rows = int(((first != 0) | (second != 0)).sum())
    if not size or not rows:
        return 0.0
    correlation = float((first * second).sum()) / size - 1 / math.sqrt(rows)
    return min(max(correlation, 0.0), _MOST_CORRELATION)


def octaves_between(first: Fit, second: Fit) -> tuple[float, float, float]:
    """Lower end, median and upper end of the difference of two crossings, in octaves.

    The two posteriors are joined by a normal copula. Its correlation is that of the rows' sums of
    residuals, less their standard error, and never negative, so that the interval is rather too
    wide.
    """
    correlation = _correlation(first.row_sums, second.row_sums)
    normal = np.array(
        [NormalDist().inv_cdf((draw + 0.5) / _QUANTILES) for draw in range(_QUANTILES)]
    )
    squares = normal[:, None] ** 2 + normal[None] ** 2
    products = 2 * normal[:, None] * normal[None]
    exponent = correlation * (correlation * squares - products) / (2 * (1 - correlation**2))
    weights = np.exp(-exponent)
    first_low, first_high = _crossings(first)
    second_low, second_high = _crossings(second)
    at_least = first_low[:, None] - second_high[None]
    at_most = first_high[:, None] - second_low[None]
    half = HALF_BIN / BINS_AN_OCTAVE
    low, low_middle = _quantiles(at_least, weights, (TAILS[0], 0.5))
    # of the negated values, so that exchanging the sides changes the signs and nothing else
    high, high_middle = -_quantiles(-at_most, weights, (TAILS[0], 0.5))
    return float(low) - half, (float(low_middle) + float(high_middle)) / 2, float(high) + half


def _crossings(side: Fit) -> tuple[Floats, Floats]:
    """Quantiles of the crossing in octaves, twice: as low and as high as they may be.

    A crossing below the tested range may lie anywhere below it, and likewise above.
    """
    places = np.array([side.place((draw + 0.5) / _QUANTILES) for draw in range(_QUANTILES)])
    last = len(side.below) - 1
    low = np.where(places == math.inf, last, places) / BINS_AN_OCTAVE
    high = np.where(places == -math.inf, 0, places) / BINS_AN_OCTAVE
    return low, high


def _quantiles(values: Floats, weights: Floats, shares: tuple[float, float]) -> Floats:
    """The weighted quantiles of all entries."""
    order = np.argsort(values, axis=None)
    summed = np.cumsum(weights.ravel()[order])
    found: Floats = values.ravel()[order][np.searchsorted(summed, np.multiply(shares, summed[-1]))]
    return found
