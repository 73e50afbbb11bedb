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

from eyechart.harness.analysis.length.curve import TAILS, Floats
from eyechart.harness.analysis.length.interval import Z95, student, wilson
from eyechart.harness.score.outcomes import SCORED_PLACES, Outcome
from eyechart.harness.spec.columns import CONFIDENCE, DIGITS

_BINS, _LEAST = 10, 5
_PSEUDO = 4
"""So many samples are added to each line before its interval is computed: half of them with the
lowest Brier score, half with the highest."""
_REPEATS, _TINY = 1000, 1e-12
_MOST_BRIER = 2.0


class ForcedChoices(NamedTuple):
    """N forced choices that are scored; arrays of shape (N,)."""

    cells: npt.NDArray[np.int64]
    right: npt.NDArray[np.bool_]
    confidence: Floats
    brier: Floats
    tied: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.int64]
    """The row of each: samples of one row go together."""


def chosen_of(samples: pd.DataFrame) -> ForcedChoices:
    """The forced choices among `JudgedRun.samples`."""
    scored = np.isin(samples["outcome"].to_numpy(), SCORED_PLACES)
    scored &= samples["options"].to_numpy() > 0
    cells, outcomes, confidence, brier, tied, index = (
        samples[name].to_numpy()[scored]
        for name in ("cell", "outcome", "confidence", "brier", "tied", "index")
    )
    right = outcomes == Outcome.CORRECT.place
    rows = index.astype(np.int64)
    return ForcedChoices(cells.astype(np.int64), right, confidence, brier, tied.astype(bool), rows)


def confidence(chosen: ForcedChoices, cells: int) -> dict[str, Floats]:
    """The columns `CONFIDENCE`, a value for each of the `cells`. NaN where a cell has no forced
    choice, and for an interval where it has only one.
    """
    rows = np.full((cells, len(CONFIDENCE)), math.nan)
    for cell in np.unique(chosen.cells):
        part = ForcedChoices(*(values[chosen.cells == cell] for values in chosen))
        right, sure, brier = part.right, part.confidence, part.brier
        rows[cell] = [
            sure.mean(),
            sure.mean() - right.mean(),
            *overconfidence_interval(sure, right),
            brier.mean(),
            *brier_interval(brier),
            *(calibration(part) or (math.nan,) * 3),
        ]
    return dict(zip(CONFIDENCE, np.round(rows, DIGITS).T, strict=True))


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
    half = student(n - 1) * spread / math.sqrt(n)
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


class Calibration(NamedTuple):
    """An expected calibration error with its 95 % interval."""

    error: float
    low: float
    high: float


def calibration(chosen: ForcedChoices) -> Calibration | None:
    """The expected calibration error of N samples, corrected for its bias; `None` without any.

    The mean size of confidence less accuracy in bins with equal numbers of samples, by confidence:
    ten, or as many as have five samples each. Samples of one confidence have their mean verdict,
    so that their order says nothing. In each bin the size is too large by chance: the expected
    excess of an estimate with the same variance is subtracted (Kumar, Liang & Ma 2019, arXiv
    1909.10155). The variance is that of the accuracy after two samples are added that are right as
    often as the model is sure, since it would be 0 where all are right or all wrong.

    The interval is that of a basic bootstrap: how far the estimate lies from the truth in samples
    that are drawn with the gaps found here, with these gaps shrunk towards 0 (James & Stein 1961),
    and with none, since gaps of a calibrated model are found by chance alone; the wider ends of the
    three. Errors of the bins go together as the samples of a row do, and other samples would have
    other confidences.
    """
    n = len(chosen.right)
    if not n:
        return None
    bins = _bins_of(chosen)
    found = float(bins.error_of(bins.gaps[None])[0])
    noise = (bins.errors**2).sum()
    squares = (bins.gaps**2).sum()
    shrunk = bins.gaps * max(0.0, 1 - noise / squares) if squares else bins.gaps
    low, high = found, found
    together = _together(chosen, bins)
    rows = len(np.unique(chosen.rows))
    wider = student(max(1, rows - 1)) / Z95
    errors = wider * bins.draw(together)
    other_samples = wider * np.random.default_rng(1).standard_normal(_REPEATS)
    for gaps in (bins.gaps, shrunk, np.zeros_like(shrunk)):
        sizes = np.abs(gaps)
        truth = float(bins.shares @ sizes)
        spread = math.sqrt(float(bins.shares @ (sizes - truth) ** 2) / (n / together))
        off = bins.error_of(gaps + errors) + spread * other_samples - truth
        ends = found - np.quantile(off, (TAILS[1], TAILS[0]))
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    return Calibration(found, max(0.0, low), min(1.0, high))


class _Bins(NamedTuple):
    """B bins of confidence; arrays of shape (B,)."""

    shares: Floats
    """Share of the samples."""
    gaps: Floats
    """Mean confidence less accuracy."""
    errors: Floats
    """Standard error of each gap."""
    place: npt.NDArray[np.int64]
    """Bin of each sample: shape (N,)."""

    def error_of(self, gaps: Floats) -> Floats:
        """The corrected calibration error for gaps of shape (R, B): shape (R,), at least 0."""
        size, error = np.abs(gaps), np.maximum(self.errors, _TINY)
        ratio = size / error
        normal = math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2)
        expected = error * normal + size * _erf(ratio / math.sqrt(2))
        return np.maximum(0.0, (2 * size - expected) @ self.shares)

    def draw(self, together: float) -> Floats:
        """Errors of the gaps, (R, B); `together`: variance of their sum over independent ones."""
        weighted = self.shares * self.errors
        alone, all_in_one = float((weighted**2).sum()), float(weighted.sum() ** 2)
        common = 0.0
        if all_in_one > alone:
            common = min(1.0, (together - 1) * alone / (all_in_one - alone))
        rng = np.random.default_rng(0)
        own = rng.standard_normal((_REPEATS, len(self.errors)))
        shared = rng.standard_normal((_REPEATS, 1))
        return self.errors * (math.sqrt(common) * shared + math.sqrt(1 - common) * own)


def _bins_of(chosen: ForcedChoices) -> _Bins:
    n = len(chosen.right)
    _, places = np.unique(chosen.confidence, return_inverse=True)
    shares = (np.bincount(places, chosen.right) / np.bincount(places))[places]
    count = min(_BINS, max(1, n // _LEAST))
    parts = np.array_split(np.argsort(chosen.confidence, kind="stable"), count)
    place = np.empty(n, np.int64)
    rows = []
    for number, part in enumerate(parts):
        place[part] = number
        sure, right = float(chosen.confidence[part].mean()), float(shares[part].mean())
        share = (right * len(part) + 2 * sure) / (len(part) + 2)
        error = math.sqrt(max(0.0, share * (1 - share)) / len(part))
        rows.append((len(part) / n, sure - right, error))
    columns = np.array(rows).T
    return _Bins(columns[0], columns[1], columns[2], place)


def _together(chosen: ForcedChoices, bins: _Bins) -> float:
    """Variance of the rows' sums of residuals over that of independent samples; at least 1."""
    residuals = chosen.confidence - chosen.right - bins.gaps[bins.place]
    squares = float((residuals**2).sum())
    if not squares:
        return 1.0
    _, rows = np.unique(chosen.rows, return_inverse=True)
    return max(1.0, float((np.bincount(rows, residuals) ** 2).sum()) / squares)


def _erf(values: Floats) -> Floats:
    """The error function, within 2e-7 (Abramowitz & Stegun 1964, 7.1.26), for values from 0 on."""
    t = 1 / (1 + 0.3275911 * values)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return 1 - series * np.exp(-(values**2))
