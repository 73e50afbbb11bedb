"""The accuracy of a condition over all of its lengths, as other benchmarks give it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.score.outcomes import SCORED_PLACES, Outcome


class OverallAccuracy(NamedTuple):
    """The share of correct replies among all scored ones, with its 95 % interval."""

    accuracy: float
    low: float
    high: float


def overall(judged: JudgedCondition) -> OverallAccuracy | None:
    """The overall accuracy. `None` if nothing was scored. `None` also for an adaptive condition,
    because its samples lie where the accuracy falls.

    It depends on the lengths that were asked, which the effective length does not. Each reply
    counts once. The interval is Wilson's, of fewer replies where those to one row of a generator at
    several lengths go together: their number is divided by the variance of the rows' sums over that
    of independent replies (at least 1; the design effect of Kish 1965). Ready items are rows of
    their own.
    """
    recorded = np.flatnonzero(judged.recorded)
    columns = ("record", "outcome", "cell", "index")
    records, *rest = (judged.run.samples[name].to_numpy()[recorded] for name in columns)
    once = np.sort(np.unique(records, return_index=True)[1])
    once = once[np.isin(rest[0][once], SCORED_PLACES)]
    outcomes, cells, indexes = (column[once] for column in rest)
    if judged.adaptive or not len(once):
        return None
    right = (outcomes == Outcome.CORRECT.place).astype(float)
    n, accuracy = len(right), float(right.mean())
    residuals = right - accuracy
    together = 1.0
    keys = [indexes] if judged.run.spec.items is None else [cells, indexes]
    if (judged.run.spec.items is None or judged.run.draws > 1) and residuals.any():
        _, rows = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
        sums = np.bincount(rows.ravel(), residuals)
        together = max(1.0, float((sums**2).sum() / (residuals**2).sum()))
    ends = wilson(right.sum() / together, n / together)
    assert ends is not None  # n is above 0
    return OverallAccuracy(accuracy, *ends)
