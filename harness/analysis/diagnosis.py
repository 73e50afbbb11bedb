"""How a model goes wrong: what it answers instead, cell by cell.

The signatures are those of Barbero et al. (2024, arXiv 2406.04267): past about a hundred symbols
models say 100, and copy the symbol that is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.columns import SIGNS
from harness.score.verdict import Verdict

_ROUND = 10
_DIGITS = 6


def collapsed(verdict: Verdict, target: int | str, repeated: object) -> int:
    """1 where the answer is the repeated symbol and should not be; -1 where nothing was read.

    `repeated` is the task's parameter of that name. Of texts, a row of one word over and over
    counts, where the target has others. A task without either has no collapse to show: -1.
    """
    if not isinstance(verdict.answer, str) or not isinstance(target, str):
        return -1
    words, wanted = verdict.answer.split(), target.split()
    if len(wanted) > 1:
        return -1 if len(set(wanted)) == 1 else int(len(set(words)) == 1)
    if not isinstance(repeated, str) or target == repeated:
        return -1
    return int(verdict.answer == repeated)


def diagnosis(samples: pd.DataFrame, answers: Sequence[int], cells: int) -> pd.DataFrame:
    """One row for each of so many cells: `SIGNS`. For `samples` and `answers` see `JudgedRun`.

    Counts: the median distance from the truth, the share of answers that are multiples of ten, the
    most frequent answer (the smallest of several) and its share. Copies: the share that `collapsed`
    and the mean place of the first word that differs. What does not apply is NaN, and a median
    distance that no float is as large as.
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
    every = range(cells)
    columns: dict[str, Any] = {
        "median_abs_error": grouped["distance"].median(),
        "round_answers": counted.agg(lambda places: float(is_round[places].mean())),
        "modal_share": counted.agg(lambda values: values.value_counts(normalize=True).iloc[0]),
        "collapsed": copied.mean(),
        "mean_first_divergence": grouped["first_divergence"].mean(),
    }
    table = pd.DataFrame(columns).reindex(every).astype(float).round(_DIGITS)
    table = table.replace([np.inf, -np.inf], np.nan)
    modal = counted.agg(lambda places: places.mode().iloc[0]).reindex(every)
    exact = [None if place != place else answers[int(place)] for place in modal]  # noqa: PLR0124  NaN
    table["modal_answer"] = pd.Series(exact, every, object)
    return table[list(SIGNS)]


def error_growth(lengths: Any, median_errors: Any) -> float | None:
    """How the error grows with length: the exponent b of `error ~ length^b`; 1 is in proportion.

    Least squares of log error on log length over the lengths with an error; `None` for fewer than
    two of them.
    """
    lengths, errors = np.asarray(lengths, float), np.asarray(median_errors, float)
    wrong = errors > 0
    if wrong.sum() < 2:  # noqa: PLR2004  a line has two points
        return None
    slope, _ = np.polyfit(np.log(lengths[wrong]), np.log(errors[wrong]), 1)
    return float(slope)
