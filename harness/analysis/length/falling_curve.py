"""Accuracy over log length as a curve that never rises, and the posterior of all such curves.

It is a psychometric function without a fixed shape: a plateau below 1 is a lapse rate, a plateau
above 0 a guess rate (known in a forced choice), and both a step and a slow decline are possible.

The model is a hidden Markov chain over bins of length. Its state is an accuracy (levels half a
logit apart, with the threshold half-way between two of them) and a rate of falling.
From bin to bin the accuracy falls at its rate; the rate may change; and rarely the accuracy falls
to any lower level at once. The posterior is exact (forward-backward algorithm, Rabiner 1989,
Proceedings of the IEEE 77). `results/simulations` shows what its intervals cover.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from eyechart.harness.analysis.length.bins import BINS_AN_OCTAVE
from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.settings.judging import LEAST_THRESHOLD, MOST_THRESHOLD

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
"""Scale of the prior of the error rate at the shortest length: a level with accuracy p above the
threshold has the weight exp(-(1 - p) / scale).
"""
_RANGE = 600.0
"""A difference of logarithms of at most this has an exponential above 0."""


@dataclass(frozen=True, eq=False)
class FallingCurve:
    """The posterior of the curves of B bins, for each of R sets of answers."""

    below: Floats
    """Probability that the accuracy is below the threshold: shape (R, B), never falls with B."""
    levels: Floats
    """Probability of each level of accuracy: shape (R, B, L)."""
    accuracies: Floats
    """Share of samples that are seen on each level, ascending: shape (L,)."""
    guessed: Floats
    """Accuracy of guesses in each bin, where it is known, else 0: shape (B,)."""

    @cached_property
    def accuracy(self) -> Floats:
        """Mean accuracy: shape (R, B), 0 to 1."""
        mean: Floats = self.guessed + (1 - self.guessed) * (self.levels @ self.accuracies)
        return mean

    def up_to(self, bins: int) -> FallingCurve:
        """The first bins of the posterior."""
        kept = slice(bins)
        return FallingCurve(
            self.below[:, kept], self.levels[:, kept], self.accuracies, self.guessed[kept]
        )


@dataclass(frozen=True, eq=False)
class _Chain:
    """The prior of the states (rate, level), of which there are S."""

    accuracies: Floats
    """Accuracy of each level, ascending: shape (levels,)."""
    first: Floats
    """Prior of the first bin: shape (S,)."""
    step: Floats
    """Probabilities from a bin (rows) to the next (columns): shape (S, S)."""


@lru_cache(maxsize=128)
def _chain(threshold: float, apart: float) -> _Chain:
    """The chain of bins that are this many octaves apart."""
    logits = math.log(threshold / (1 - threshold)) + (np.arange(-_BELOW, _ABOVE) + 0.5) * _STEP
    accuracies = 1 / (1 + np.exp(-logits))
    levels, rates = len(logits), len(_RATES)
    falls = np.zeros((rates, levels, levels))
    for rate, logits_an_octave in enumerate(_RATES):
        fall = logits_an_octave * apart / _STEP
        whole = int(fall)
        for levels_down, share in ((whole, 1 - fall + whole), (whole + 1, fall - whole)):
            for level in range(levels):
                falls[rate, level, max(0, level - levels_down)] += share
    jumps = np.tril(np.ones((levels, levels)), -1)
    jumps[0, 0] = 1
    jumps /= jumps.sum(axis=1, keepdims=True)
    jump, change = (1 - math.exp(-hazard * apart) for hazard in (_JUMPS, _RATE_CHANGES))
    changes = (1 - change) * np.eye(rates) + change / rates
    moves = (1 - jump) * falls + jump * jumps
    step = np.einsum("rq,qlm->rlqm", changes, moves).reshape(rates * levels, rates * levels)
    above = accuracies > threshold
    first = np.exp(-(1 - accuracies) / _LAPSE)
    first[above] *= (1 - _NEVER) / first[above].sum()
    first[~above] = _NEVER / (~above).sum()
    return _Chain(accuracies, np.tile(first / rates, rates), step)


def falling_curve(
    correct: Floats,
    answered: Floats,
    threshold: float,
    centres: Floats | None = None,
    chance: Floats | None = None,
) -> FallingCurve:
    """The posterior, given the number of correct and of scored answers in each bin.

    Both have shape (R, B). They need not be whole numbers: counts divided by a dispersion weigh
    less. `centres` has the octaves of the bins, shape (B,); without them they are an eighth apart.
    `threshold` is an accuracy; beyond `LEAST_THRESHOLD` and `MOST_THRESHOLD` the nearer of the two
    counts, since levels need room on both sides.

    `chance` has the accuracy of guesses in each bin, shape (B,), where it is known. The levels, the
    prior and the `threshold` are then those of what is seen: a sample is right if it is seen, and
    with this probability if it is not.
    """
    sets, bins = correct.shape
    if centres is None:
        centres = np.arange(bins) / BINS_AN_OCTAVE
    share = round(min(max(threshold, LEAST_THRESHOLD), MOST_THRESHOLD), 4)
    chain = _chain(share, 1 / BINS_AN_OCTAVE)
    steps = [_chain(share, apart).step for apart in _rounded(np.diff(centres))]
    guessed = np.zeros(bins) if chance is None else chance
    accuracies = guessed[:, None] + (1 - guessed[:, None]) * chain.accuracies
    levels = len(chain.accuracies)
    likelihood = correct[..., None] * np.log(accuracies)
    likelihood += (answered - correct)[..., None] * np.log1p(-accuracies)
    likelihood = np.tile(likelihood, len(_RATES))
    forward, backward = np.empty((2, bins, sets, len(chain.first)))
    messages = np.stack(
        [np.broadcast_to(np.log(chain.first), forward.shape[1:]), np.zeros(forward.shape[1:])]
    )
    both: dict[tuple[int, int], Floats] = {}
    with np.errstate(divide="ignore"):  # states that cannot be reached
        for place in range(bins):  # backward from the last bin, forward from the first
            mirrored = bins - 1 - place
            forward[place], backward[mirrored] = messages
            if not mirrored:
                break
            messages[0] += likelihood[:, place]
            messages[1] += likelihood[:, mirrored]
            onward, back = steps[place], steps[mirrored - 1]
            key = id(onward), id(back)
            if key not in both:
                both[key] = np.stack([onward, back.T])
            messages = _next(messages, both[key])
    states = forward + backward + likelihood.swapaxes(0, 1)
    states = np.exp(states - states.max(axis=-1, keepdims=True))
    states /= states.sum(axis=-1, keepdims=True)
    posterior = states.reshape(bins, sets, len(_RATES), levels).sum(axis=2).swapaxes(0, 1)
    below = np.minimum(posterior[..., :_BELOW].sum(axis=-1), 1.0)  # sums round to a little more
    return FallingCurve(below, posterior, chain.accuracies, guessed)


def accuracy_interval(
    levels: Floats, accuracies: Floats, tails: tuple[float, float]
) -> tuple[float, float]:
    """The accuracies between two quantiles, given the probability of each level: shape (L,). A
    level stands for all logits that are nearer to it than to others, and the outer ones reach to 0
    and 1. Half a level is added to both ends, since accuracies are known no better than that.
    """
    edges = _edges(accuracies)
    ends = np.interp(tails, np.concatenate([[0.0], np.cumsum(levels)]), edges)
    low, high = (1 / (1 + np.exp(-ends + np.array([1, -1]) * _STEP / 2))).tolist()
    outer = 1 / (1 + np.exp(-edges[[1, -2]]))
    return 0.0 if low < outer[0] else low, 1.0 if high > outer[1] else high


def share_below(levels: Floats, accuracies: Floats, accuracy: float) -> float:
    """The probability that the accuracy is below `accuracy`, given that of each level: shape (L,),
    each spread evenly over the logits that it stands for.
    """
    logit = math.log(accuracy / (1 - accuracy))
    return float(np.interp(logit, _edges(accuracies), np.concatenate([[0.0], np.cumsum(levels)])))


def _edges(accuracies: Floats) -> Floats:
    """The logits between levels, and the outer ends: shape (L + 1,)."""
    logits = np.log(accuracies / (1 - accuracies))
    return np.concatenate([logits - _STEP / 2, [logits[-1] + _STEP / 2]])


def _rounded(apart: Floats) -> list[float]:
    """Distances of bins, rounded by at most 5 % each, so that few different ones remain."""
    rounded: list[float] = (2 ** (np.rint(8 * np.log2(apart)) / 8)).tolist()
    return rounded


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
    if near.all():
        return total
    left = np.where(near, -np.inf, logs)
    while (top := left.max(axis=-1, keepdims=True)).max() > -np.inf:
        top = np.where(np.isfinite(top), top, 0.0)
        group = left > top - _RANGE
        part = np.log(np.exp(np.where(group, left - top, -np.inf)) @ steps)
        total = np.logaddexp(total, top + part)
        left[group] = -np.inf
    return total
