"""How far a model sees: effective length, tested length and area, with 95 % intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.curve import (
    NEARLY,
    RESAMPLES,
    Curve,
    Floats,
    Threshold,
    areas_under,
    drawn_accuracies,
)
from eyechart.harness.analysis.fit import TAILS, Fit, fit
from eyechart.harness.analysis.interval import Bound, Span, span_text

NO_SINGLE_THRESHOLD = "no single threshold"
"""The note beside a tested length that stands in for an effective length."""
FEW_REPLIES = 8
"""An effective length from fewer scored replies, a wave of an adaptive run, gets a note."""


def few_replies(scored: int) -> str:
    """`of 3 replies only`: the note beside an effective length; empty if there are enough."""
    if scored >= FEW_REPLIES:
        return ""
    return f"of {scored} repl{'y' if scored == 1 else 'ies'} only"


@dataclass(frozen=True, slots=True)
class EffectiveLength:
    """How far a model sees under one condition. Lengths are in symbols."""

    threshold: Threshold
    length: Bound
    """Where the accuracy falls below the threshold: the median of the posterior. Without a single
    threshold it is the tested length."""
    length_ci: Span
    one_threshold: bool
    """Whether the answers agree with an accuracy that falls below the threshold once at most."""
    lapse: float
    """Share of wrong answers at the shortest length: 0 to 1."""
    tested_length: Bound
    """The longest line such that it and every shorter one reach the threshold."""
    tested_length_ci: Span
    area: float
    """Area under accuracy over log length, as a share of the area at accuracy 1: 0 to 1."""
    area_ci: tuple[float, float]
    fit: Fit = field(compare=False)
    """The fitted curve."""

    @property
    def scored(self) -> int:
        """The scored replies that the estimate uses."""
        return int(self.fit.answered.sum())

    @property
    def note(self) -> str:
        """The note beside the length: no single threshold, or few replies; mostly empty."""
        threshold = "" if self.one_threshold else NO_SINGLE_THRESHOLD
        return ", ".join(filter(None, (threshold, few_replies(self.scored))))

    def __str__(self) -> str:
        """`20 (18 to 23)`, `50 (20 to 100, no single threshold)`, `> 500`."""
        length, span = str(self.length), span_text(self.length_ci)
        inside = ", ".join(filter(None, (span if span != length else "", self.note)))
        return f"{length} ({inside})" if inside else length


def effective_length(
    samples: Curve,
    threshold: Threshold = Threshold(),
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> EffectiveLength:
    """The effective length of a curve; tested length and area have intervals from `resamples`
    draws of its accuracies.

    The tested length is that of RULER (arXiv 2404.06654), but every shorter line must pass as well.
    The same seed gives the same intervals; each contains its estimate.
    """
    fitted = fit(samples, threshold)
    lengths, observed = samples.lengths, samples.accuracies[None]
    draws = drawn_accuracies([samples], resamples, seed)[0]
    passed = int(passing_lengths(observed, threshold)[0])
    low, high = _ends(passing_lengths(draws, threshold), passed)
    high = max(high, _before_a_failure(samples, fitted.required))
    tested = _passed(lengths, passed)
    tested_ci = _passed(lengths, int(low)), _passed(lengths, int(high))
    single = fitted.one_threshold()
    area = float(areas_under(lengths, observed)[0])
    return EffectiveLength(
        threshold=threshold,
        length=fitted.median if single else tested,
        length_ci=fitted.interval() if single else tested_ci,
        one_threshold=single,
        lapse=fitted.lapse,
        tested_length=tested,
        tested_length_ci=tested_ci,
        area=area,
        area_ci=_ends(areas_under(lengths, draws), area),
        fit=fitted,
    )


def _ends(
    draws: npt.NDArray[np.float64] | npt.NDArray[np.int64], observed: float
) -> tuple[float, float]:
    """The middle 95 % of the draws, extended to contain `observed`."""
    low, high = np.quantile(draws, TAILS, method="inverted_cdf")
    return min(float(low), observed), max(float(high), observed)


def longest_tested(samples: Curve, threshold: Threshold) -> Bound:
    """The longest line such that it and every shorter one reach the threshold."""
    passed = int(passing_lengths(samples.accuracies[None], threshold)[0])
    return _passed(samples.lengths, passed)


def passing_lengths(accuracies: Floats, threshold: Threshold) -> npt.NDArray[np.int64]:
    """How many lengths, from the shortest on, reach the threshold before one does not.

    `accuracies` has shape (B, L), the result (B,), 0 to L. An accuracy of 0 never passes.
    """
    passes = (accuracies >= threshold.of(accuracies) - NEARLY) & (accuracies > 0)
    reached: npt.NDArray[np.int64] = np.cumprod(passes, axis=-1).sum(axis=-1)
    return reached


def _before_a_failure(samples: Curve, required: float) -> int:
    """How many lines stand before the first that is significantly below the threshold.

    One exact binomial test at 2.5 % a line. Draws of the accuracies alone give an upper end that is
    too low where many lines lie little above the threshold: one of them falls short by chance.
    """
    for place, (correct, n) in enumerate(zip(samples.correct.sum(axis=0), samples.n, strict=True)):
        if at_most(int(correct), int(n), required) < TAILS[0]:
            return place
    return len(samples.n)


def at_most(successes: int, n: int, share: float) -> float:
    """Probability of `successes` or fewer in `n` independent trials with probability `share`."""
    if successes >= n or share <= 0:
        return 1.0
    if share >= 1:
        return 0.0
    log_terms = [
        math.lgamma(n + 1)
        - math.lgamma(count + 1)
        - math.lgamma(n - count + 1)
        + count * math.log(share)
        + (n - count) * math.log1p(-share)
        for count in range(successes + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, log_terms)))


def _passed(lengths: Floats, count: int) -> Bound:
    """The longest of the first `count` lengths, which are the passing ones."""
    if count == 0:
        return Bound("<", float(lengths[0]))
    return Bound(">" if count == len(lengths) else "=", float(lengths[count - 1]))
