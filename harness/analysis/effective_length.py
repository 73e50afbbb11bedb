"""Effective length, crossing length and area of a curve, with 95 % intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.analysis.curve import (
    NEARLY,
    RESAMPLES,
    TAILS,
    Curve,
    Floats,
    Threshold,
    areas_under,
    drawn_accuracies,
)
from harness.analysis.interval import Z95, Bound, Span

_CHI2_95 = Z95**2
"""The 95 % quantile of chi-squared with one degree of freedom."""


_BARTLETT = 4.0
"""Small-sample correction: the quantile grows by the factor 1 + this / samples per length. From
simulations with 25 to 100 samples per length."""


_PLACES, _BEYOND, _SLOPES = 400, 12, 60
"""Numbers of candidates: crossings in the tested range, on each side of it, and slopes."""


_STEEPEST = 400.0


_FLATTEST = 0.02


@dataclass(frozen=True, slots=True)
class EffectiveLength:
    """How far a model sees under one condition; lengths are in symbols."""

    threshold: Threshold
    length: Bound
    """The longest tested length such that it and every shorter one reach the threshold."""
    length_ci: Span
    crossing_length: Bound
    """Where a logistic curve over log length falls below the threshold."""
    crossing_length_ci: Span
    area: float
    """Area under accuracy over log length, as a share of the area at accuracy 1: 0 to 1."""
    area_ci: tuple[float, float]


def effective_length(
    samples: Curve,
    threshold: Threshold = Threshold(),
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> EffectiveLength:
    """The effective length of a curve, with intervals from `resamples` draws of its accuracies.

    As in RULER (arXiv 2404.06654), but every shorter length must pass as well. The same seed gives
    the same intervals; each contains its estimate.
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
    """The middle 95 % of the draws, extended to contain `observed`."""
    low, high = np.quantile(draws, TAILS, method="inverted_cdf")
    return min(float(low), observed), max(float(high), observed)


def passing_lengths(accuracies: Floats, threshold: Threshold) -> npt.NDArray[np.int64]:
    """How many lengths, from the shortest on, reach the threshold before one does not.

    `accuracies` has shape (B, L), the result (B,), 0 to L. An accuracy of 0 never passes.
    """
    passes = (accuracies >= threshold.of(accuracies) - NEARLY) & (accuracies > 0)
    reached: npt.NDArray[np.int64] = np.cumprod(passes, axis=-1).sum(axis=-1)
    return reached


def _passed(lengths: Floats, count: int) -> Bound:
    """The longest of the first `count` lengths, which are those that pass."""
    if count == 0:
        return Bound("<", float(lengths[0]))
    return Bound(">" if count == len(lengths) else "=", float(lengths[count - 1]))


def crossing_length(samples: Curve, threshold: Threshold) -> tuple[Bound, Span]:
    """The length where a logistic curve in log length crosses the threshold, with its interval.

    The estimate has the maximum likelihood with Firth's penalty (Biometrika 1993), which keeps the
    slope finite where all short lengths are correct and all long ones wrong. The interval is that
    of the profile likelihood without the penalty, so in that case it covers the whole gap. Both are
    searched on a grid with steps of 1/400 of the tested log range. A relative threshold is treated
    as known exactly.
    """
    lengths, observed = samples.lengths, samples.accuracies
    required = float(np.clip(threshold.of(observed)[0], 1e-6, 1 - 1e-6))
    shortest, longest = float(lengths[0]), float(lengths[-1])
    if len(lengths) == 1:
        end = Bound(">" if observed[0] >= required - NEARLY else "<", shortest)
        return end, (end, end)
    if not observed.any():
        below = Bound("<", shortest)
        return below, (below, below)
    log_lengths = np.log(lengths)
    width = log_lengths[-1] - log_lengths[0]
    beyond = width * np.geomspace(0.01, 2.0, _BEYOND)
    within = np.linspace(log_lengths[0], log_lengths[-1], _PLACES + 1)
    crossings = np.concatenate([log_lengths[0] - beyond[::-1], within, log_lengths[-1] + beyond])
    slopes = -np.geomspace(_FLATTEST, _STEEPEST, _SLOPES) / width
    offset = math.log(required / (1 - required))
    likelihood, penalty = _likelihoods(log_lengths, samples, crossings, slopes, offset)
    best = int((likelihood + penalty).max(axis=1).argmax())
    profile = likelihood.max(axis=1)
    drop = _CHI2_95 * (1 + _BARTLETT / samples.n.mean()) / 2
    plausible = np.flatnonzero(profile >= profile.max() - drop)
    first, last = min(int(plausible[0]), best), max(int(plausible[-1]), best)

    def bound(place: int) -> Bound:
        if place < _BEYOND:
            return Bound("<", shortest)
        if place > _BEYOND + _PLACES:
            return Bound(">", longest)
        return Bound("=", math.exp(crossings[place]))

    return bound(best), (bound(first), bound(last))


def _likelihoods(
    log_lengths: Floats, samples: Curve, crossings: Floats, slopes: Floats, offset: float
) -> tuple[Floats, Floats]:
    """Log likelihood and Firth's penalty of each crossing and slope: shapes (crossings, slopes).

    The model is `logit p = offset + slope * (log length - crossing)`; crossings are log lengths.
    """
    likelihood = np.zeros((len(crossings), len(slopes)))
    s0, s1, s2 = (np.zeros_like(likelihood) for _ in range(3))
    for x, correct, n in zip(log_lengths, samples.correct.sum(axis=0), samples.n, strict=True):
        logit = offset + slopes[None, :] * (x - crossings[:, None])
        likelihood += correct * logit - n * np.logaddexp(0.0, logit)
        magnitude = np.minimum(abs(logit), 700.0)
        weight = n / (2 + np.exp(-magnitude) + np.exp(magnitude))
        centred = x - log_lengths.mean()
        s0 += weight
        s1 += weight * centred
        s2 += weight * centred**2
    return likelihood, 0.5 * np.log(np.maximum(s0 * s2 - s1**2, 1e-300))
