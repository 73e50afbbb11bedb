"""What a planned comparison of two models finds with a power of 80 %, at an error rate of 5 %.

Both models are taken to answer independently of each other, each with its own accuracy. Where they
fail on the same samples, smaller differences are found too. `tests/benchmarks/power.py` checks both
numbers against simulated comparisons.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.comparison.length_difference import (
    Side,
    fitted_side,
    sides_difference,
)
from eyechart.harness.analysis.length.curve import SIGNIFICANT, Curve, Floats
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line

POWER = 0.8
FROM = 0.9
"""Accuracy of the better model, for `smallest_fall`."""
_STEPS = 1000
"""Accuracies are searched in steps of a thousandth."""
_SLOPE, _LAPSES = 3.0, 0.02
"""The simulated models: log odds lost per unit of log length, and share of errors everywhere."""
_COMPARISONS = 12
_MOST_SAMPLES = 1000
"""Samples of a line that are simulated, at most; with more, an even smaller factor is found."""

Counts: TypeAlias = npt.NDArray[np.int64]


@lru_cache(maxsize=64)
def smallest_fall(pairs: int, tests: int = 1) -> float | None:
    """The smallest fall from the accuracy `FROM` that is found on one line of this many pairs.

    By McNemar's exact test at 5 % divided by the number of tests, as in Holm's first step. `None`
    where not even a fall to 0 is found.
    """
    critical = critical_counts(pairs, SIGNIFICANT / tests)
    if power_of_fall(FROM, 0.0, critical) < POWER:
        return None
    found, missed = 0, round(FROM * _STEPS)
    while missed - found > 1:
        middle = (found + missed) // 2
        if power_of_fall(FROM, middle / _STEPS, critical) >= POWER:
            found = middle
        else:
            missed = middle
    return (round(FROM * _STEPS) - found) / _STEPS


def critical_counts(pairs: int, level: float) -> Counts:
    """For each number of discordant pairs from 0 to `pairs`: in how many of them, at most, the
    worse side may be the right one so that McNemar's exact p-value is below `level`; -1 if in none.

    From one number of discordant pairs to the next this count grows by one at most, so the tail of
    the binomial distribution is updated, not summed anew.
    """
    counts = np.full(pairs + 1, -1, np.int64)
    count, tail, at_count = -1, 0.0, 0.0  # P(at most `count`), P(`count`)
    for discordant in range(1, pairs + 1):
        tail -= at_count / 2
        if count < 0:
            at_next = 0.5**discordant
        else:
            at_count *= discordant / (discordant - count) / 2
            at_next = at_count * (discordant - count) / (count + 1)
        if 2 * (tail + at_next) < level:
            count, tail, at_count = count + 1, tail + at_next, at_next
        counts[discordant] = count
    return counts


def power_of_fall(first: float, second: float, critical: Counts) -> float:
    """Probability that a model of accuracy `first` is found to be more accurate than one of
    `second`; `critical` comes from `critical_counts`.

    Summed over the number of discordant pairs, and over their splits.
    """
    discordant = np.arange(len(critical))
    log_factorials = np.concatenate([[0.0], np.log(discordant[1:]).cumsum()])

    def mass(successes: Counts, trials: Counts, share: float) -> Floats:
        chosen = np.maximum(successes, 0)
        logs = log_factorials[trials] - log_factorials[chosen] - log_factorials[trials - chosen]
        masses = np.exp(logs + _power(share, chosen) + _power(1 - share, trials - chosen))
        return np.where(successes < 0, 0.0, masses)

    only_first, only_second = first * (1 - second), second * (1 - first)
    either = only_first + only_second
    share = only_second / either
    # P(at most `critical` of `discordant`), from one number of discordant pairs to the next
    falls = share * mass(critical[:-1], discordant[:-1], share)
    rises = np.where(np.diff(critical) > 0, mass(critical[1:], discordant[1:], share), 0.0)
    significant = np.concatenate([[0.0], np.cumsum(rises - falls)])
    all_pairs = np.full_like(discordant, len(critical) - 1)
    return float((mass(discordant, all_pairs, either) * significant).sum())


def _power(share: float, exponents: Counts) -> Floats:
    """The logarithm of `share` to the power of each exponent; 0 to the power of 0 is 1."""
    logarithm = math.log(share) if share > 0 else -math.inf
    return np.where(exponents > 0, np.maximum(exponents, 1) * logarithm, 0.0)


@lru_cache(maxsize=64)
def smallest_factor(lines: tuple[tuple[Line, int], ...]) -> float | None:
    """The smallest factor between two effective lengths that is found, about.

    `lines` are ascending, each with its samples. The result is the median over simulated
    comparisons of two equal models that are right to the middle of the tested range. `None` where
    no factor within that range is found.
    """
    rng = np.random.default_rng(0)
    factors = [
        sides_difference(_simulated(lines, rng), _simulated(lines, rng)).detectable
        for _ in range(_COMPARISONS)
    ]
    factor = float(np.median(factors))
    return factor if factor <= lines[-1][0].high / lines[0][0].low else None


def _simulated(lines: tuple[tuple[Line, int], ...], rng: np.random.Generator) -> Side:
    """The side with answers whose accuracy is a logistic curve over log length, with lapses."""
    threshold = THRESHOLD
    rows = min(max(samples for _, samples in lines), _MOST_SAMPLES)
    lengths = np.array(
        [
            [line.length_of(index, 0) if index < samples else np.nan for line, samples in lines]
            for index in range(rows)
        ]
    )
    crossing = math.sqrt(lines[0][0].low * lines[-1][0].high)
    odds = (1 - _LAPSES) / threshold - 1
    accuracies = (1 - _LAPSES) / (1 + odds * (lengths / crossing) ** _SLOPE)
    correct = rng.random(lengths.shape) < accuracies
    scored = ~np.isnan(lengths)
    curve = Curve(
        tuple(line for line, _ in lines), correct.astype(float), scored.astype(float), lengths
    )
    return fitted_side(curve, threshold)
