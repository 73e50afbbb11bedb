"""The resolution of a line: the smallest ratio of two rows that the answers order rightly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eyechart.harness.analysis.length.curve import TAILS, Floats
from eyechart.harness.analysis.order.pairs import Pairs

SHARE = 0.75
"""The share of pairs that must be ordered right: half-way from chance to all."""
WIDEST = 1.6
"""The largest ratio of pairs that are looked at."""
FEWEST_ROWS, FEWEST_TARGETS = 16, 5
"""Of fewer rows, or different targets, no resolution is given."""
_BINS = 8
_DRAWS = 200
_ORDERED = 0.025


@dataclass(frozen=True, slots=True)
class Resolution:
    """Ratios of two targets, larger by smaller one: above 1."""

    ratio: float | None
    """`None` where even the rows of the line that differ most are not told apart."""
    low: float | None
    """The lower end of the 95 % interval; `None` where it lies beyond the line too."""
    high: float | None
    """The upper end; `None` where it is open."""


def resolution(pairs: Pairs, p: float) -> Resolution | None:
    """The smallest ratio from which on `SHARE` of the `pairs` of a line are ordered right, by the
    rising shares in bins of equally many pairs that are most likely, from one half for equal rows.
    `None` where there are fewer pairs than bins.

    The interval is that of a Bayesian bootstrap over rows. It has an upper end only if the answers
    of the line are ordered by more than chance (`p`, see `order`): without that guard guesses had
    one in up to 15 % of simulated lines. No ratio is below that of the two rows that differ least.
    """
    if len(pairs) < _BINS:
        return None
    edges = np.quantile(pairs.apart, np.arange(1, _BINS) / _BINS)
    in_bin = np.searchsorted(edges, pairs.apart, side="right")[:, None] == np.arange(_BINS)
    in_bin = in_bin[:, in_bin.any(axis=0)].astype(float)
    rows = max(int(pairs.smaller.max()), int(pairs.larger.max())) + 1
    drawn = np.random.default_rng(0).exponential(size=(_DRAWS, rows))
    weights = np.concatenate(
        [np.ones((1, len(pairs))), drawn[:, pairs.smaller] * drawn[:, pairs.larger]]
    )
    counts = weights @ in_bin
    shares = _rising((weights * pairs.right) @ in_bin, counts)
    found = np.maximum(
        _crossings((weights * pairs.apart) @ in_bin / counts, shares), pairs.apart.min()
    )
    low, high = np.quantile(found[1:], TAILS, method="nearest")
    widest = pairs.apart.max()
    return Resolution(
        _ratio(found[0], widest),
        _ratio(low, widest),
        _ratio(high, widest) if p <= _ORDERED else None,
    )


def _rising(right: Floats, counts: Floats) -> Floats:
    """The rising shares of greatest likelihood, by the min-max formula: shape (S, B), from the
    sums of the pairs that are right and of all.
    """
    right_to, counts_to = (
        np.concatenate([np.zeros((len(one), 1)), one.cumsum(axis=1)], axis=1)
        for one in (right, counts)
    )
    found = np.full(right.shape, -math.inf)
    for begin in range(right.shape[1]):
        after = slice(begin + 1, None)
        means = (right_to[:, after] - right_to[:, begin : begin + 1]) / (
            counts_to[:, after] - counts_to[:, begin : begin + 1]
        )
        smallest = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        np.maximum(found[:, begin:], smallest, out=found[:, begin:])
    return found


def _crossings(apart: Floats, shares: Floats) -> Floats:
    """Where rising shares first reach `SHARE`, between two bins on a straight line: shape (S,);
    infinite where they do not. `apart` has the mean of each bin, shape (S, B).
    """
    start = np.zeros((len(apart), 1))
    apart = np.concatenate([start, apart], axis=1)
    shares = np.concatenate([start + 0.5, shares], axis=1)
    reached = shares >= SHARE
    at = np.maximum(reached.argmax(axis=1), 1)
    every = np.arange(len(at))
    below, above = shares[every, at - 1], shares[every, at]
    share = (SHARE - below) / np.where(above > below, above - below, 1.0)
    before = apart[every, at - 1]
    crossing = before + share * (apart[every, at] - before)
    return np.where(reached.any(axis=1), crossing, math.inf)


def _ratio(apart: float, widest: float) -> float | None:
    return math.exp(apart) if apart <= widest else None
