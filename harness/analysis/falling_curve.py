"""Accuracy over log length as a curve that never rises, and the posterior of all such curves.

It is a psychometric function without a fixed shape: a plateau below 1 is a lapse rate, a plateau
above 0 a guess rate, and both a step and a slow decline are possible.

The model is a hidden Markov chain over bins of an eighth of an octave, or of less where exact
lengths are closer together. Its state is an accuracy
(levels half a logit apart, with the threshold half-way between two of them) and a rate of falling.
From bin to bin the accuracy falls at its rate; the rate may change; and rarely the accuracy falls
to any lower level at once. The posterior is exact (forward-backward algorithm, Rabiner 1989,
Proceedings of the IEEE 77). `docs/statistics.md` shows what its intervals cover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from harness.analysis.curve import LEAST_THRESHOLD, MOST_THRESHOLD, Floats
from harness.spec import Line

BINS_AN_OCTAVE = 8
"""Bins of an octave, unless exact lengths are closer together."""
_MOST_BINS = 10_000
"""Bins in all, unless the usual ones are more; the posterior of so many takes about a second."""
_STEP = 0.5
"""Logits between two levels of accuracy."""
_ABOVE, _BELOW = 10, 14
"""Levels above and below the threshold."""
_RATES = (0.0, 1.2, 3.0, 7.0, 20.0)
"""Rates of falling, in logits an octave."""
_RATE_CHANGES, _JUMPS = 0.25, 0.15
"""Expected changes of the rate, and falls to any lower level, in an octave."""
_NEVER = 0.12
"""Prior probability that the accuracy is below the threshold at the shortest length."""
_LAPSE = 0.06
"""Scale of the prior of the error rate at the shortest length: levels of accuracy p above the
threshold weigh exp(-(1 - p) / scale)."""
_RANGE = 600.0
"""Differences of logarithms up to this have an exponential above 0."""


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of equal width in log length, from the shortest length asked to the longest."""

    shortest: float
    longest: float
    an_octave: int = BINS_AN_OCTAVE
    """Bins of an octave: `BINS_AN_OCTAVE` times a power of two."""

    @classmethod
    def of(cls, lines: Sequence[Line], longest: float = 0.0) -> Bins:
        """The bins of these lines and on to `longest`. Exact lengths do not share one, as far as
        `_MOST_BINS` are enough for that.
        """
        exact = np.unique([line.low for line in lines if line.is_exact])
        nearest = float(np.diff(np.log2(exact)).min(initial=math.inf))
        shortest = float(min(line.low for line in lines))
        longest = float(max(longest, *(line.high for line in lines)))
        bins = cls(shortest, longest)
        while bins.an_octave * nearest < 1:
            finer = replace(bins, an_octave=2 * bins.an_octave)
            if finer.count > _MOST_BINS:
                break
            bins = finer
        return bins

    @property
    def count(self) -> int:
        """Number of bins."""
        return int(self.places(np.array([self.longest]))[0]) + 1

    def places(self, lengths: Floats) -> npt.NDArray[np.int64]:
        """The bin of each length."""
        octaves = np.log2(lengths / self.shortest)
        places: npt.NDArray[np.int64] = np.rint(octaves * self.an_octave).astype(np.int64)
        return places

    def length(self, place: float) -> float:
        """The length at a place, which may lie between two bins; within the range asked."""
        return min(max(self.shortest * 2 ** (place / self.an_octave), self.shortest), self.longest)


@dataclass(frozen=True, eq=False)
class FallingCurve:
    """The posterior of the curves of B bins, for each of R sets of answers."""

    below: Floats
    """Probability that the accuracy is below the threshold: shape (R, B), never falls with B."""
    accuracy: Floats
    """Mean accuracy: shape (R, B), 0 to 1."""


@dataclass(frozen=True, eq=False)
class _Chain:
    """The prior of the states (rate, level), of which there are S."""

    accuracies: Floats
    """Accuracy of each level, ascending: shape (levels,)."""
    first: Floats
    """Prior of the first bin: shape (S,)."""
    step: Floats
    """Probabilities from a bin (rows) to the next (columns): shape (S, S)."""


@lru_cache(maxsize=32)
def _chain(threshold: float, bins_an_octave: int) -> _Chain:
    logits = math.log(threshold / (1 - threshold)) + (np.arange(-_BELOW, _ABOVE) + 0.5) * _STEP
    accuracies = 1 / (1 + np.exp(-logits))
    levels, rates = len(logits), len(_RATES)
    within = 1 / bins_an_octave
    falls = np.zeros((rates, levels, levels))
    for rate, logits_an_octave in enumerate(_RATES):
        fall = logits_an_octave * within / _STEP
        whole = int(fall)
        for levels_down, share in ((whole, 1 - fall + whole), (whole + 1, fall - whole)):
            for level in range(levels):
                falls[rate, level, max(0, level - levels_down)] += share
    jumps = np.tril(np.ones((levels, levels)), -1)
    jumps[0, 0] = 1
    jumps /= jumps.sum(axis=1, keepdims=True)
    jump, change = (1 - math.exp(-hazard * within) for hazard in (_JUMPS, _RATE_CHANGES))
    changes = (1 - change) * np.eye(rates) + change / rates
    moves = (1 - jump) * falls + jump * jumps
    step = np.einsum("rq,qlm->rlqm", changes, moves).reshape(rates * levels, rates * levels)
    above = accuracies > threshold
    first = np.exp(-(1 - accuracies) / _LAPSE)
    first[above] *= (1 - _NEVER) / first[above].sum()
    first[~above] = _NEVER / (~above).sum()
    return _Chain(accuracies, np.tile(first / rates, rates), step)


def falling_curve(
    correct: Floats, answered: Floats, threshold: float, bins_an_octave: int = BINS_AN_OCTAVE
) -> FallingCurve:
    """The posterior, given the number of correct and of scored answers in each bin.

    Both have shape (R, B) and need not be whole: counts that are divided by a dispersion weigh
    less. `threshold` is an accuracy; beyond `LEAST_THRESHOLD` and `MOST_THRESHOLD` the nearer of
    the two counts, since levels need room on both sides.
    """
    limited = min(max(threshold, LEAST_THRESHOLD), MOST_THRESHOLD)
    chain = _chain(round(limited, 4), bins_an_octave)
    accuracies, levels = chain.accuracies, len(chain.accuracies)
    sets, bins = correct.shape
    likelihood = correct[..., None] * np.log(accuracies)
    likelihood += (answered - correct)[..., None] * np.log1p(-accuracies)
    likelihood = np.tile(likelihood, len(_RATES))
    forward, backward = np.empty((2, bins, sets, len(chain.first)))
    steps = np.stack([chain.step, chain.step.T])
    messages = np.stack(
        [np.broadcast_to(np.log(chain.first), forward.shape[1:]), np.zeros(forward.shape[1:])]
    )
    with np.errstate(divide="ignore"):  # states that cannot be reached
        for place in range(bins):  # backward from the last bin, forward from the first
            mirrored = bins - 1 - place
            forward[place], backward[mirrored] = messages
            messages[0] += likelihood[:, place]
            messages[1] += likelihood[:, mirrored]
            messages = _next(messages, steps)
    states = forward + backward + likelihood.swapaxes(0, 1)
    states = np.exp(states - states.max(axis=-1, keepdims=True))
    states /= states.sum(axis=-1, keepdims=True)
    posterior = states.reshape(bins, sets, len(_RATES), levels).sum(axis=2).swapaxes(0, 1)
    below = np.minimum(posterior[..., :_BELOW].sum(axis=-1), 1.0)  # sums round to a little more
    return FallingCurve(below, posterior @ accuracies)


def _next(logs: Floats, steps: Floats) -> Floats:
    """The logarithm of exp(logs) @ steps, for each of two directions.

    `logs` has shape (2, R, S), `steps` (2, S, S). States are taken together in groups whose
    probabilities one float can hold: an accuracy that falls and rises again, with hundreds of
    answers in a bin, needs states that are less probable than the smallest float.
    """
    top = logs.max(axis=-1, keepdims=True)
    under = logs - top
    near = under > -_RANGE
    total: Floats = top + np.log(np.where(near, np.exp(under), 0.0) @ steps)
    left = np.where(near, -np.inf, logs)
    while (top := left.max(axis=-1, keepdims=True)).max() > -np.inf:
        top = np.where(np.isfinite(top), top, 0.0)
        group = left > top - _RANGE
        part = np.log(np.exp(np.where(group, left - top, -np.inf)) @ steps)
        total = np.logaddexp(total, top + part)
        left[group] = -np.inf
    return total
