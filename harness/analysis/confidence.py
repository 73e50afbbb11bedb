"""How sure a model is of its first choice, and how often it is right: of forced choices.

A probability is the softmax of the options' log-probabilities, so that those of a sample add up to
1. Confidence is that of the most probable option.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from eyechart.harness.analysis.curve import Floats
from eyechart.harness.analysis.interval import Z95, student95, wilson
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec.columns import CONFIDENCE

_SCORED = [outcome.place for outcome in Outcome if outcome.about.scored]
_BINS, _LEAST = 10, 5
_PSEUDO = 4
"""So many samples are added to each line before its interval is computed: half of them with the
lowest Brier score, half with the highest."""
_DIGITS = 6
_MOST_BRIER = 2.0


class Chosen(NamedTuple):
    """N forced choices that are scored; arrays of shape (N,)."""

    cells: npt.NDArray[np.int64]
    right: npt.NDArray[np.bool_]
    confidence: Floats
    brier: Floats


def chosen_of(samples: pd.DataFrame) -> Chosen:
    """The forced choices among `JudgedRun.samples`."""
    scored = samples["outcome"].isin(_SCORED) & (samples["options"] > 0)
    cells, outcomes, confidence, brier = (
        samples.loc[scored, name].to_numpy() for name in ("cell", "outcome", "confidence", "brier")
    )
    return Chosen(cells.astype(np.int64), outcomes == Outcome.CORRECT.place, confidence, brier)


def confidence_table(chosen: Chosen, cells: int) -> pd.DataFrame:
    """The columns `CONFIDENCE`, one row for each of the `cells`. NaN where a cell has no forced
    choice, and for an interval where it has only one.
    """
    rows = np.full((cells, len(CONFIDENCE)), math.nan)
    for cell in np.unique(chosen.cells):
        _, right, sure, brier = (values[chosen.cells == cell] for values in chosen)
        rows[cell] = [
            sure.mean(),
            sure.mean() - right.mean(),
            *overconfidence_interval(sure, right),
            brier.mean(),
            *brier_interval(brier),
        ]
    return pd.DataFrame(np.round(rows, _DIGITS), columns=list(CONFIDENCE))


def overconfidence_interval(sure: Floats, right: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """95 % interval of mean confidence less accuracy, over samples of different rows.

    From the intervals of both, by their squares (MOVER: Zou & Donner 2008, Statistics in Medicine
    27): Wilson's of the accuracy and Student's t of the confidence. An interval of the differences
    alone would have hardly a width where all samples are wrong. The correlation of both is taken as
    0 where it is positive, which can only make the interval wider.
    """
    n = len(sure)
    accuracy = wilson(int(right.sum()), n)
    if n < 2 or accuracy is None:  # noqa: PLR2004  one sample has no variance
        return math.nan, math.nan
    confidence, share = float(sure.mean()), float(right.mean())
    spread = float(sure.std(ddof=1))
    half = student95(n - 1) * spread / math.sqrt(n)
    together = 0.0
    if spread > 0 and 0 < share < 1:
        together = min(0.0, float(np.corrcoef(sure, right)[0, 1]))
    below, above = share - accuracy[0], accuracy[1] - share
    low, high = (math.sqrt(half**2 + end**2 - 2 * together * half * end) for end in (above, below))
    return max(-1.0, confidence - share - low), min(1.0, confidence - share + high)


def brier_interval(scores: Floats) -> tuple[float, float]:
    """95 % interval of a mean Brier score, over samples of different rows.

    A normal interval after two samples are added at 0 and two at 2, as Agresti & Coull (1998) do
    for shares: a rare confident mistake may be in none of the samples of a line.
    """
    n = len(scores) + _PSEUDO
    if len(scores) < 2:  # noqa: PLR2004
        return math.nan, math.nan
    added = np.concatenate([scores, np.repeat([0.0, _MOST_BRIER], _PSEUDO // 2)])
    half = Z95 * float(added.std()) / math.sqrt(n)
    centre = float(added.mean())
    return max(0.0, centre - half), min(_MOST_BRIER, centre + half)


def calibration_error(chosen: Chosen) -> float | None:
    """The expected calibration error of N samples, corrected for its bias; `None` without any.

    The mean size of confidence less accuracy in bins with equal numbers of samples, by confidence:
    ten, or as many as have five samples each. Samples of one confidence have their mean verdict,
    so that their order says nothing. In each bin the size is too large by chance: the expected
    excess of an estimate with the same variance is subtracted (Kumar, Liang & Ma 2019, arXiv
    1909.10155). The variance is that of the accuracy after two samples are added that are right as
    often as the model is sure, since it would be 0 where all are right or all wrong.
    """
    n = len(chosen.right)
    if not n:
        return None
    sure, places = np.unique(chosen.confidence, return_inverse=True)
    shares = np.bincount(places, chosen.right) / np.bincount(places)
    order = np.sort(places)
    error = sum(
        len(part) * _corrected(sure[part], shares[part])
        for part in np.array_split(order, min(_BINS, max(1, n // _LEAST)))
    )
    return max(0.0, float(error) / n)


def _corrected(sure: Floats, right: Floats) -> float:
    """The size of the mean difference in a bin, less its expected excess."""
    n, confidence = len(right), float(sure.mean())
    size = abs(confidence - float(right.mean()))
    share = (float(right.sum()) + 2 * confidence) / (n + 2)
    error = math.sqrt(max(0.0, share * (1 - share)) / n)
    if not error:
        return size
    ratio = size / error
    normal = math.sqrt(2 / math.pi) * math.exp(-(ratio**2) / 2)
    expected = error * normal + size * math.erf(ratio / math.sqrt(2))
    return 2 * size - expected
