"""The stable counting capacity of Dai & Fan 2026 (arXiv 2605.02028), for tasks that ask for it.

It differs from an accuracy: a reply may miss the count by a few per cent, but a single reply that
cannot be read makes its line fail.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.spec.columns import CAPACITY

MOST_RELATIVE_ERROR = 0.05
"""The largest mean relative error at which a line passes."""
STATISTIC = "capacity"


class Capacity(NamedTuple):
    """How long a row may be for a model to count it with a mean error of at most 5 %."""

    length: Bound
    """`= 48`: line 48 passes, and a longer line does not. `< 32`: no line passes, and 32 is the
    shortest one. `> 64`: the longest line, 64, passes."""
    fails_at: int | None
    """The shortest longer line that does not pass; `None` if there is none."""


def capacity(judged: JudgedCondition) -> Capacity | None:
    """The capacity under a condition: the longest nominal length at which every planned sample was
    answered with a number that can be read, and the mean of |answer - target| / |target| is at most
    5 %. `None` where nothing was scored.
    """
    if judged.scored_cells.empty:
        return None
    columns = ("cell", "answer", "wanted", "signed_error")
    cells, answers, targets, errors = (judged.run.samples[name].to_numpy() for name in columns)
    lengths = {cell.length for cell in judged.planned}
    failed = {
        cell.length
        for place, cell in zip(judged.places, judged.planned, strict=True)
        for here in [cells == place]
        if not _passes(answers[here], targets[here], errors[here], cell.samples)
    }
    if failed == lengths:
        return Capacity(Bound("<", min(lengths)), min(lengths))
    longest = max(lengths - failed)
    fails_at = min((length for length in failed if length > longest), default=None)
    return Capacity(Bound(">" if fails_at is None else "=", longest), fails_at)


def _passes(answers: npt.NDArray[np.int64], targets: Floats, errors: Floats, planned: int) -> bool:
    """Whether every sample of a cell was read, and near enough to its target in the mean: places of
    the answers (-1 for none), their targets and their signed errors.
    """
    if len(answers) < max(planned, 1) or answers.min() < 0:
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(errors == 0, 0.0, np.abs(errors) / np.abs(targets))
    mean = float(relative.mean())
    return math.isfinite(mean) and mean <= MOST_RELATIVE_ERROR


def capacity_columns(judged: JudgedCondition) -> dict[str, Any]:
    """Column -> value of the capacity in CSV files: the columns `CAPACITY`."""
    found = capacity(judged)
    if found is None:
        return dict.fromkeys(CAPACITY)
    return dict(
        zip(CAPACITY, (found.length.length, found.length.side, found.fails_at), strict=True)
    )
