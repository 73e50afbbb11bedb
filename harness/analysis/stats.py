"""Intervals and tests: how far a model sees, and whether a difference is real.

Lengths are compared on the log scale, as an eye chart's lines are. All intervals cover 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

Z95 = 1.959963984540054
"""Standard normal quantile at 0.975."""
_LEVEL, _POWER = 0.05, 0.8
THRESHOLD = 0.85
RESAMPLES = 2000
_TAILS = (0.025, 0.975)
_WHOLE_FROM = 100
"""Lengths from here on are written without decimals."""
_NEARLY = 1e-9
"""Two accuracies nearer than this are equal: 0.85 is no binary fraction."""


def wilson(successes: int, n: int) -> tuple[float, float] | None:
    """95 % score interval of a proportion (Wilson 1927); `None` for n = 0, where there is none.

    Unlike the textbook interval it stays inside 0…1 and keeps its width at 0 and n successes.
    """
    if n == 0:
        return None
    share, z2 = successes / n, Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def smallest_difference(pairs: int, tests: int = 1) -> float | None:
    """The difference of two accuracies that so many pairs show four times out of five.

    By McNemar's exact test at 5 %, divided by the number of tests as Holm's first step does, where
    one of the two is right on all that the other is and more; differences that go both ways take
    more. `None` where no outcome of so few pairs could show any.
    """
    needed = math.ceil(math.log2(2 * tests / _LEVEL))
    if needed > pairs:
        return None
    shares = np.linspace(0, 1, 1001)
    return float(shares[_at_least(needed, pairs, shares) >= _POWER][0])


def _at_least(least: int, n: int, shares: Floats) -> Floats:
    """Probability of `least` or more successes in n trials, for each probability of one.

    The terms below `least` are added up, so that `least` should be small.
    """
    below = np.zeros_like(shares)
    for successes in range(least):
        below += math.comb(n, successes) * shares**successes * (1 - shares) ** (n - successes)
    return 1 - below


@dataclass(frozen=True, slots=True)
class Bound:
    """A length that was found within the tested range, or that lies outside it."""

    sign: Literal["<", "=", ">"]
    length: float
    """The length itself, or the end of the tested range that it lies below or above."""

    def __str__(self) -> str:
        """`20`, `< 5` or `> 500`."""
        whole = self.length == int(self.length) or self.length >= _WHOLE_FROM
        said = f"{self.length:.0f}" if whole else f"{self.length:.3g}"
        return said if self.sign == "=" else f"{self.sign} {said}"

    @property
    def at_least(self) -> float | None:
        """What it is not below, if anything tested."""
        return None if self.sign == "<" else self.length

    @property
    def at_most(self) -> float | None:
        """What it is not above, if anything tested."""
        return None if self.sign == ">" else self.length


Span: TypeAlias = tuple[Bound, Bound]
"""Both ends of an interval of lengths."""


def span_text(span: Span) -> str:
    """`20`, `10 to 20`, `< 5 to 20`, `200 to > 500`."""
    low, high = map(str, span)
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class Threshold:
    """From which accuracy on a model sees a length."""

    share: float = THRESHOLD
    relative: bool = False
    """Of the model's own accuracy at the shortest length (NoLiMa, arXiv 2502.05167) instead of an
    accuracy (RULER's spirit, arXiv 2404.06654)."""

    def __str__(self) -> str:
        whole = f"{100 * self.share:g} %"
        return f"{whole} of the accuracy at the shortest length" if self.relative else whole

    def of(self, accuracies: Floats) -> Floats:
        """The accuracy to reach, for each row of (…, lengths): shape (…, 1)."""
        base = accuracies[..., :1]
        wanted: Floats = self.share * base if self.relative else np.full_like(base, self.share)
        return wanted


@dataclass(frozen=True, eq=False)
class Curve:
    """The samples of one model under one condition."""

    lengths: Floats
    """Tested lengths with at least one scored sample, ascending: shape (L,)."""
    correct: Floats
    """1 where right, else 0: shape (N, L), a row an index, so that nested rows stay together."""
    scored: Floats
    """1 where the sample was scored, else 0: shape (N, L)."""

    @property
    def n(self) -> Floats:
        """Scored samples at each length."""
        counts: Floats = self.scored.sum(axis=0)
        return counts

    @property
    def accuracies(self) -> Floats:
        """At each length."""
        shares: Floats = self.correct.sum(axis=0) / self.n
        return shares


def curve(
    lengths: Sequence[int] | npt.NDArray[Any],
    indexes: Sequence[int] | npt.NDArray[Any],
    correct: Sequence[bool] | npt.NDArray[Any],
) -> Curve:
    """A curve from one entry for each scored sample, in any order; no entry, no curve.

    Raises:
        ValueError: nothing was scored.
    """
    if not len(lengths):
        raise ValueError("no sample was scored")
    tested, column = np.unique(np.asarray(lengths, float), return_inverse=True)
    row = np.asarray(indexes)
    scored = np.zeros((row.max() + 1, len(tested)))
    right = np.zeros_like(scored)
    scored[row, column] = 1.0
    right[row, column] = np.asarray(correct, float)
    return Curve(tested, right, scored)


@dataclass(frozen=True, slots=True)
class EffectiveLength:
    """How far a model sees under one condition."""

    threshold: Threshold
    length: Bound
    """Longest tested length up to which accuracy stays at or above the threshold at every one."""
    length_ci: Span
    crossing_length: Bound
    """Where a logistic curve over log length falls below the threshold."""
    crossing_length_ci: Span
    area: float
    """Under accuracy over log length, of the area if all were right: 0 to 1."""
    area_ci: tuple[float, float]


def effective_length(
    samples: Curve,
    threshold: Threshold = Threshold(),
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> EffectiveLength:
    """How far, with intervals from `resamples` draws of `drawn_accuracies`.

    The effective length is that of RULER (arXiv 2404.06654), with every shorter length asked to
    pass as well. The same seed gives the same intervals, and each holds what was observed.
    """
    lengths, observed = samples.lengths, samples.accuracies[None]
    draws = drawn_accuracies([samples], resamples, seed)[0]
    passed = int(passing_lengths(observed, threshold)[0])
    reached = _ends(passing_lengths(draws, threshold), passed)
    area = float(areas_under(lengths, observed)[0])
    crossing, crossing_ci = crossing_length(samples, threshold)
    return EffectiveLength(
        threshold=threshold,
        length=_passed(lengths, passed),
        length_ci=(_passed(lengths, int(reached[0])), _passed(lengths, int(reached[1]))),
        crossing_length=crossing,
        crossing_length_ci=crossing_ci,
        area=area,
        area_ci=_ends(areas_under(lengths, draws), area),
    )


def _ends(draws: npt.NDArray[Any], observed: float) -> tuple[float, float]:
    """The middle 95 % of the draws, stretched to hold what was observed."""
    low, high = np.quantile(draws, _TAILS, method="inverted_cdf")
    return min(float(low), observed), max(float(high), observed)


def passing_lengths(accuracies: Floats, threshold: Threshold) -> npt.NDArray[np.int64]:
    """How many of the lengths, from the shortest on, pass before one does not.

    `accuracies` has shape (B, L); the result (B,), 0 to L. Nothing right is never a pass, whatever
    the threshold is relative to.
    """
    passes = (accuracies >= threshold.of(accuracies) - _NEARLY) & (accuracies > 0)
    reached: npt.NDArray[np.int64] = np.cumprod(passes, axis=-1).sum(axis=-1)
    return reached


def _passed(lengths: Floats, count: int) -> Bound:
    """The longest of the first `count` lengths, which pass."""
    if count == 0:
        return Bound("<", float(lengths[0]))
    return Bound(">" if count == len(lengths) else "=", float(lengths[count - 1]))


def areas_under(lengths: Floats, accuracies: Floats) -> Floats:
    """Area under accuracy over log length, of the area if all were right.

    By trapezoids between the tested lengths; (B, L) to (B,), each 0 to 1. One length alone gives
    its accuracy.
    """
    if len(lengths) == 1:
        return accuracies[:, 0]
    at = np.log(lengths)
    middles = (accuracies[:, 1:] + accuracies[:, :-1]) / 2
    areas: Floats = middles @ np.diff(at) / (at[-1] - at[0])
    return areas


_AT_ONCE = 2_000_000
"""Weights in memory at a time."""


def drawn_accuracies(curves: Sequence[Curve], resamples: int, seed: int) -> list[Floats]:
    """Accuracies that could have been, (resamples, L) for each curve.

    The Bayesian bootstrap (Rubin 1981, Annals of Statistics 9) over rows: a row's weight is the
    same at all lengths and in all curves, so nested rows and pairs stay together. Half a right and
    half a wrong answer are added to every cell (Jeffreys' prior), each with a weight of its own:
    without them twenty right answers of twenty would leave no doubt at all. Alone a cell's
    accuracies then follow Beta(right + 1/2, wrong + 1/2).
    """
    rng = np.random.default_rng(seed)
    patterns, counts = _patterns(curves)
    draws = [np.empty((resamples, len(one.lengths))) for one in curves]
    at_once = max(1, _AT_ONCE // len(counts))
    for start in range(0, resamples, at_once):
        part = slice(start, min(start + at_once, resamples))
        weights = rng.standard_gamma(counts, (part.stop - part.start, len(counts)))
        for (correct, wrong), drawn in zip(patterns, draws, strict=True):
            right_of, wrong_of = weights @ correct, weights @ wrong
            right_of += rng.standard_gamma(0.5, right_of.shape)
            wrong_of += rng.standard_gamma(0.5, wrong_of.shape)
            drawn[part] = right_of / (right_of + wrong_of)
    return draws


def _patterns(curves: Sequence[Curve]) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """The different rows over all curves, as (right, wrong) of each, and how often each is there.

    Equal rows weigh together what a gamma variable of their number does, so a hundred thousand
    rows cost no more than their few patterns.
    """
    rows = max(len(one.correct) for one in curves)
    table = np.concatenate(
        [
            np.pad(part, ((0, rows - len(part)), (0, 0))).astype(np.int8)
            for one in curves
            for part in (one.correct, one.scored - one.correct)
        ],
        axis=1,
    )
    found, counts = np.unique(table, axis=0, return_counts=True)
    ends = np.cumsum([len(one.lengths) for one in curves for _ in range(2)])
    parts = [part.astype(float) for part in np.split(found, ends[:-1], axis=1)]
    return list(zip(parts[::2], parts[1::2], strict=True)), counts.astype(float)


_CHI2_95 = Z95**2
"""Quantile of chi-squared with one degree of freedom."""
_BARTLETT = 4.0
"""By how much that quantile grows over the samples a length; found by simulating 25 to 100."""
_PLACES, _BEYOND, _SLOPES = 400, 12, 60
"""Candidates for the crossing within the tested range, on either side of it, and for the slope."""
_STEEPEST = 400.0
_FLATTEST = 0.02


def crossing_length(samples: Curve, threshold: Threshold) -> tuple[Bound, Span]:
    """Where a logistic curve in log length falls below the threshold, with its interval.

    Maximum likelihood with Firth's penalty (Biometrika 1993), which keeps the slope finite where
    every short length is right and every long one wrong; the interval is that of the profile
    likelihood without it, so that it holds the whole gap between the two. Both are looked up among
    candidates 1/400 of the tested log range apart. A relative threshold counts as known.
    """
    lengths, observed = samples.lengths, samples.accuracies
    wanted = float(np.clip(threshold.of(observed)[0], 1e-6, 1 - 1e-6))
    shortest, longest = float(lengths[0]), float(lengths[-1])
    if len(lengths) == 1:
        end = Bound(">" if observed[0] >= wanted - _NEARLY else "<", shortest)
        return end, (end, end)
    if not observed.any():
        nowhere = Bound("<", shortest)
        return nowhere, (nowhere, nowhere)
    at = np.log(lengths)
    width = at[-1] - at[0]
    beyond = width * np.geomspace(0.01, 2.0, _BEYOND)
    within = np.linspace(at[0], at[-1], _PLACES + 1)
    places = np.concatenate([at[0] - beyond[::-1], within, at[-1] + beyond])
    slopes = -np.geomspace(_FLATTEST, _STEEPEST, _SLOPES) / width
    offset = math.log(wanted / (1 - wanted))
    likelihood, penalty = _likelihoods(at, samples, places, slopes, offset)
    best = int((likelihood + penalty).max(axis=1).argmax())
    profile = likelihood.max(axis=1)
    enough = _CHI2_95 * (1 + _BARTLETT / samples.n.mean()) / 2
    likely = np.flatnonzero(profile >= profile.max() - enough)
    first, last = min(int(likely[0]), best), max(int(likely[-1]), best)

    def bound(place: int) -> Bound:
        if place < _BEYOND:
            return Bound("<", shortest)
        if place > _BEYOND + _PLACES:
            return Bound(">", longest)
        return Bound("=", math.exp(places[place]))

    return bound(best), (bound(first), bound(last))


def _likelihoods(
    at: Floats, samples: Curve, places: Floats, slopes: Floats, offset: float
) -> tuple[Floats, Floats]:
    """Log likelihood of each crossing and slope, and Firth's penalty: (places, slopes).

    The model is `logit p = offset + slope * (log length - crossing)`.
    """
    total = np.zeros((len(places), len(slopes)))
    s0, s1, s2 = (np.zeros_like(total) for _ in range(3))
    for x, right, n in zip(at, samples.correct.sum(axis=0), samples.n, strict=True):
        logit = offset + slopes[None, :] * (x - places[:, None])
        total += right * logit - n * np.logaddexp(0.0, logit)
        size = np.minimum(abs(logit), 700.0)
        weight = n / (2 + np.exp(-size) + np.exp(size))
        centred = x - at.mean()
        s0 += weight
        s1 += weight * centred
        s2 += weight * centred**2
    return total, 0.5 * np.log(np.maximum(s0 * s2 - s1**2, 1e-300))


@dataclass(frozen=True, slots=True)
class PairedLength:
    """Two models, or two conditions, on the same samples of one length."""

    length: int
    n: int
    """Pairs in which both were scored."""
    first: float
    """Accuracy of the first on the pairs."""
    second: float
    only_first: int
    """Pairs in which the first alone is right."""
    only_second: int
    difference_ci: tuple[float, float]
    p: float
    """Exact McNemar, two-sided, of this length alone."""

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second


@dataclass(frozen=True, slots=True)
class PairedArea:
    """Areas under the curves of first and second on the same samples."""

    first: float
    second: float
    difference_ci: tuple[float, float]

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.first - self.second

    @property
    def swapped(self) -> PairedArea:
        """Second against first."""
        low, high = self.difference_ci
        return PairedArea(self.second, self.first, (-high, -low))


@dataclass(frozen=True, slots=True)
class Paired:
    """First against second on the same samples."""

    lengths: tuple[PairedLength, ...]
    area: PairedArea


Pair: TypeAlias = tuple[Curve, Curve]
"""Two curves with the same lengths, row i of both about the same row of symbols."""


def paired(first: Curve, second: Curve) -> Pair | None:
    """What both have of the samples that were scored in both; `None` where there is no pair.

    Lengths that only one has, and lengths without a pair, are left out.
    """
    lengths = np.intersect1d(first.lengths, second.lengths)
    rows = min(len(first.correct), len(second.correct))
    columns = [np.searchsorted(one.lengths, lengths) for one in (first, second)]
    scored, right = (
        [getattr(one, name)[:rows, at] for one, at in zip((first, second), columns, strict=True)]
        for name in ("scored", "correct")
    )
    both = scored[0] * scored[1]
    keep = both.sum(axis=0) > 0
    if not keep.any():
        return None
    one, other = (Curve(lengths[keep], of[:, keep] * both[:, keep], both[:, keep]) for of in right)
    return one, other


def compare_pairs(pair: Pair, *, resamples: int = RESAMPLES, seed: int = 0) -> Paired:
    """First against second, length by length and by area.

    The interval of a length follows from its own answers, whatever those of other lengths are; it
    has four times the draws, which cost little at one length.
    """
    rows = []
    for place, (length, n) in enumerate(zip(pair[0].lengths, pair[0].n, strict=True)):
        first, second = alone = _at_length(pair[0], place), _at_length(pair[1], place)
        accuracies = mean_area([alone], resamples=4 * resamples, seed=seed)  # of one length
        only_first = int((first.correct > second.correct).sum())
        only_second = int((second.correct > first.correct).sum())
        rows.append(
            PairedLength(
                int(length),
                int(n),
                accuracies.first,
                accuracies.second,
                only_first,
                only_second,
                accuracies.difference_ci,
                mcnemar(only_first, only_second),
            )
        )
    return Paired(tuple(rows), mean_area([pair], resamples=resamples, seed=seed))


def _at_length(samples: Curve, place: int) -> Curve:
    """What a curve has at one of its lengths."""
    at = slice(place, place + 1)
    return Curve(samples.lengths[at], samples.correct[:, at], samples.scored[:, at])


def mean_area(pairs: Sequence[Pair], *, resamples: int = RESAMPLES, seed: int = 0) -> PairedArea:
    """The mean areas of several pairs, and the interval of their difference.

    A row weighs the same in all pairs of a draw, so conditions that share rows stay together. Half
    of the draws are those of second against first, turned round: so who is called first changes
    nothing but the sign, and two models that answer alike have an interval about 0 with equal arms.
    """
    first, second = (
        float(np.mean([areas_under(one.lengths, one.accuracies[None])[0] for one in side]))
        for side in zip(*pairs, strict=True)
    )
    half = (resamples + 1) // 2
    turned = [(other, one) for one, other in pairs]
    draws = [_area_differences(pairs, half, seed), -_area_differences(turned, half, seed)]
    return PairedArea(first, second, _even_ends(np.concatenate(draws), first - second))


def _area_differences(pairs: Sequence[Pair], resamples: int, seed: int) -> Floats:
    """Draws of the mean areas' difference, first minus second."""
    curves = [one for pair in pairs for one in pair]
    draws = drawn_accuracies(curves, resamples, seed)
    areas = [areas_under(one.lengths, of) for one, of in zip(curves, draws, strict=True)]
    differences: Floats = np.mean(areas[::2], axis=0) - np.mean(areas[1::2], axis=0)
    return differences


def _even_ends(draws: Floats, observed: float) -> tuple[float, float]:
    """As `_ends`, with as many draws below as above."""
    ordered = np.sort(draws)
    outside = math.ceil(_TAILS[0] * len(ordered)) - 1
    return (
        min(float(ordered[outside]), observed),
        max(float(ordered[-1 - outside]), observed),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p-value of McNemar's exact test (1947): the binomial test of the discordant pairs.

    1 where no pair is discordant. Binomial coefficients of a million pairs are too large for a
    float, so each is divided by the middle one; the quotients follow from one another.
    """
    discordant, fewer = only_first + only_second, min(only_first, only_second)
    middle = discordant // 2
    if fewer == middle:
        return 1.0
    chosen = np.arange(middle, 0, -1)
    coefficients = np.cumprod(chosen / (discordant - chosen + 1))  # of middle - 1, …, 1, 0
    beyond, below = coefficients[middle - 1 - fewer :].sum(), coefficients.sum()
    all_of_them = 2 * below + (2 if discordant % 2 else 1)
    return float(2 * beyond / all_of_them)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number (Holm 1979): adjusted ones, in the given order."""
    count, highest = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, place in enumerate(sorted(range(count), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, (count - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted
