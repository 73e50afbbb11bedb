"""How much more the answers vary than independent ones: between rows, and between lengths.

An estimate that counts every answer as independent is too sure of itself where answers to one row
of symbols at several lengths go together, or where neighbouring lengths differ. Both are estimated
from the answers, and the likelihood is divided by their product.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.bins import group_sums
from eyechart.harness.analysis.length.curve import Curve, Floats

_NEAR = 2.0
"""Logits around the threshold within which answers count for the estimate of a crossing."""
_LEAST_VARIANCE = 0.3
_PRIOR_ROWS, _PRIOR = 5, 0.25
"""Number and correlation of the rows that the prior stands for."""
_ROWS_APART = 20
"""Rows without correlation that join those of `row_correlation`: what it makes clearer must not
rest on a correlation that few rows show by chance."""
_OWN_LINES = 10
"""Lines of a row, where each length has rows of its own: see `between_rows`."""
_ROUNDING = 1e-9
"""Deviations that are a smaller share of the residuals count as 0."""


def nearness(accuracy: Floats, threshold: float) -> Floats:
    """Weight of answers by how near their expected accuracy is to the threshold, 0 to 1."""
    limit = min(max(threshold, 1e-6), 1 - 1e-6)
    logits = np.log(accuracy / (1 - accuracy)) - math.log(limit / (1 - limit))
    return np.exp(-((logits / _NEAR) ** 2))


def row_residuals(
    samples: Curve, places: npt.NDArray[np.int64], accuracy: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """The weighted residuals of the answers, and their sums over each row: (N, L) and (N,).

    `places` has the bin of each answer, shape (N, L); `accuracy` and `weights` have shape (B,). A
    row's sum says whether the model was better or worse on it than on others.
    """
    residuals = (samples.correct - accuracy[places]) * weights[places] * samples.scored
    return residuals, residuals.sum(axis=1)


def between_rows(
    residuals: Floats, scored: Floats, *, in_common: bool = True, own_rows: bool = False
) -> float:
    """Variance of the rows' sums, as a multiple of that of independent answers; at least 1.

    Both have shape (N, L). Answers to one row go together with the correlation that the products of
    their residuals show (the cluster-robust variance of Liang and Zeger 1986, Biometrika 73, over
    the naive one). As few rows show little, they are joined by `_PRIOR_ROWS` rows of correlation
    `_PRIOR`. Without `in_common` the mean of its line is subtracted from each residual: what all
    rows have in common, such as replies that are always right, does not count as correlation then.

    With `own_rows`, see `Curve.own_rows`, sixty rows with sixty lengths are no single row that was
    asked sixty times: for the prior they count as six rows that were asked at ten lines each.
    """
    rows = int(scored.any(axis=1).sum())
    independent = float((residuals**2).sum())
    most = _products(abs(residuals))
    if not independent or most <= 0:  # no row was asked at two lengths
        return 1.0
    deviations = residuals
    if not in_common:
        means = residuals.sum(axis=0) / np.maximum(scored.sum(axis=0), 1)
        deviations = (residuals - means) * scored
    most_of_deviations = _products(abs(deviations))
    correlation = 0.0
    if most_of_deviations > _ROUNDING * most:
        correlation = max(0.0, _products(deviations) / most_of_deviations)
    others = most / independent  # lines beside each, weighted
    parts = max(1.0, (others + 1) / _OWN_LINES) if own_rows else 1.0
    shown = rows * correlation / (rows + _PRIOR_ROWS) * others
    prior = _PRIOR_ROWS * _PRIOR / (rows * parts + _PRIOR_ROWS) * ((others + 1) / parts - 1)
    return 1 + shown + prior


def _products(values: Floats) -> float:
    """The sum, over all rows, of the products of two different values of one row."""
    return float((values.sum(axis=1) ** 2).sum() - (values**2).sum())


def row_correlation(samples: Curve) -> float:
    """Correlation of the answers to one row at two lines, 0 to 1: that of the deviations from the
    lines' means, joined by `_ROWS_APART` rows without correlation.
    """
    means = samples.correct.sum(axis=0) / np.maximum(samples.n, 1)
    deviations = (samples.correct - means) * samples.scored
    most = _products(np.sqrt(np.maximum(means * (1 - means), 0)) * samples.scored)
    if most <= 0:  # no row was asked at two lengths
        return 0.0
    rows = int(samples.scored.any(axis=1).sum())
    shown = min(1.0, max(0.0, _products(deviations) / most))
    return shown * rows / (rows + _ROWS_APART)


def between_lengths(
    correct: Floats,
    answered: Floats,
    accuracy: Floats,
    weights: Floats,
    centres: Floats,
    *,
    of_draws: float = 1.0,
) -> float:
    """Variance of groups of neighbouring lengths, as a multiple of the binomial one; at least 1.

    All arrays have shape (B,), a value for each bin; `centres` are the octaves of the bins. The
    result is Pearson's chi-squared over its degrees of freedom, as in a quasi-binomial model
    (McCullagh and Nelder 1989). With several draws the binomial variance is smaller by the factor
    `of_draws`, see `mean_of_draws`.
    """
    grouped = [
        group_sums(values, centres)
        for values in (
            correct - answered * accuracy,
            answered * accuracy * (1 - accuracy),
            answered * weights,
            answered,
        )
    ]
    residual, variance, weight, count = grouped
    share = weight / np.maximum(count, 1)
    squares = share * residual**2 / np.maximum(variance, _LEAST_VARIANCE)
    return max(1.0, float(squares.sum() / of_draws / max(share.sum() - 1, 0.5)))


def mean_of_draws(
    samples: Curve, places: npt.NDArray[np.int64], accuracy: Floats, weights: Floats
) -> float:
    """Variance of a row's mean over its draws, as a multiple of that of one answer: from 1 over the
    number of draws, where they are independent, to 1, where all draws of a row are alike.

    The share of the variance that lies within rows is estimated from the draws of each row, over
    the variance that `accuracy` has; arguments as for `row_residuals`. Few rows are joined by
    `_PRIOR_ROWS` rows whose draws are all alike.
    """
    draws = samples.draws
    if draws is None:
        return 1.0
    mean, expected, weight = samples.correct, accuracy[places], weights[places] ** 2
    several = draws > 1
    within = mean * (1 - mean) * draws / np.maximum(draws - 1, 1)
    whole = float((weight * expected * (1 - expected))[several].sum())
    rows = int(several.any(axis=1).sum())
    if not whole or not rows:
        return 1.0
    share = float((weight * within)[several].sum()) / (whole * (1 + _PRIOR_ROWS / rows))
    scored = samples.scored > 0
    of_mean = float((weight / np.maximum(draws, 1))[scored].sum() / weight[scored].sum())
    return 1 - min(1.0, share) * (1 - of_mean)
