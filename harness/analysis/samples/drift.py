"""Whether replies became worse, or better, in the course of a run.

A run asks its rows one after the other, each at all lengths and conditions, so a server that
changes in between shows in the verdicts of later rows. Rows are drawn at random: without a change
their order says nothing.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.analysis.tables.cell_table import cell_means
from eyechart.harness.score.outcomes import SCORED_PLACES, Outcome

_LEVEL = 0.005
"""About how often a run without a change is said to have one."""
_LEAST, _FEWEST_ROWS = 0.05, 8
"""The smallest difference that is said, as a share of the replies; and the fewest rows."""
_ORDERS = 4999
_FOUND: WeakKeyDictionary[JudgedRun, Drift | None] = WeakKeyDictionary()


class Drift(NamedTuple):
    difference: float
    """Share of right replies to the later half of the rows, less that to the earlier half, at equal
    lengths and conditions: -1 to 1."""
    p: float
    """Two-sided p-value, by permutation of the rows."""


def drift(run: JudgedRun) -> Drift | None:
    """The change, computed once; `None` if none is shown, or the rows are not drawn."""
    if run not in _FOUND:
        _FOUND[run] = None if run.has_given_rows else _drift(run)
    return _FOUND[run]


def _drift(run: JudgedRun) -> Drift | None:
    samples = run.samples[np.isin(run.samples["outcome"].to_numpy(), SCORED_PLACES)]
    cells, indexes = (samples[name].to_numpy(np.int64) for name in ("cell", "index"))
    return drift_of(cells, indexes, samples["outcome"].to_numpy() == Outcome.CORRECT.place)


def drift_of(cells: np.ndarray, indexes: np.ndarray, right: np.ndarray) -> Drift | None:
    """The change over the rows of N scored samples, each in a cell: arrays of shape (N,).

    The sum over rows of row number times residual, where a residual is a verdict less the mean of
    its cell. A row stays together, since its verdicts at several lengths do.
    """
    if not len(cells):
        return None
    residuals = right - cell_means(cells, right.astype(float), int(cells.max()) + 1)[cells]
    numbers, row = np.unique(indexes, return_inverse=True)
    if len(numbers) < _FEWEST_ROWS:
        return None
    sums, places = np.bincount(row, residuals), np.arange(len(numbers)) - (len(numbers) - 1) / 2
    late = row >= len(numbers) // 2
    difference = float(residuals[late].mean() - residuals[~late].mean())
    if abs(difference) < _LEAST:
        return None
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.broadcast_to(sums, (_ORDERS, len(sums))), axis=1) @ places
    as_large = int((np.abs(orders) >= abs(sums @ places) - 1e-9).sum())
    p = (1 + as_large) / (1 + _ORDERS)
    return Drift(difference, p) if p < _LEVEL else None
