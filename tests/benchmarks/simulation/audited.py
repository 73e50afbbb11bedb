"""Shapes of an audit, other than those on which the methods were chosen: accuracies with a period,
rows that are hard at every length, prompts of a few templates, and curves of real models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit
from scipy.stats import norm, t

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.shapes import ALL, PLATEAUS, Ease, Shape, logistic, steps

_SLOPE = 3.0
_FROM = 16
"""Below it all residues are alike where one of three is worse."""

RECORDED: Mapping[str, Mapping[int, int]] = {
    "anthropic/claude-3.7-sonnet": {32: 16, 64: 16, 128: 16, 256: 7, 320: 10, 352: 5, 512: 0},
    "claude-opus-4-1-20250805": {64: 16, 128: 16, 256: 14, 512: 10, 1024: 4, 1536: 2, 1792: 0},
    "gemini-2.5-pro": {32: 15, 64: 12, 128: 9, 136: 6, 160: 3, 192: 4},
    "google/gemini-2.0-flash-001": {32: 16, 64: 16, 80: 9, 88: 5, 96: 2, 128: 0},
    "gpt-4.1": {32: 16, 64: 14, 96: 5, 104: 1, 112: 2, 128: 0},
    "gpt-4o": {32: 15, 64: 7, 80: 5, 88: 5, 96: 3, 128: 0},
    "gpt-5.2": {32: 16, 64: 15, 128: 11, 160: 2, 176: 1, 192: 1, 256: 0},
    "gpt-5.3-codex": {32: 16, 64: 16, 128: 14, 256: 2, 272: 3, 288: 0},
    "gpt-5.4": {32: 16, 64: 16, 128: 12, 256: 3, 512: 0},
    "o3": {32: 16, 64: 15, 80: 16, 88: 12, 96: 7, 128: 2},
}
"""Length of rows -> right ones of 16 replies, all of which are read. From the data of Dai & Fan
2026, arXiv 2605.02028 (MIT licence)."""
_REPLIES = 16


def _recorded(crossing: float, rng: np.random.Generator) -> Floats:
    """The falling curve nearest to the replies of one of `RECORDED`, with its crossing moved."""
    right = list(RECORDED.values())[rng.integers(len(RECORDED))]
    falling = isotonic_regression(list(right.values()), increasing=False).x / _REPLIES
    asked = np.log(list(right))
    at_threshold = brentq(lambda x: np.interp(x, asked, falling) - THRESHOLD, asked[0], asked[-1])
    logs = np.log(np.maximum(ALL, 1) / crossing) + at_threshold
    accuracies: Floats = np.interp(logs, asked, falling)
    return accuracies


def _logits(crossings: Floats) -> Floats:
    """Logits of logistic curves with these middles."""
    logits: Floats = -_SLOPE * np.log(np.maximum(ALL, 1) / crossings)
    return logits


def _scale(accuracy: Callable[[float], float]) -> float:
    """For which scale an accuracy is at the threshold."""
    return math.exp(float(brentq(lambda x: accuracy(math.exp(x)) - THRESHOLD, -9, 9)))


def _periodic(factors: Sequence[float], first: int = 0) -> Shape:
    """Lengths of one residue are right further than others, by `factors`, from `first` on."""
    of_residues = np.array(factors)
    scale = _scale(lambda one: float(np.mean(expit(_SLOPE * np.log(one * of_residues)))))
    own = np.where(first > ALL, 1.0, np.resize(of_residues, ALL.shape))

    def accuracies(crossing: float, _: np.random.Generator) -> Floats:
        values: Floats = expit(_logits(crossing * scale * own))
        return values

    return Shape(accuracies, shortest=max(8.0, 2.0 * first))


def _uneven_rows(ease: Ease) -> Shape:
    """A logistic curve for each row; their mean crosses the threshold at the crossing."""
    scale = _scale(lambda one: float(np.mean(expit(_SLOPE * math.log(one) + ease.logits))))

    def accuracies(crossing: float, _: np.random.Generator) -> Floats:
        values: Floats = expit(_logits(np.array(crossing * scale)))
        return values

    return Shape(accuracies, ease=ease)


def _two_kinds(share: float) -> Callable[[Floats], Floats]:
    """This share of the rows is right four times less far."""
    return lambda quantiles: np.where(quantiles < share, -_SLOPE * math.log(4), 0.0)


def _frozen(crossing: float, rng: np.random.Generator) -> Floats:
    """Replies that depend on the length alone: all of one length are right, or all are wrong."""
    values: Floats = np.where(rng.random(ALL.shape) < logistic(4)(crossing, rng), 1.0, 0.0)
    return values


AUDITED: Mapping[str, Shape] = {
    "slope 1": Shape(logistic(1)),
    "cliff": Shape(logistic(16)),
    "87 %, then 0": Shape(steps((1, 0.87), (math.inf, 0.0))),
    "period 3": _periodic((0.7, 1.0, 1.4)),
    "period 5": _periodic((0.6, 0.8, 1.0, 1.25, 1.6)),
    "one of 3 worse": _periodic((0.5, 1.0, 1.0), _FROM),
    "10 % hard rows": _uneven_rows(Ease(_two_kinds(0.1))),
    "30 % hard rows": _uneven_rows(Ease(_two_kinds(0.3))),
    "heavy tails": _uneven_rows(Ease(lambda quantiles: t(2).ppf(quantiles))),
    "four templates": _uneven_rows(Ease(lambda quantiles: norm.ppf(quantiles, scale=1.5), 4)),
    "recorded": Shape(_recorded),
    "frozen": Shape(_frozen),
}
MORE: Mapping[str, Shape] = {**PLATEAUS, **AUDITED}
"""Shapes on which no method was chosen, beside `SHAPES`."""
ALIKE = (
    *("plateau 82 %", "plateau 83 %", "plateau 86 %, 1 octave", "plateau 87 %", "plateau 88 %"),
    *("rise", "period 3", "one of 3 worse", "frozen"),
    *("10 % hard rows", "30 % hard rows", "four templates"),
)
"""Those that are much like others; costly simulations leave them out."""
PERIODIC = ("period 3", "period 5", "one of 3 worse", "frozen")
"""Those whose accuracy falls in the mean of neighbouring lengths only."""
NEAR = (*PLATEAUS, "87 %, then 0")
"""Those that stay near the threshold over many lengths."""
