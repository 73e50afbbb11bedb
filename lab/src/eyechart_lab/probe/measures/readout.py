"""What can be read of the right answer from the states at the ends of the rows of one line, and how
the direction in which it is read lies to the rows of the output matrix.

Garcia 2026, arXiv 2605.03258, reads counts and compares directions so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.inside import Array
from eyechart_lab.probe.measures.ridge import RIDGES, Matrix, Ridges

FOLDS = 5
"""A row is read by maps that were fitted without its fold."""
LEAST = 2 * FOLDS
"""Rows of a line below which nothing is fitted."""
_NEAR = 0.5
_DRAWS = 4
"""Directions in the states that are drawn at random and read like the answer."""
_RANDOM = 1000
"""Directions that are drawn for the largest cosine."""

Shares = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ReadAnswers:
    """The right answers of the N rows of a line: counts, or symbols."""

    targets: Matrix
    """(N, 1) counts; or (N, K), of K symbols a 1 at the one that is right, else 0."""
    folds: NDArray[np.intp]
    """(N,): the fold of each row."""

    @property
    def are_counts(self) -> bool:
        return len(self.targets[0]) == 1

    @property
    def are_one(self) -> bool:
        """Whether all rows have the same answer."""
        return bool((self.targets == self.targets[0]).all())

    @property
    def variance(self) -> float:
        """The mean square of the distance of a target to the mean one."""
        return float(np.square(self.targets - self.targets.mean(axis=0)).sum(axis=1).mean())

    def right(self, read: Matrix) -> Shares:
        """(..., N): whether what is read, (..., N, K), is the answer: a count to within a half, or
        a symbol with the largest number.
        """
        if self.are_counts:
            found: Shares = np.abs(read - self.targets)[..., 0] <= _NEAR
            return found
        chosen: Shares = read.argmax(axis=-1) == self.targets.argmax(axis=1)
        return chosen

    def r2(self, read: Matrix) -> Matrix:
        """(N,): each row's part of the share of the variance that is read: their mean is R²."""
        found: Matrix = 1 - np.square(read - self.targets).sum(axis=1) / self.variance
        return found

    def like(self, states: Matrix) -> Iterator[ReadAnswers]:
        """Answers that stand in these states (N, C) linearly, with the spread of the right ones: of
        directions that are drawn at random. How well they are read says what so many rows can show.
        """
        spread = states.std(axis=0)
        if not spread.any():
            return
        even = (states - states.mean(axis=0)) / np.where(spread > 0, spread, 1)
        draw = np.random.default_rng(0)
        for _ in range(_DRAWS):
            values = even @ draw.normal(size=(even.shape[1], self.targets.shape[1]))
            if self.are_counts:
                drawn = values / values.std() * math.sqrt(self.variance)
            else:
                drawn = np.eye(values.shape[1])[values.argmax(axis=1)]
            yield ReadAnswers(drawn, self.folds)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What maps read of rows that they were not fitted to."""

    read: Matrix
    """(N, K)"""
    others: Matrix
    """(M, N, K): the same of M other states of each row."""
    inner: Matrix
    """(folds, N, K): for each fold, what is read of the rows of all others by maps that were fitted
    without that fold and without theirs; NaN for its own rows."""
    ridge: int
    """The place in `RIDGES` that reads all rows best."""


def held_out(states: Matrix, answers: ReadAnswers, others: Sequence[Matrix] = ()) -> HeldOut:
    """Reads answers from states (N, C), and from `others` (N, C) by the same maps. The ridge of the
    map that reads a fold is the one that reads the other folds best, each without itself.
    """
    targets, folds = answers.targets, answers.folds
    read, elsewhere = np.zeros_like(targets), np.zeros((len(others), *targets.shape))
    inner = np.full((FOLDS, *targets.shape), np.nan)
    total = np.zeros(len(RIDGES))
    for fold in range(FOLDS):
        held = folds == fold
        known = {other: ~held & (folds == other) for other in range(FOLDS) if other != fold}
        tried = np.zeros((len(RIDGES), *targets.shape))
        for mine in known.values():
            fitted = ~held & ~mine
            tried[:, mine] = Ridges(states[fitted], targets[fitted]).read(states[mine])
        errors = np.square(tried - targets)[:, ~held].sum(axis=(1, 2))
        total += errors
        ridge = int(errors.argmin())
        inner[fold, ~held] = tried[ridge, ~held]
        maps = Ridges(states[~held], targets[~held])
        read[held] = maps.read(states[held])[ridge]
        for number, other in enumerate(others):
            elsewhere[number, held] = maps.read(other[held])[ridge]
    return HeldOut(read, elsewhere, inner, int(total.argmin()))


def best_layers(inner: Sequence[Matrix], answers: ReadAnswers) -> NDArray[np.intp]:
    """(folds,): for each fold the layer from which most rows of the other folds are read, of equal
    ones that with the least squared error; `inner` are those of `HeldOut`, layer by layer.
    """
    chosen = []
    for fold in range(FOLDS):
        known = answers.folds != fold
        found = []
        for layer, of_layer in enumerate(inner):
            read = of_layer[fold]
            apart = np.square(read - answers.targets)[known].sum()
            found.append((-int(answers.right(read)[known].sum()), float(apart), layer))
        chosen.append(min(found)[-1])
    return np.array(chosen)


def cosines(directions: Matrix, rows: Array) -> Matrix:
    """(T,): the sizes of the cosines of T rows (T, C) with one direction (1, C), or each with its
    own, (T, C); 0 where one of both is 0.
    """
    sizes = np.linalg.norm(directions, axis=1) * np.linalg.norm(rows.astype(float), axis=1)
    products = np.abs((directions * rows).sum(axis=1))
    found: Matrix = products / np.where(sizes > 0, sizes, 1)
    return found


def random_cosine(width: int) -> float:
    """The mean size of the cosine of a random direction of this width with any other, in closed
    form: Γ(C/2) / (√π Γ((C + 1)/2)), about √(2 / (π C)).
    """
    half = width / 2
    return math.exp(math.lgamma(half) - math.lgamma(half + 0.5)) / math.sqrt(math.pi)


def random_largest(rows: Array, *, is_one: bool) -> float:
    """The mean of the largest size of a cosine with any of `rows`, (T, C): of one direction that is
    drawn at random, or of one for each row. Drawn 1,000 times.
    """
    draw = np.random.default_rng(0)
    count, width = rows.shape
    if is_one:
        unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
        drawn = draw.normal(size=(_RANDOM, width))
        found = np.abs(drawn @ unit.T) / np.linalg.norm(drawn, axis=1, keepdims=True)
    else:
        along = draw.normal(size=(_RANDOM, count))
        found = np.abs(along) / np.sqrt(along**2 + draw.chisquare(width - 1, along.shape))
    return float(found.max(axis=1).mean())
