"""Several draws of the same prompts: how often a row is answered right, and by chance how often.

A row is a sample of a cell; a draw is one of several replies to its prompt. Rows are the unit of
every interval, since replies to one prompt go together.
`tests/benchmarks/simulation/several_draws.py` measures the intervals and the split of the variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.errors import UsageError
from eyechart.harness.score.outcomes import SCORED_PLACES, Outcome
from eyechart.harness.spec.columns import DIGITS, DRAWS

Places = npt.NDArray[np.int64]
_PRIOR_ROWS = 10
"""Rows that the prior stands for: all draws of these are alike. With five, the interval of rows
whose draws are nearly alike held in 91 % of simulated runs."""


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """N rows with a scored reply, by cell and index; arrays of shape (N,)."""

    cells: Places
    replies: Floats
    """Scored replies to each row."""
    right: Floats
    """Correct replies among them."""

    @cached_property
    def means(self) -> Floats:
        """Accuracy of each row, 0 to 1."""
        return self.right / self.replies

    @property
    def accuracy(self) -> float:
        """Share of correct replies."""
        return float(self.right.sum() / self.replies.sum())

    def at(self, chosen: npt.NDArray[np.bool_]) -> ScoredRows:
        return ScoredRows(self.cells[chosen], self.replies[chosen], self.right[chosen])


def rows_of(samples: pd.DataFrame) -> ScoredRows:
    """The rows of `JudgedRun.samples` with a scored reply."""
    scored = samples[np.isin(samples["outcome"].to_numpy(), SCORED_PLACES)]
    cells, index = (scored[name].to_numpy(np.int64) for name in ("cell", "index"))
    right = scored["outcome"].to_numpy() == Outcome.CORRECT.place
    keys, places = np.unique(np.stack([cells, index], axis=1), axis=0, return_inverse=True)
    places = places.ravel()
    size = len(keys)
    return ScoredRows(
        keys[:, 0] if size else np.zeros(0, np.int64),
        np.bincount(places, minlength=size).astype(float),
        np.bincount(places, right, minlength=size).astype(float),
    )


def accuracy_interval(rows: ScoredRows) -> tuple[float, float] | None:
    """95 % interval of the accuracy, with rows as the unit; `None` without rows.

    Wilson's interval for as many independent replies as say as much as the replies to these rows:
    the number of rows over the variance of their accuracies, as a multiple of that of single
    replies. Few rows show little of that variance, so they are joined by ten whose draws are all
    alike. With one reply a row this is Wilson's interval of the replies.
    """
    count = len(rows.cells)
    if not count:
        return None
    accuracy = rows.accuracy
    n = float(count)
    if count > 1 and (rows.replies > 1).any():
        of_one = accuracy * (1 - accuracy)
        between = float(((rows.means - rows.means.mean()) ** 2).sum()) / (count - 1)
        factor = 1.0
        if of_one > 0:
            factor = (count * between / of_one + _PRIOR_ROWS) / (count + _PRIOR_ROWS)
        n = min(count / min(factor, 1.0), float(rows.replies.sum()))
    return wilson(accuracy * n, n)


def pass_at(k: int, right: Floats, replies: Floats) -> Floats:
    """Probability that at least one of `k` replies to a row is right, without bias: shape (N,).

    1 - C(n - c, k) / C(n, k) for c right ones of n replies (Chen et al. 2021, "Evaluating Large
    Language Models Trained on Code", arXiv 2107.03374). NaN for a row with fewer replies than `k`.
    """
    if k < 1:
        raise UsageError(f"pass@k needs a k of at least 1, not {k!r}")
    wrong = replies - right
    terms = np.arange(k)
    left = np.maximum(wrong[:, None] - terms, 0) / np.maximum(replies[:, None] - terms, 1)
    return np.where(replies >= k, 1 - left.prod(axis=1), np.nan)


def mean_pass_at(k: int, rows: ScoredRows) -> tuple[float, int] | None:
    """The mean of `pass_at` over the rows with at least `k` replies, and their number; `None`
    without any.
    """
    passed = pass_at(k, rows.right, rows.replies)
    known = passed[~np.isnan(passed)]
    return (float(known.mean()), len(known)) if len(known) else None


class Split(NamedTuple):
    """The variance of one reply's verdict, split; each part is without bias and may be negative."""

    row: float
    """Between rows: how much their accuracies differ."""
    draw: float
    """Within rows: how much the draws of one row differ."""


def split_of(rows: ScoredRows) -> Split | None:
    """The split for the rows of one cell with at least two replies; `None` with fewer than two such
    rows.

    One-way analysis of variance with random rows: within a row the variance of its verdicts, and
    between rows that of their means less what the draws add to it.
    """
    several = rows.at(rows.replies > 1)
    if len(several.cells) < 2:  # noqa: PLR2004  one row has no variance
        return None
    means, n = several.means, several.replies
    within = means * (1 - means) * n / (n - 1)
    between = float(means.var(ddof=1) - (within / n).mean())
    return Split(between, float(within.mean()))


class Majority(NamedTuple):
    """The vote over the draws of each row."""

    right: float
    """Share of rows whose most frequent answer is right. A tie of the right answer with others
    counts as often as a coin would choose it."""
    ties: int
    """Rows whose right answer is tied with another for the first place."""


def majority_of(samples: pd.DataFrame) -> Majority | None:
    """The vote over the scored replies in `samples` of one or more cells; `None` without any.

    Replies without an answer have no vote (Wang et al. 2023, arXiv 2203.11171); a row without any
    vote is wrong. All right answers are one.
    """
    scored = samples[np.isin(samples["outcome"].to_numpy(), SCORED_PLACES)]
    if scored.empty:
        return None
    keys = scored[["cell", "index"]].to_numpy(np.int64)
    rows, row = np.unique(keys, axis=0, return_inverse=True)
    right = scored["outcome"].to_numpy() == Outcome.CORRECT.place
    said = np.where(right, -1, scored["said"].to_numpy(np.int64))
    answers = np.stack([row.ravel(), said])[:, right | (said > 0)]
    (voted, said), votes = np.unique(answers, axis=1, return_counts=True)
    most = np.zeros(len(rows), np.int64)
    np.maximum.at(most, voted, votes)
    is_first = votes == most[voted]
    voted, is_right = voted[is_first], said[is_first] == -1
    tied = np.bincount(voted, minlength=len(rows))[voted]
    return Majority(float((is_right / tied).sum()) / len(rows), int((is_right & (tied > 1)).sum()))


def draws_columns(samples: pd.DataFrame, draws: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
    """The columns `DRAWS`, a value a cell, NaN where `draws`, how often it is asked, is 1."""
    table = np.full((len(draws), len(DRAWS)), math.nan)
    several = [cell for cell, count in enumerate(draws) if count > 1]
    if several:
        _enter_several(table, samples, draws, several)
    columns = dict(zip(DRAWS, np.round(table, DIGITS).T, strict=True))
    return {**columns, "draws": np.array(draws, np.int64)}


def _enter_several(
    table: Floats, samples: pd.DataFrame, draws: Sequence[int], several: Sequence[int]
) -> None:
    """Writes the columns of the cells that are asked `several` times into the table."""
    rows = rows_of(samples[samples["cell"].isin(several)])
    by_cell = dict(iter(samples.groupby("cell")))
    for cell in several:
        of_cell = rows.at(rows.cells == cell)
        if not len(of_cell.cells):
            continue
        passed = mean_pass_at(draws[cell], of_cell)
        majority, split = majority_of(by_cell[cell]), split_of(of_cell)
        table[cell, 1:] = [
            *(passed or (np.nan, np.nan)),
            *(majority or (np.nan, np.nan)),
            *(split or (np.nan, np.nan)),
        ]


@dataclass(frozen=True, slots=True)
class DrawSummary:
    """What the draws of a run say, over all of its lengths."""

    prompts: int
    """Rows that got a reply."""
    draws: int
    """How often a row was asked, at most."""
    fewest: int
    """How often a row was asked, at least."""
    several: int
    """Rows that got at least two replies."""
    same_text: int
    """Rows with at least two replies, all of which are the same text."""
    same_verdict: int
    """Rows with at least two replies, all of which have the same outcome."""
    accuracy: float
    pass_at: Mapping[int, float]
    """k -> mean probability that at least one of k replies is right, see `pass_at`."""
    pass_at_rows: Mapping[int, int]
    """k -> the rows with at least k scored replies, which alone are in `pass_at`."""
    majority: float
    ties: int
    """See `Majority`."""
    row_variance: float | None
    draw_variance: float | None
    """See `Split`: means over the lines, each with the weight of its rows."""

    def __str__(self) -> str:
        passed = ", ".join(map(self._passed, self.pass_at))
        ties = f" ({self.ties:,} tie{'s' * (self.ties != 1)})" if self.ties else ""
        times = f"{self.fewest:,} to {self.draws:,}" if self.fewest < self.draws else self.draws
        of_these = ""
        if self.several < self.prompts:
            of_these = f"{self.several:,} got several replies: of these "
        said = (
            f"Of {self.prompts:,} prompts, each asked {times} times, {of_these}"
            f"{self.same_text:,} got the same text each time and {self.same_verdict:,} the same "
            f"verdict. A reply is right in {100 * self.accuracy:.0f} %, the majority of a prompt's "
            "replies in "
            f"{100 * self.majority:.0f} %{ties}; {passed}."
        )
        return " ".join(filter(None, (said, self._split)))

    def _passed(self, k: int) -> str:
        rows, value = self.pass_at_rows[k], f"pass@{k} {100 * self.pass_at[k]:.0f} %"
        if rows == self.prompts:
            return value
        return f"{value} (of the {rows:,} prompt{'s' * (rows != 1)} with {k} replies or more)"

    @property
    def _split(self) -> str:
        if self.row_variance is None or self.draw_variance is None:
            return ""
        row, draw = max(0.0, self.row_variance), max(0.0, self.draw_variance)
        if not row + draw:
            return ""
        of_rows = round(100 * row / (row + draw))
        return (
            f"At equal lengths {of_rows} % of the variance lies between prompts and "
            f"{100 - of_rows} % between the draws of a prompt."
        )


def drawn(samples: pd.DataFrame) -> DrawSummary | None:
    """What the draws in `JudgedRun.samples` say; `None` where no row has two replies."""
    asked = samples.groupby(["cell", "index"]).size()
    replied = samples[samples["outcome"].to_numpy() != Outcome.ERROR.place]
    by_row = replied.groupby(["cell", "index"])
    replies = by_row.size().to_numpy()
    rows, majority = rows_of(samples), majority_of(samples)
    several = replies > 1
    if not several.any() or majority is None:
        return None
    draws = int(asked.max())
    splits = [
        (len(of_cell.cells), split)
        for cell in np.unique(rows.cells)
        if (split := split_of(of_cell := rows.at(rows.cells == cell))) is not None
    ]
    weight = sum(count for count, _ in splits)
    passed = {k: found for k in _shown_draws(draws) if (found := mean_pass_at(k, rows)) is not None}
    return DrawSummary(
        prompts=len(replies),
        draws=draws,
        fewest=int(asked.min()),
        several=int(several.sum()),
        same_text=int((several & (by_row["text"].nunique().to_numpy() == 1)).sum()),
        same_verdict=int((several & (by_row["outcome"].nunique().to_numpy() == 1)).sum()),
        accuracy=rows.accuracy,
        pass_at={k: value for k, (value, _) in passed.items()},
        pass_at_rows={k: count for k, (_, count) in passed.items()},
        majority=majority.right,
        ties=majority.ties,
        row_variance=sum(n * split.row for n, split in splits) / weight if weight else None,
        draw_variance=sum(n * split.draw for n, split in splits) / weight if weight else None,
    )


def _shown_draws(draws: int) -> list[int]:
    """2, 4, 8 and so on below the number of draws, and that number."""
    return [*(2**power for power in range(1, draws.bit_length()) if 2**power < draws), draws]
