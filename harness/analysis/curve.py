"""Accuracy over length: the samples of one condition, the area under them, and what could have
been.

Lengths are compared on the log scale, as an eye chart's lines are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


THRESHOLD = 0.85


RESAMPLES = 2000


TAILS = (0.025, 0.975)


NEARLY = 1e-9
"""Two accuracies nearer than this are equal: 0.85 is no binary fraction."""


_AT_ONCE = 2_000_000
"""Weights in memory at a time."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """From which accuracy on a model sees a length."""

    share: float = THRESHOLD
    relative: bool = False
    """Of the model's own accuracy at the shortest length (NoLiMa, arXiv 2502.05167) instead of an
    accuracy (RULER's spirit, arXiv 2404.06654)."""

    def __str__(self) -> str:
        whole = f"{100 * self.share:g} %"
        return f"{whole} of the accuracy at the shortest length" if self.relative else whole

    def of(self, accuracies: Floats) -> Floats:
        """The accuracy to reach, for each row of (…, lengths): shape (…, 1)."""
        base = accuracies[..., :1]
        wanted: Floats = self.share * base if self.relative else np.full_like(base, self.share)
        return wanted


@dataclass(frozen=True, eq=False)
class Curve:
    """The samples of one model under one condition."""

    lengths: Floats
    """Tested lengths with at least one scored sample, ascending: shape (L,)."""
    correct: Floats
    """1 where right, else 0: shape (N, L), a row an index, so that nested rows stay together."""
    scored: Floats
    """1 where the sample was scored, else 0: shape (N, L)."""

    @property
    def n(self) -> Floats:
        """Scored samples at each length."""
        counts: Floats = self.scored.sum(axis=0)
        return counts

    @property
    def accuracies(self) -> Floats:
        """At each length."""
        shares: Floats = self.correct.sum(axis=0) / self.n
        return shares


def curve(
    lengths: Sequence[int] | npt.NDArray[Any],
    indexes: Sequence[int] | npt.NDArray[Any],
    correct: Sequence[bool] | npt.NDArray[Any],
) -> Curve:
    """A curve from one entry for each scored sample, in any order; no entry, no curve.

    Raises:
        ValueError: nothing was scored.
    """
    if not len(lengths):
        raise ValueError("no sample was scored")
    tested, column = np.unique(np.asarray(lengths, float), return_inverse=True)
    row = np.asarray(indexes)
    scored = np.zeros((row.max() + 1, len(tested)))
    right = np.zeros_like(scored)
    scored[row, column] = 1.0
    right[row, column] = np.asarray(correct, float)
    return Curve(tested, right, scored)


def areas_under(lengths: Floats, accuracies: Floats) -> Floats:
    """Area under accuracy over log length, of the area if all were right.

    By trapezoids between the tested lengths; (B, L) to (B,), each 0 to 1. One length alone gives
    its accuracy.
    """
    if len(lengths) == 1:
        return accuracies[:, 0]
    at = np.log(lengths)
    middles = (accuracies[:, 1:] + accuracies[:, :-1]) / 2
    areas: Floats = middles @ np.diff(at) / (at[-1] - at[0])
    return areas


def drawn_accuracies(curves: Sequence[Curve], resamples: int, seed: int) -> list[Floats]:
    """Accuracies that could have been, (resamples, L) for each curve.

    The Bayesian bootstrap (Rubin 1981, Annals of Statistics 9) over rows: a row's weight is the
    same at all lengths and in all curves, so nested rows and pairs stay together. Half a right and
    half a wrong answer are added to every cell (Jeffreys' prior), each with a weight of its own:
    without them twenty right answers of twenty would leave no doubt at all. Alone a cell's
    accuracies then follow Beta(right + 1/2, wrong + 1/2).
    """
    rng = np.random.default_rng(seed)
    patterns, counts = _patterns(curves)
    draws = [np.empty((resamples, len(one.lengths))) for one in curves]
    at_once = max(1, _AT_ONCE // len(counts))
    for start in range(0, resamples, at_once):
        part = slice(start, min(start + at_once, resamples))
        weights = rng.standard_gamma(counts, (part.stop - part.start, len(counts)))
        for (correct, wrong), drawn in zip(patterns, draws, strict=True):
            right_of, wrong_of = weights @ correct, weights @ wrong
            right_of += rng.standard_gamma(0.5, right_of.shape)
            wrong_of += rng.standard_gamma(0.5, wrong_of.shape)
            drawn[part] = right_of / (right_of + wrong_of)
    return draws


def _patterns(curves: Sequence[Curve]) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """The different rows over all curves, as (right, wrong) of each, and how often each is there.

    Equal rows weigh together what a gamma variable of their number does, so a hundred thousand
    rows cost no more than their few patterns.
    """
    rows = max(len(one.correct) for one in curves)
    table = np.concatenate(
        [
            np.pad(part, ((0, rows - len(part)), (0, 0))).astype(np.int8)
            for one in curves
            for part in (one.correct, one.scored - one.correct)
        ],
        axis=1,
    )
    table = table[table.any(axis=1)]  # a row that nobody scored must not change the draws
    found, counts = np.unique(table, axis=0, return_counts=True)
    ends = np.cumsum([len(one.lengths) for one in curves for _ in range(2)])
    parts = [part.astype(float) for part in np.split(found, ends[:-1], axis=1)]
    return list(zip(parts[::2], parts[1::2], strict=True)), counts.astype(float)
