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

from eyechart.harness.analysis.curve import SIGNIFICANT
from eyechart.harness.analysis.interval import Bound, Span, student95

FEWEST = 3
"""Seeds from which an interval over seeds is given."""
_ALL_SPLITS = 200_000
"""Up to so many splits of two variants' models are all counted; of more, as many are drawn."""
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class SeedLength:
    """How far the model of one seed sees."""

    length: Bound
    """A bound lies at the shortest or the longest line asked."""
    span: Span
    """The 95 % interval over the rows."""


def mean_log(seeds: Sequence[SeedLength]) -> float:
    """The mean of the natural logarithms of the lengths of all seeds."""
    return sum(math.log(one.length.length) for one in seeds) / len(seeds)


def mean_length(seeds: Sequence[SeedLength], shortest: float, longest: float) -> Bound:
    """The geometric mean of the lengths of all seeds, each taken at its bound. It is itself a bound
    where one of them is, unless there are bounds on both sides.
    """
    mean = math.exp(mean_log(seeds))
    signs = {one.length.sign for one in seeds} - {"="}
    sign = signs.pop() if len(signs) == 1 else "="
    return Bound(sign, min(max(mean, shortest), longest))


def interval(seeds: Sequence[SeedLength], shortest: float, longest: float) -> Span | None:
    """The 95 % interval of the mean over rows and seeds; `None` with fewer than `FEWEST` seeds.

    On the log scale it is Student's interval over the seeds. All seeds are asked the same rows,
    whose error does not shrink with more seeds, so the mean half-width over rows is added to it in
    quadrature: seeds that agree have no interval of width zero.
    """
    if len(seeds) < FEWEST:
        return None
    logs = np.array([math.log(one.length.length) for one in seeds])
    over_seeds = student95(len(logs) - 1) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    widths = [math.log(one.span[1].length / one.span[0].length) / 2 for one in seeds]
    half = math.hypot(over_seeds, sum(widths) / len(widths))
    low, high = (math.exp(float(logs.mean()) + side * half) for side in (-1, 1))
    return _bounded(low, shortest, longest), _bounded(high, shortest, longest)


def _bounded(length: float, shortest: float, longest: float) -> Bound:
    if length <= shortest * (1 + _EQUAL):
        return Bound("<", shortest)
    return Bound(">", longest) if length >= longest * (1 - _EQUAL) else Bound("=", length)


def smallest_p(first: int, second: int) -> float:
    """The smallest p-value of `permutation_p` for so many seeds of two variants: 0.1 for three and
    three.
    """
    splits = math.comb(first + second, first)
    return min(1.0, (2 if first == second else 1) / splits)


def fewest_seeds(comparisons: int) -> int:
    """How many seeds of each variant a study needs, so that one of its comparisons can be below the
    level of every test after Holm's correction.
    """
    seeds = 2
    while smallest_p(seeds, seeds) * comparisons > SIGNIFICANT:
        seeds += 1
    return seeds


def permutation_p(first: Sequence[SeedLength], second: Sequence[SeedLength]) -> float:
    """The exact two-sided p-value of the difference of the mean log lengths of two variants.

    If the variant made no difference, every split of all models into two groups of these sizes
    would be as likely as the one that was made (Fisher 1935): p is the share of splits whose
    difference is at least as large. Of more than 200,000 splits so many are drawn, always the same.
    """
    logs = np.array([math.log(one.length.length) for one in (*first, *second)])
    count = len(first)
    splits = math.comb(len(logs), count)
    if splits <= _ALL_SPLITS:
        groups = np.array(list(combinations(range(len(logs)), count)))
    else:
        rng = np.random.default_rng(0)
        drawn = rng.permuted(np.tile(np.arange(len(logs)), (_ALL_SPLITS, 1)), axis=1)
        groups = np.vstack([np.arange(count), drawn[:, :count]])
    sums = logs[groups].sum(axis=1)
    differences = np.abs(sums / count - (logs.sum() - sums) / (len(logs) - count))
    observed = abs(logs[:count].mean() - logs[count:].mean())
    return float((differences >= observed - _EQUAL).mean())
