"""Shapes of accuracy over length, each with the length where it falls below the threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, logit

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.settings.judging import THRESHOLD

SHORTEST, LONGEST = 5, 500
ALL = np.arange(LONGEST + 1, dtype=float)
_RANGE = (8.0, 300.0)
"""Range of the crossings that are drawn, evenly in log length."""
_DIP = (17, 24)
_DIP_FACTOR = 0.6
_BEFORE_DIP = 60.0
_NEVER = 1e-12
"""Accuracies nearer to 0 and 1 count as this far from it where their logits are needed."""

_Accuracies: TypeAlias = Callable[[float, np.random.Generator], Floats]
_QUANTILES = (np.arange(999) + 0.5) / 999


@dataclass(frozen=True, slots=True)
class Ease:
    """How much easier some rows are than others, in logits."""

    quantiles: Callable[[Floats], Floats]
    """Share of the rows -> the logits that this share does not exceed, in any shape."""
    templates: int = 0
    """So many groups of rows, each with an ease of its own at each line; 0: each row has one ease
    at all lines."""

    @property
    def logits(self) -> Floats:
        """The logits of rows that stand for all: shape (999,)."""
        return self.quantiles(_QUANTILES)

    def drawn(self, shape: tuple[int, int], seed: int) -> Floats:
        """Logits of samples of this shape (samples, lines)."""
        rng = np.random.default_rng([seed, 7])
        if not self.templates:
            return self.quantiles(rng.random((shape[0], 1)))
        of_templates = self.quantiles(rng.random((self.templates, shape[1])))
        return of_templates[np.arange(shape[0]) % self.templates]


@dataclass(frozen=True, eq=False)
class Truth:
    """What a simulated model does."""

    accuracies: Floats
    """True accuracy at each length from 0 on, in the mean of all rows: shape (501,)."""
    crossing: float
    """The length where the accuracy falls below the threshold. Infinite: it never does; 0: it is
    below at all lengths."""
    ease: Ease | None = None
    """Where rows are not equally hard."""
    evenly: Floats | None = None
    """The logits of the accuracy of a row with an ease of 0, where there is one: shape (501,)."""
    seed: int = 0
    """Of the rows: two models with the same find the same rows hard."""

    def at(self, lengths: npt.NDArray[np.int64]) -> Floats:
        """The accuracy of each sample, from its length: shape (samples, lines)."""
        accuracies: Floats = self.accuracies[lengths]
        if self.ease is None or self.evenly is None:
            return accuracies
        own = expit(self.evenly[lengths] + self.ease.drawn(lengths.shape, self.seed))
        found: Floats = own * accuracies / mean_of_rows(self.evenly, self.ease)[lengths]
        return found


def mean_of_rows(evenly: Floats, ease: Ease) -> Floats:
    """The mean accuracy of rows that are not equally hard: shape (501,)."""
    mean: Floats = expit(evenly[:, None] + ease.logits).mean(axis=1)
    return mean


@dataclass(frozen=True, slots=True)
class Shape:
    """A family of curves, one for each crossing."""

    accuracies: _Accuracies
    """Crossing and generator -> accuracies at all lengths; the same state of the generator makes
    the same irregularities."""
    shortest: float = _RANGE[0]
    """The shortest crossing that is drawn."""
    fixed: float | None = None
    """The truth, where it does not follow from the drawn crossing."""
    ease: Ease | None = None
    """Where rows are not equally hard; `accuracies` are then those of a row with an ease of 0."""

    @property
    def moves(self) -> bool:
        """Whether the truth is the drawn crossing."""
        return self.fixed is None

    @property
    def in_range(self) -> bool:
        """Whether the truth lies within the tested lengths."""
        return self.fixed is None or 0 < self.fixed < math.inf

    def draw(self, seed: int, factor: float = 1.0) -> Truth:
        """A curve of this shape; its crossing is `factor` times shorter than that of factor 1."""
        rng = np.random.default_rng(seed)
        ends = np.log([self.shortest, _RANGE[1]])
        return self.truth(math.exp(rng.uniform(*ends)) / factor, seed, rng)

    def truth(self, crossing: float, seed: int, rng: np.random.Generator) -> Truth:
        """The curve with this crossing."""
        accuracies = self.accuracies(crossing, rng)
        true = crossing if self.fixed is None else self.fixed
        if self.ease is None:
            return Truth(accuracies, true)
        evenly = logit(np.clip(accuracies, _NEVER, 1 - _NEVER))
        return Truth(mean_of_rows(evenly, self.ease), true, self.ease, evenly, seed)


def logistic(slope: float, lapse: float = 0.0, guess: float = 0.0) -> _Accuracies:
    """Accuracy that falls from 1 - `lapse` to `guess` as a logistic function of log length."""
    rise = 1 - guess - lapse
    at_threshold = (rise / (THRESHOLD - guess) - 1) ** (1 / slope)

    def accuracies(crossing: float, _: np.random.Generator) -> Floats:
        values: Floats = guess + rise / (1 + (ALL * at_threshold / crossing) ** slope)
        return values

    return accuracies


def steps(*levels: tuple[float, float]) -> _Accuracies:
    """Accuracy that is constant between steps: pairs of a share of the crossing and the accuracy
    below it.
    """

    def accuracies(crossing: float, _: np.random.Generator) -> Floats:
        values = np.full(ALL.shape, levels[-1][1])
        for share, level in reversed(levels[:-1]):
            values[crossing * share > ALL] = level
        return values

    return accuracies


def comb(deviation: float) -> _Accuracies:
    """A logistic curve whose logits have normal noise, another at each length.

    The accuracy averaged over the noise falls below the threshold at the crossing.
    """

    def accuracies(crossing: float, rng: np.random.Generator) -> Floats:
        smooth = -_SLOPE_OF_COMB * np.log(ALL[1:] * _averaged(deviation) / crossing)
        noise = rng.normal(0, deviation, LONGEST)
        values: Floats = np.concatenate([[1.0], expit(smooth + noise)])
        return values

    return accuracies


_SLOPE_OF_COMB = 3.0


@cache
def _averaged(deviation: float) -> float:
    """Where a logistic curve with its middle at 1 and normal noise crosses the threshold."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()

    def above(length: float) -> float:
        smooth = -_SLOPE_OF_COMB * math.log(length)
        return float(weights @ expit(smooth + deviation * nodes)) - THRESHOLD

    return float(brentq(above, 1e-3, 1.0))


def flat(level: float) -> _Accuracies:
    """The same accuracy at all lengths."""
    return lambda _, __: np.full(ALL.shape, level)


def dip(crossing: float, rng: np.random.Generator) -> Floats:
    """A logistic curve that is much lower at some short lengths."""
    values = logistic(4)(crossing, rng)
    values[_DIP[0] : _DIP[1] + 1] *= _DIP_FACTOR
    return values


SHAPES: Mapping[str, Shape] = {
    "slope 1.5": Shape(logistic(1.5)),
    "slope 2": Shape(logistic(2)),
    "slope 4": Shape(logistic(4)),
    "lapse 3 %": Shape(logistic(3, lapse=0.03)),
    "lapse 8 %": Shape(logistic(3, lapse=0.08)),
    "guess 20 %": Shape(logistic(3, guess=0.2)),
    "step": Shape(steps((1, 0.97), (math.inf, 0.02))),
    "two-stage": Shape(steps((0.25, 0.97), (1, 0.90), (math.inf, 0.2))),
    "comb 0.7": Shape(comb(0.7)),
    "comb 2": Shape(comb(2)),
    "flat 0.95": Shape(flat(0.95), fixed=math.inf),
    "flat 0.90": Shape(flat(0.90), fixed=math.inf),
    "flat 0.80": Shape(flat(0.80), fixed=0.0),
    "dip": Shape(dip, shortest=_BEFORE_DIP, fixed=float(_DIP[0])),
}
"""Combs have that standard deviation of the logits; the dip is at 17 to 24 symbols."""
UNEVEN = ("comb 0.7", "comb 2", "dip")
"""Shapes whose accuracy does not fall everywhere."""


def _weibull(exponent: float) -> _Accuracies:
    """Accuracy exp(-(length / scale) ^ exponent)."""

    def accuracies(crossing: float, _: np.random.Generator) -> Floats:
        values: Floats = np.exp(math.log(THRESHOLD) * (ALL / crossing) ** exponent)
        return values

    return accuracies


WEIBULL = {f"Weibull {exponent:g}": Shape(_weibull(exponent)) for exponent in (0.5, 1, 3)}
"""Shapes of some tables only."""


def _below(level: float, octaves: float) -> Shape:
    """97 % to the crossing, then `level` for so many octaves, then 30 %."""
    return Shape(steps((1, 0.97), (2**octaves, level), (math.inf, 0.3)))


def _shoulder(crossing: float, _: np.random.Generator) -> Floats:
    """97 % that falls to 86 % over the three octaves before the crossing, then 30 %."""
    before = np.log2(np.maximum(ALL, 1) * 8 / crossing)
    values: Floats = 0.97 - 0.11 * np.clip(before / 3, 0, 1)
    values[crossing < ALL] = 0.3
    return values


def _rise(crossing: float, _: np.random.Generator) -> Floats:
    """88 % at 5 symbols that rises to 98 % at 20, and falls with a slope of 4."""
    values = 0.88 + 0.10 * np.clip(np.log2(np.maximum(ALL, 1) / SHORTEST) / 2, 0, 1)
    found: Floats = np.minimum(values, logistic(4)(crossing, np.random.default_rng(0)))
    return found


PLATEAUS = {
    **{
        f"plateau {100 * level:g} %": Shape(steps((1 / 6, 0.97), (1, level), (math.inf, 0.3)))
        for level in (0.86, 0.87, 0.88)
    },
    "plateau 86 %, 1 octave": Shape(steps((1 / 2, 0.97), (1, 0.86), (math.inf, 0.3))),
    **{f"plateau {100 * level:g} %": _below(level, 2.6) for level in (0.82, 0.83, 0.84)},
    "shoulder": Shape(_shoulder),
    "rise": Shape(_rise, shortest=60.0),
}
"""Shapes that stay near the threshold over many lengths, above it or below."""
