"""What several seeds of training say: an interval over rows and seeds, and an exact test.

A seed of training is the unit: a variant is called better only if its models are, seed by seed, not
because many rows were asked of one model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eyechart.harness.analysis import SIGNIFICANT, Bound, Span, student, wilson

FEWEST = 3
"""Seeds from which an interval over seeds is given."""
_ALL_SPLITS = 200_000
"""Up to so many splits of two variants' models are all counted; of more, as many are drawn."""
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class SeedValue:
    """A number of the model of one seed."""

    value: float
    below: float
    above: float
    """How far its 95 % interval over the rows reaches to both sides."""


@dataclass(frozen=True, slots=True)
class SeedLength:
    """How far the model of one seed is right."""

    length: Bound
    """A bound lies at the shortest or the longest line asked."""
    span: Span
    """The 95 % interval over the rows."""

    @property
    def log(self) -> SeedValue:
        """The natural logarithm of the length, with half the width of its interval to each side."""
        half = math.log(self.span[1].length / self.span[0].length) / 2
        return SeedValue(math.log(self.length.length), half, half)


def share_of(correct: int, n: int) -> SeedValue:
    """A share of right answers, with Wilson's interval. `n` is at least 1."""
    share, (low, high) = correct / n, wilson(correct, n) or (0.0, 1.0)
    return SeedValue(share, share - low, high - share)


def mean(models: Sequence[SeedValue]) -> float:
    """The mean over the models of all seeds."""
    return sum(one.value for one in models) / len(models)


def interval(models: Sequence[SeedValue]) -> tuple[float, float] | None:
    """The 95 % interval of the mean over rows and seeds; `None` with fewer than `FEWEST` seeds.

    It is Student's interval over the seeds. All seeds are asked the same rows, whose error does not
    shrink with more seeds, so their mean error over rows is added to it in quadrature: seeds that
    agree have no interval of width zero.
    """
    count = len(models)
    if count < FEWEST:
        return None
    deviation = float(np.std([one.value for one in models], ddof=1))
    over_seeds = student(count - 1) * deviation / math.sqrt(count)
    below = math.hypot(over_seeds, sum(one.below for one in models) / count)
    above = math.hypot(over_seeds, sum(one.above for one in models) / count)
    return mean(models) - below, mean(models) + above


def mean_length(seeds: Sequence[SeedLength], shortest: float, longest: float) -> Bound | None:
    """The geometric mean of the lengths of all seeds, each taken at its bound. It is itself a bound
    where one of them is. `None` without a seed, and where there are bounds on both sides: the mean
    can be anything.
    """
    signs = {one.length.sign for one in seeds} - {"="}
    if not seeds or len(signs) > 1:
        return None
    geometric = math.exp(mean([one.log for one in seeds]))
    return Bound(signs.pop() if signs else "=", min(max(geometric, shortest), longest))


def length_interval(seeds: Sequence[SeedLength], shortest: float, longest: float) -> Span | None:
    """The interval of `mean_length`: `interval` on the log scale."""
    found = interval([one.log for one in seeds])
    if found is None or mean_length(seeds, shortest, longest) is None:
        return None
    low, high = (_bounded(math.exp(end), shortest, longest) for end in found)
    return low, high


def _bounded(length: float, shortest: float, longest: float) -> Bound:
    if length <= shortest * (1 + _EQUAL):
        return Bound("<", shortest)
    return Bound(">", longest) if length >= longest * (1 - _EQUAL) else Bound("=", length)


def smallest_p(first: int, second: int) -> float:
    """The smallest `permutation_p` of so many seeds of two variants: 0.1 of three and three."""
    splits = math.comb(first + second, first)
    return min(1.0, (2 if first == second else 1) / splits)


def smallest_pair_p(pairs: int) -> float:
    """The smallest p-value of changes of signs over so many pairs: 0.031 for six."""
    return min(1.0, 2 * 0.5**pairs)


def fewest_seeds(comparisons: int) -> int:
    """How many seeds of each variant a study needs, so that one of its comparisons can be below the
    level of every test after Holm's correction.
    """
    seeds = 2
    while smallest_p(seeds, seeds) * comparisons > SIGNIFICANT:
        seeds += 1
    return seeds


def permutation_p(first: Sequence[SeedValue], second: Sequence[SeedValue]) -> float:
    """The exact two-sided p-value of the difference of the means of two variants.

    If the variant made no difference, every split of all models into two groups of these sizes
    would be as likely as the one that was made (Fisher 1935): p is the share of splits whose
    difference is at least as large. Of more than 200,000 splits so many are drawn, always the same.
    """
    values = np.array([one.value for one in (*first, *second)])
    count = len(first)
    splits = math.comb(len(values), count)
    if splits <= _ALL_SPLITS:
        groups = np.array(list(combinations(range(len(values)), count)))
    else:
        rng = np.random.default_rng(0)
        drawn = rng.permuted(np.tile(np.arange(len(values)), (_ALL_SPLITS, 1)), axis=1)
        groups = np.vstack([np.arange(count), drawn[:, :count]])
    sums = values[groups].sum(axis=1)
    differences = np.abs(sums / count - (values.sum() - sums) / (len(values) - count))
    observed = abs(values[:count].mean() - values[count:].mean())
    return float((differences >= observed - _EQUAL).mean())
