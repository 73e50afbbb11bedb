"""How far a model sees: the effective length, the crossing and the area, with intervals."""

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
"""Quantile of chi-squared with one degree of freedom."""


_BARTLETT = 4.0
"""By how much that quantile grows over the samples a length; found by simulating 25 to 100."""


_PLACES, _BEYOND, _SLOPES = 400, 12, 60
"""Candidates for the crossing within the tested range, on either side of it, and for the slope."""


_STEEPEST = 400.0


_FLATTEST = 0.02


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
    low, high = np.quantile(draws, TAILS, method="inverted_cdf")
    return min(float(low), observed), max(float(high), observed)


def passing_lengths(accuracies: Floats, threshold: Threshold) -> npt.NDArray[np.int64]:
    """How many of the lengths, from the shortest on, pass before one does not.

    `accuracies` has shape (B, L); the result (B,), 0 to L. Nothing right is never a pass, whatever
    the threshold is relative to.
    """
    passes = (accuracies >= threshold.of(accuracies) - NEARLY) & (accuracies > 0)
    reached: npt.NDArray[np.int64] = np.cumprod(passes, axis=-1).sum(axis=-1)
    return reached


def _passed(lengths: Floats, count: int) -> Bound:
    """The longest of the first `count` lengths, which pass."""
    if count == 0:
        return Bound("<", float(lengths[0]))
    return Bound(">" if count == len(lengths) else "=", float(lengths[count - 1]))


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
        end = Bound(">" if observed[0] >= wanted - NEARLY else "<", shortest)
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
