"""Accuracy over length: the curve of one condition, the area under it, and its bootstrap.

Lengths are compared on the log scale, like the lines of an eye chart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.interval import at_most
from eyechart.harness.errors import UsageError
from eyechart.harness.spec import Line
from eyechart.providers.naming import named

Floats: TypeAlias = npt.NDArray[np.float64]
RESAMPLES = 2000
TAILS = (0.025, 0.975)
SIGNIFICANT = 0.05
"""Level of every test, after the correction."""
NEARLY = 1e-9
"""Accuracies that differ by less are equal: 0.85 has no exact binary form."""
_BELOW = 0.005
"""Level of the test of each line against guesses."""
_MOST_WEIGHTS = 2_000_000
"""Most bootstrap weights in memory at a time."""


def threshold_text(threshold: float) -> str:
    """`85 %`."""
    return f"{100 * threshold:g} %"


@dataclass(frozen=True, eq=False)
class Curve:
    """The samples of one model under one condition."""

    lines: tuple[Line, ...]
    """Lines with at least one scored sample, ascending: L of them."""
    correct: Floats
    """1 where correct, else 0, and of several draws their mean: shape (N, L), one row for each
    index. Row i holds the same row of symbols at all lengths."""
    scored: Floats
    """1 where the sample was scored, else 0: shape (N, L)."""
    true_lengths: Floats
    """Symbols in each sample's row, NaN where it was not scored: shape (N, L)."""
    guessed: Floats | None = None
    """Accuracy of guesses at each line, in a forced choice: shape (L,). `None` where replies are
    read, whose guesses nobody knows."""
    draws: Floats | None = None
    """Scored replies behind each verdict: shape (N, L); `None` where that is one."""
    own_rows: bool = False
    """Whether row i holds another row of symbols at each length, as in somebody's data."""

    @cached_property
    def lengths(self) -> Floats:
        """Nominal lengths, ascending: shape (L,). An exact line and a band may have the same."""
        return np.array([line.length for line in self.lines], float)

    @cached_property
    def digest(self) -> bytes:
        """Equal for curves with equal samples."""
        digest = hashlib.blake2b(repr((self.lines, self.own_rows)).encode(), digest_size=16)
        replies = self.scored if self.draws is None else self.draws
        for values in (self.correct, self.scored, self.true_lengths, self.chance, replies):
            digest.update(repr(values.shape).encode())
            digest.update(values.tobytes())
        return digest.digest()

    @cached_property
    def chance(self) -> Floats:
        """`guessed`, or 0 at each line."""
        return np.zeros(len(self.lines)) if self.guessed is None else self.guessed

    @cached_property
    def below_chance(self) -> npt.NDArray[np.bool_]:
        """Where fewer are right than by guessing, by an exact binomial test: shape (L,)."""
        correct = np.ceil(self.correct.sum(axis=0))
        counts = zip(correct, self.n, self.chance, strict=True)
        return np.array([at_most(int(right), int(n), p) < _BELOW for right, n, p in counts], bool)

    def not_below_chance(self) -> Curve:
        """The curve, with the accuracy of guessing at lines `below_chance`. A model that prefers
        wrong options by some rule sees no more there than one that guesses, and a fitted curve
        never goes below the accuracy of guessing.
        """
        if not self.below_chance.any():
            return self
        correct = np.where(self.below_chance & (self.scored > 0), self.chance, self.correct)
        return replace(self, correct=correct)

    @property
    def mean_chance(self) -> float:
        """The accuracy that guessing would have over all scored samples."""
        return float(self.chance @ self.n / self.n.sum())

    @property
    def area_above_guesses(self) -> float:
        """The area under accuracy over log length, minus the area that guessing would have."""
        areas = areas_under(self.lengths, np.array([self.accuracies, self.chance]))
        return float(areas[0] - areas[1])

    def at(self, columns: Any) -> Curve:
        """The curve restricted to these columns."""
        places = np.arange(len(self.lines))[columns]
        return Curve(
            tuple(self.lines[place] for place in places),
            self.correct[:, places],
            self.scored[:, places],
            self.true_lengths[:, places],
            None if self.guessed is None else self.guessed[places],
            None if self.draws is None else self.draws[:, places],
            self.own_rows,
        )

    @property
    def n(self) -> Floats:
        """Scored samples at each length: shape (L,)."""
        counts: Floats = self.scored.sum(axis=0)
        return counts

    @property
    def accuracies(self) -> Floats:
        """Accuracy at each length, 0 to 1: shape (L,)."""
        shares: Floats = self.correct.sum(axis=0) / self.n
        return shares


def check_chance(curve: Curve, threshold: float) -> None:
    """Raises `UsageError` where guesses alone reach an accuracy that is asked for."""
    chance = curve.mean_chance
    if 0 < threshold <= chance:
        raise UsageError(
            f"{named('threshold', f'{threshold:g}')} is not above chance: guesses among the "
            f"options are right in {100 * chance:.0f} %"
        )


def curve(
    lengths: Sequence[int] | npt.NDArray[Any],
    indexes: Sequence[int] | npt.NDArray[Any],
    correct: Sequence[bool] | npt.NDArray[Any],
    *,
    lines: Sequence[Line] | None = None,
    places: Sequence[int] | npt.NDArray[Any] = (),
    chances: npt.NDArray[Any] | None = None,
    own_rows: bool = False,
) -> Curve:
    """The curve of scored samples: true length, index and verdict of each, in any order.

    `places` has the place of each sample's line in `lines`. Without `lines` all are exact.
    `chances` has the accuracy of a guess at each sample; a line has their mean. Samples that are
    there several times are draws. See `Curve.own_rows`.

    Raises:
        ValueError: there is no sample.
    """
    if not len(lengths):
        raise ValueError("no sample was scored")
    if lines is None:
        exact, places = np.unique(np.asarray(lengths), return_inverse=True)
        lines = [Line.exact(int(length)) for length in exact]
    used, column = np.unique(np.asarray(places), return_inverse=True)
    order = sorted(range(len(used)), key=lambda place: lines[int(used[place])])
    column = np.argsort(order)[column]
    row = np.asarray(indexes)
    scored = np.zeros((row.max() + 1, len(used)))
    right = np.zeros_like(scored)
    symbols = np.full_like(scored, np.nan)
    draws = np.zeros_like(scored)
    np.add.at(draws, (row, column), 1.0)
    np.add.at(right, (row, column), np.asarray(correct, float))
    right /= np.maximum(draws, 1)
    scored[draws > 0] = 1.0
    symbols[row, column] = lengths
    guessed = None
    if chances is not None and chances.any():
        guessed = np.bincount(column, chances) / np.bincount(column)
    return Curve(
        tuple(lines[int(used[place])] for place in order),
        right,
        scored,
        symbols,
        guessed,
        draws if (draws > 1).any() else None,
        own_rows,
    )


def areas_under(lengths: Floats, accuracies: Floats) -> Floats:
    """Area under accuracy over log length, as a share of the area at accuracy 1.

    `lengths` has shape (L,), `accuracies` (B, L), the result (B,), 0 to 1. Trapezoids between the
    tested lengths. The area over a single length is its accuracy.
    """
    if len(lengths) == 1:
        return accuracies[:, 0]
    log_lengths = np.log(lengths)
    middles = (accuracies[:, 1:] + accuracies[:, :-1]) / 2
    areas: Floats = middles @ np.diff(log_lengths) / (log_lengths[-1] - log_lengths[0])
    return areas


def drawn_accuracies(curves: Sequence[Curve], resamples: int) -> list[Floats]:
    """Bootstrap draws of the accuracies: shape (resamples, L) for each curve.

    The Bayesian bootstrap (Rubin 1981, Annals of Statistics 9) over rows. A row has the same weight
    at all lengths and in all curves, so draws keep the correlation of nested rows and of pairs.
    Half a correct and half a wrong answer are added to every cell (Jeffreys' prior), each with its
    own weight; without them 20 correct answers of 20 would give an interval of width 0. The
    accuracies of one cell then follow Beta(correct + 1/2, wrong + 1/2).
    """
    rng = np.random.default_rng(0)
    patterns, counts = _patterns(curves)
    draws = [np.empty((resamples, len(curve.lengths))) for curve in curves]
    chunk = max(1, _MOST_WEIGHTS // len(counts))
    for start in range(0, resamples, chunk):
        part = slice(start, min(start + chunk, resamples))
        weights = rng.standard_gamma(counts, (part.stop - part.start, len(counts)))
        for (correct, wrong), drawn in zip(patterns, draws, strict=True):
            right_of, wrong_of = weights @ correct, weights @ wrong
            right_of += rng.standard_gamma(0.5, right_of.shape)
            wrong_of += rng.standard_gamma(0.5, wrong_of.shape)
            drawn[part] = right_of / (right_of + wrong_of)
    return draws


def _patterns(curves: Sequence[Curve]) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """The distinct rows over all curves, as (correct, wrong) for each curve, and their counts.

    The weights of equal rows add up to one gamma variable with their count as its shape, so a
    hundred thousand rows cost no more than their few patterns.
    """
    rows = max(len(curve.correct) for curve in curves)
    table = np.concatenate(
        [
            np.pad(part, ((0, rows - len(part)), (0, 0)))
            for curve in curves
            for part in (curve.correct, curve.scored - curve.correct)
        ],
        axis=1,
    )
    table = table[table.any(axis=1)]  # a row without a scored sample must not change the draws
    patterns, counts = np.unique(table, axis=0, return_counts=True)
    ends = np.cumsum([len(curve.lengths) for curve in curves for _ in range(2)])
    parts = [part.astype(float) for part in np.split(patterns, ends[:-1], axis=1)]
    return list(zip(parts[::2], parts[1::2], strict=True)), counts.astype(float)
