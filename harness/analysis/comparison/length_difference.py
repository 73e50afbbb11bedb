"""Whether one side sees further: the difference of two effective lengths on the same samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from eyechart.harness.analysis.length.curve import SIGNIFICANT, TAILS, Curve, Floats
from eyechart.harness.analysis.length.effective_length import (
    FEW_REPLIES,
    certified_length,
    crossing,
    has_single_threshold,
)
from eyechart.harness.analysis.length.fit import MARGIN, Fit, fit
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.length.limit import Limit

Crossings: TypeAlias = tuple[Floats, Floats]
"""See `_crossings`."""
_NORMAL = np.linspace(-5.4, 5.4, 181)
"""Standard normal quantiles at which each crossing is taken; their pairs make up the distribution
of the difference. They reach far out, since p-values corrected for many tests depend on the tails.
"""
NARROW = 2.0
"""Octaves: the width of an interval from which on its shape may be mistaken for a length."""
_CAUTION, _MORE_CAUTION = 1.5, 16.0
"""For a difference to be significant at a level, 0 must be outside the posterior's interval at a
level this many times smaller; the second number is that of a pair with an interval that is not
`NARROW`. The posterior alone finds a difference too often where curves differ in shape and not in
length, above all where one stays near the threshold: see `results/simulations`."""
_LEVELS = np.unique([*np.geomspace(1e-6, 0.5, 442), TAILS[0], 0.5])
"""One-sided levels of significance; an interval of the difference is computed at each. The lowest
level is so small that a p-value can be significant after Holm's correction for the pairs of 200
models."""
_ROWS = np.arange(len(_NORMAL))
_SHARES = np.array([NormalDist().cdf(quantile) for quantile in _NORMAL])
_HALF = 0.5 + 1e-6
"""The median's level, with more than the error of sums of weights."""
_HALVINGS = 8
"""Halvings of the range of a difference, so that few values above the median are sorted."""
_AS_GOOD_AS = 1.05
"""Factors that differ by no more than this one say the same to a reader."""
_AT_INTERVAL = int(np.searchsorted(_LEVELS, TAILS[0]))
_MOST_CORRELATION = 0.95
_POWER_OVER_CONFIDENCE = 1 - NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf(TAILS[0] / _CAUTION)
"""A difference of this many half widths of a 95 % interval is found with a power of 80 %."""


@dataclass(frozen=True, slots=True)
class LengthDifference:
    """The effective length of first over that of second, in octaves, with its 95 % interval.

    An octave is a factor of 2. An end is infinite where the answers do not limit it, such as where
    both sides see beyond the tested range.
    """

    first: Bound | None
    second: Bound | None
    """`None` where it is not known."""
    octaves: float
    """Median of the difference; infinite outside what was tested, NaN where the sign is open."""
    low: float
    high: float
    one_threshold: bool
    """Whether both sides have a single threshold; otherwise nobody is said to see further."""
    ends: Floats = field(compare=False, repr=False)
    """Both ends of the interval at each of `_LEVELS`, and the median: shape (2, L + 1)."""
    p: float | None
    """Two-sided p-value of no difference, below 0.05 where the interval leaves out 0; corrected
    where the difference is one of a family. `None` where the two cannot be compared."""
    limits: tuple[Limit, Limit] = (Limit(), Limit())
    """What limits both; if one is no property of the model, nobody is said to see further."""

    @property
    def further(self) -> int:
        """1 where first sees further, -1 where second does, 0 where neither is shown."""
        if self.p is None or self.p >= SIGNIFICANT:
            return 0
        return int(self.low > 0) - int(self.high < 0)

    @property
    def is_comparable(self) -> bool:
        """Whether both lengths have a single threshold, and are limited by sight."""
        return self.one_threshold and not self.is_limited

    @property
    def is_limited(self) -> bool:
        """Whether something else than sight limits one of the lengths."""
        return not all(limit.is_ranked for limit in self.limits)

    @property
    def shown(self) -> tuple[float, float, float]:
        """Median and both ends in octaves; without limits if a side has no single threshold, or
        something else than sight limits it.
        """
        if not self.is_comparable:
            return math.nan, -math.inf, math.inf
        return self.octaves, self.low, self.high

    @property
    def swapped(self) -> LengthDifference:
        return replace(
            self,
            first=self.second,
            second=self.first,
            octaves=-self.octaves,
            low=-self.high,
            high=-self.low,
            ends=-self.ends[::-1],
            limits=self.limits[::-1],
        )

    @property
    def detectable(self) -> float:
        """The factor that would have been found with a power of 80 %, about; may be infinite."""
        half = (self.high - self.low) / 2
        return 2 ** (half * _POWER_OVER_CONFIDENCE) if math.isfinite(half) else math.inf

    @property
    def factors(self) -> tuple[float | None, float | None, float | None]:
        """First over second and its 95 % interval, to three digits; `None` without limit."""
        middle, low, high = map(_factor, self.shown)
        return middle, low, high

    @property
    def is_the_ratio(self) -> bool:
        """Whether the factor, if it is known, is the ratio of the two lengths beside it, to within
        `_AS_GOOD_AS`.
        """
        shown = self.factors[0]
        if shown is None or self.first is None or self.second is None:
            return True
        ratio = self.first.length / self.second.length
        return abs(math.log(shown / ratio)) <= math.log(_AS_GOOD_AS)


def _factor(octaves: float) -> float | None:
    return float(f"{2**octaves:.3g}") if math.isfinite(octaves) else None


@dataclass(frozen=True, eq=False)
class Side:
    """The part of a difference that depends on one curve, computed once for many pairs."""

    samples: Curve
    fit: Fit
    threshold: float

    @cached_property
    def one_threshold(self) -> bool:
        return has_single_threshold(self.samples, self.fit, self.threshold)

    @cached_property
    def length(self) -> Bound | None:
        """The effective length, or else the certified length; `None` where it is not known."""
        if self.is_few:
            return None
        length, _ = crossing(self.samples, self.fit, self.threshold)
        if not self.one_threshold:
            length, _ = certified_length(self.samples, self.threshold)
        return length

    @property
    def is_few(self) -> bool:
        """Whether it has too few replies for a length, and so for a difference of lengths."""
        return int(self.samples.scored.sum()) < FEW_REPLIES

    @cached_property
    def crossings(self) -> Crossings:
        """See `_crossings`."""
        return _crossings(self.fit)

    @cached_property
    def is_narrow(self) -> bool:
        """Whether its interval is `NARROW`."""
        return self.fit.octaves_between() < NARROW


def fitted_side(samples: Curve, threshold: float) -> Side:
    """The side of a curve: its fitted curve, and what follows from it."""
    return Side(samples, fit(samples, threshold), threshold)


class Sides:
    """Sides of curves that are in many pairs; curves with equal answers share one fit.

    `fitted` has curves with the fits that are known already.
    """

    def __init__(self, threshold: float, fitted: Iterable[tuple[Curve, Fit]] = ()) -> None:
        self._threshold = threshold
        self._of = {curve.digest: Side(curve, known, threshold) for curve, known in fitted}

    def of(self, samples: Curve) -> Side:
        """The side with these answers; its `samples` are those that came first."""
        key = samples.digest
        if key not in self._of:
            self._of[key] = fitted_side(samples, self._threshold)
        return self._of[key]


def sides_difference(first: Side, second: Side, *, paired: bool = True) -> LengthDifference:
    """The difference of the effective lengths of two sides that are fitted already. Each side has
    all of its own samples. Without `paired` their rows may differ: their posteriors are
    independent.
    """
    single = first.one_threshold and second.one_threshold
    ends = joined(first, second, paired=paired).ends
    if first.is_few or second.is_few:
        ends = np.full_like(ends, math.inf) * [[-1], [1]]
    return _of_ends((first.length, second.length), _middle(ends), ends, one_threshold=single)


def joined(first: Side, second: Side, *, paired: bool) -> JoinedPosteriors:
    """The posteriors of both crossings; with `paired` rows correlated as the answers are."""
    correlation = _correlation(first.fit.row_sums, second.fit.row_sums) if paired else 0.0
    caution = _CAUTION if first.is_narrow and second.is_narrow else _MORE_CAUTION
    return JoinedPosteriors(first.crossings, second.crossings, correlation, caution)


def _of_ends(
    lengths: tuple[Bound | None, Bound | None],
    octaves: float,
    ends: Floats,
    *,
    one_threshold: bool,
    limits: tuple[Limit, Limit] = (Limit(), Limit()),
) -> LengthDifference:
    low, high = ends[:, _AT_INTERVAL]
    found = LengthDifference(
        *lengths, octaves, float(low), float(high), one_threshold, ends, None, limits
    )
    return replace(found, p=_p_value(ends)) if found.is_comparable else found


def _p_value(ends: Floats) -> float:
    """The smallest level, both sides together, at which an interval leaves out 0."""
    return _two_sided(min(_level(ends[0, :-1]), _level(-ends[1, :-1])))


def _level(lower: Floats) -> float:
    """The smallest one-sided level at which the lower end is above 0; 0.5 where none is.

    Between two levels it is interpolated, on a scale of logarithms.
    """
    beyond = np.flatnonzero(lower > 0)
    if not beyond.size:
        return 0.5
    place = int(beyond[0])
    if not place or not math.isfinite(lower[place - 1]) or not math.isfinite(lower[place]):
        return float(_LEVELS[place])
    step = lower[place] / (lower[place] - lower[place - 1])
    level, before = math.log(_LEVELS[place]), math.log(_LEVELS[place - 1])
    return math.exp(level - step * (level - before))


def _two_sided(level: float) -> float:
    return min(1.0, 2 * level * (1 - 1e-9))


LEAST_P = _two_sided(float(_LEVELS[0]))
"""No p-value is smaller; where `JoinedPosteriors.least_p` is, so is the p-value."""


def mean_difference(differences: Sequence[LengthDifference]) -> LengthDifference:
    """The mean of the differences under several conditions; lengths are those of the first
    condition. The interval is as wide as the mean of theirs: conditions share rows, so more
    conditions do not make it narrower.
    """
    first = differences[0]
    return _of_ends(
        (first.first, first.second),
        sum(difference.octaves for difference in differences) / len(differences),
        np.mean([difference.ends for difference in differences], axis=0),
        one_threshold=all(difference.one_threshold for difference in differences),
        limits=(
            _worst(difference.limits[0] for difference in differences),
            _worst(difference.limits[1] for difference in differences),
        ),
    )


def _worst(limits: Iterable[Limit]) -> Limit:
    """The first limit that is no property of the model; else the first one."""
    return min(limits, key=lambda limit: limit.is_ranked)


def _correlation(first: Floats, second: Floats) -> float:
    """The correlation of two sets of row sums, less its standard error; 0 to 0.95. A row that one
    side alone has is 0 on the other.
    """
    rows = max(len(first), len(second))
    first, second = (np.pad(sums, (0, rows - len(sums))) for sums in (first, second))
    size = math.sqrt(float((first**2).sum() * (second**2).sum()))
    rows = int(((first != 0) | (second != 0)).sum())
    if not size or not rows:
        return 0.0
    correlation = float((first * second).sum()) / size - 1 / math.sqrt(rows)
    return min(max(correlation, 0.0), _MOST_CORRELATION)


def _middle(ends: Floats) -> float:
    """The median of a difference, NaN where it may lie anywhere."""
    return (float(ends[0, -1]) + float(ends[1, -1])) / 2


@dataclass(frozen=True, eq=False)
class JoinedPosteriors:
    """The posteriors of two crossings, joined by a normal copula.

    Its correlation is that of the rows' sums of residuals, less their standard error, and never
    negative, so that the interval of the difference is rather too wide.
    """

    first: Crossings
    second: Crossings
    correlation: float
    caution: float
    """How many times smaller a level of the posterior is than that of the test."""

    @property
    def ends(self) -> Floats:
        """`LengthDifference.ends`, in octaves."""
        # by the same function, so that exchanging the sides changes the signs and nothing else
        lower, upper = (_lower_ends(one, _above_median(one)) for one in (self, self.swapped))
        return np.array([lower, -upper])

    @property
    def swapped(self) -> JoinedPosteriors:
        return JoinedPosteriors(self.second, self.first, self.correlation, self.caution)

    @cached_property
    def _levels(self) -> tuple[float, float]:
        """The one-sided levels of the posterior from which the lower end is above 0, and from which
        the upper end is below it. Both together are at least 1, so that the second is 1 where the
        first one decides.
        """
        first = _share_up_to(self, MARGIN)
        return first, 1.0 if first < _LEVELS[-1] else _share_up_to(self.swapped, MARGIN)

    @property
    def sign(self) -> int:
        """1 where the first crossing is more probably the higher one, else -1."""
        return 1 if self._levels[0] < self._levels[1] else -1

    @property
    def least_p(self) -> float:
        """A lower bound of `p`: the p-value of the next lower level. It is quick to compute."""
        return _two_sided(float(_LEVELS[max(self._next_level - 1, 0)]))

    @property
    def _next_level(self) -> int:
        """The place of the first of `_LEVELS` at which the interval leaves out 0."""
        return int(np.searchsorted(_LEVELS, self.caution * min(self._levels), "right"))

    @property
    def p(self) -> float:
        """`LengthDifference.p`, from one side alone, and from the ends up to 0 alone."""
        one = self if self.sign > 0 else self.swapped
        level = float(_LEVELS[min(self._next_level, len(_LEVELS) - 1)])
        reach = MARGIN
        while _share_up_to(one, reach) < level / self.caution:
            reach += MARGIN
        return _two_sided(_level(_lower_ends(one, reach)[:-1]))


def _above_median(pair: JoinedPosteriors) -> float:
    """A value a little above the median of the difference, as low as it may be: no end lies beyond
    it. Infinite where the values that have limits do not reach it.
    """
    first, second = (side[np.isfinite(side)] for side in (pair.first[0], pair.second[1]))
    if not first.size or not second.size:
        return math.inf
    low, high = float(first[0] - second[-1]), float(first[-1] - second[0])
    if _share_up_to(pair, high) <= _HALF:
        return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _share_up_to(pair, middle) > _HALF else (middle, high)
    return high


def _lower_ends(pair: JoinedPosteriors, most: float) -> Floats:
    """The lower end of the difference at each of `_LEVELS`, and its median, where the first
    crossing is as low as it may be and the second one as high: weighted quantiles of all pairs of
    values. Only values up to `most` are sorted, which takes most of the time of a pair; ends beyond
    it are infinite.
    """
    values, weights = pair.first[0][:, None] - pair.second[1][None], _weights(pair.correlation)[0]
    near = values <= most
    order = np.argsort(values[near])
    summed = np.cumsum(np.append(weights[near][order], weights[~near].sum()))
    values = np.append(values[near][order], math.inf)
    levels = np.append(_LEVELS / pair.caution, 0.5)
    ends: Floats = values[np.searchsorted(summed, levels * summed[-1])] - MARGIN
    return ends


def _share_up_to(pair: JoinedPosteriors, most: float) -> float:
    """The probability that the difference, as low as it may be, is at most `most`."""
    places = np.searchsorted(pair.second[1], pair.first[0] - most)
    shares = _weights(pair.correlation)[1]
    return float(shares[_ROWS, places].sum())


@lru_cache(maxsize=4)
def _weights(correlation: float) -> tuple[Floats, Floats]:
    """The weights of all pairs of quantiles, shape (Q, Q), and the share of all that is in each row
    from a place to its end, (Q, Q + 1).
    """
    squares = _NORMAL[:, None] ** 2 + _NORMAL[None] ** 2
    products = 2 * _NORMAL[:, None] * _NORMAL[None]
    weights: Floats = np.exp(-(squares - correlation * products) / (2 * (1 - correlation**2)))
    sums = np.pad(np.cumsum(weights[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    return weights, sums / sums[:, 0].sum()


def _crossings(side: Fit) -> Crossings:
    """Quantiles of the crossing in octaves above 1, twice: as low and as high as they may be.

    A crossing below the tested range may lie anywhere below it, and likewise above; it is not as
    near to one within the range as `MARGIN`.
    """
    places = side.places(_SHARES)
    is_below, is_above = places == -math.inf, places == math.inf
    octaves = math.log2(side.bins.shortest) + side.bins.octaves(places)
    low = np.where(is_below, places, octaves + MARGIN * is_above)
    high = np.where(is_above, places, octaves - MARGIN * is_below)
    return low, high
