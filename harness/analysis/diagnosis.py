"""Patterns in a model's wrong answers, cell by cell.

The patterns are those of Barbero et al. (2024, arXiv 2406.04267): above about a hundred symbols
models answer 100, and copy the repeated symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec.columns import SIGNS

_ROUND = 10
_DIGITS = 6


def collapsed(verdict: Verdict, target: float | str, repeated: object) -> int:
    """1 where the answer collapsed to one repeated symbol, 0 where not, -1 where not applicable.

    Where the target is one word, a collapsed answer is `repeated`, the task's parameter of that
    name. Where it is several, a collapsed answer repeats a single word and the target does not. Not
    applicable: no text was read, or the target itself looks like a collapsed answer.
    """
    if not isinstance(verdict.answer, str) or not isinstance(target, str):
        return -1
    words, target_words = verdict.answer.split(), target.split()
    if len(target_words) > 1:
        return -1 if len(set(target_words)) == 1 else int(len(set(words)) == 1)
    if not isinstance(repeated, str) or target == repeated:
        return -1
    return int(verdict.answer == repeated)


def diagnosis(samples: pd.DataFrame, answers: Sequence[int], cells: int) -> pd.DataFrame:
    """The columns `SIGNS`, one row for each of the `cells`; `samples`, `answers`: see `JudgedRun`.

    Counts: the median absolute error, the share of answers that are multiples of ten, the most
    frequent answer (the smallest of several) and its share. Copies: the share that `collapsed` and
    the mean index of the first word that differs. A value is NaN if it does not apply, and a median
    error also if it is too large for a float.
    """
    read = pd.DataFrame(
        {
            "cell": samples["cell"],
            "answer": samples["answer"],
            "distance": samples["signed_error"].abs(),
            "collapsed": samples["collapsed"],
            "first_divergence": samples["first_divergence"],
        },
        copy=False,
    )
    grouped = read.groupby("cell")
    counted = read[read["answer"] >= 0].groupby("cell")["answer"]
    is_round = np.array([answer % _ROUND == 0 for answer in answers], bool)
    copied = read[read["collapsed"] >= 0].groupby("cell")["collapsed"]
    places = range(cells)
    columns: dict[str, Any] = {
        "median_abs_error": grouped["distance"].median(),
        "round_answers": counted.agg(lambda values: float(is_round[values].mean())),
        "modal_share": counted.agg(lambda values: values.value_counts(normalize=True).iloc[0]),
        "collapsed": copied.mean(),
        "mean_first_divergence": grouped["first_divergence"].mean(),
    }
    table = pd.DataFrame(columns).reindex(places).astype(float).round(_DIGITS)
    table = table.replace([np.inf, -np.inf], np.nan)
    modal = counted.agg(lambda values: values.mode().iloc[0]).reindex(places)
    values = [None if place != place else answers[int(place)] for place in modal]  # noqa: PLR0124  NaN
    table["modal_answer"] = pd.Series(values, places, object)
    return table[list(SIGNS)]


def error_growth(lengths: Any, median_errors: Any) -> float | None:
    """The exponent b of `error ~ length^b`; 1 means that the error grows in proportion to length.

    Least squares of log error on log length, over the lengths with a median error above 0; `None`
    for fewer than two such lengths.
    """
    lengths, errors = np.asarray(lengths, float), np.asarray(median_errors, float)
    wrong = errors > 0
    if len(np.unique(lengths[wrong])) < 2:  # noqa: PLR2004  a straight line has two points
        return None
    slope, _ = np.polyfit(np.log(lengths[wrong]), np.log(errors[wrong]), 1)
    return float(slope)
