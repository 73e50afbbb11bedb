"""Patterns in a model's wrong answers, cell by cell.

The patterns are those of Barbero et al. (2024, arXiv 2406.04267): above about a hundred symbols
models answer 100, and copy the repeated symbol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eyechart.harness.analysis.tables.cell_table import cell_means
from eyechart.harness.score.normal_form import nfc
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec.columns import DIGITS, SIGNS

_ROUND = 10


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
    return int(verdict.answer == nfc(repeated))


def diagnosis(
    samples: pd.DataFrame, answers: Sequence[int], cells: int
) -> dict[str, npt.NDArray[Any]]:
    """The columns `SIGNS`, a value for each of the `cells`; `samples`, `answers`: see `JudgedRun`.

    Counts: the median absolute error, the share of answers that are multiples of ten, the most
    frequent answer (the smallest of several) and its share. Copies: the share that `collapsed` and
    the mean index of the first word that differs. A value is NaN if it does not apply, and a median
    error also if it is too large for a float.
    """
    taken = ("cell", "signed_error", "answer", "collapsed", "first_divergence")
    cell, signed, answer, copied, divergence = (samples[name].to_numpy() for name in taken)
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], range(cells))
    parts = [np.split(column[order], starts)[1:] for column in (np.abs(signed), answer)]
    medians, modal, shares = [], [], []
    for errors, given in zip(*parts, strict=True):
        known = errors[~np.isnan(errors)]
        medians.append(np.median(known) if len(known) else math.nan)
        values, counts = np.unique(given[given >= 0], return_counts=True)
        modal.append(answers[values[counts.argmax()]] if len(values) else None)
        shares.append(counts.max() / counts.sum() if len(values) else math.nan)
    is_round = np.array([*(one % _ROUND == 0 for one in answers), math.nan])  # -1: none was read
    numbers = {
        "median_abs_error": np.array(medians, float),
        "round_answers": cell_means(cell, is_round[answer], cells),
        "modal_share": np.array(shares, float),
        "collapsed": cell_means(cell, np.where(copied < 0, math.nan, copied), cells),
        "mean_first_divergence": cell_means(cell, divergence, cells),
    }
    with np.errstate(over="ignore"):
        rounded = {name: np.round(values, DIGITS) for name, values in numbers.items()}
    columns = {name: np.where(np.isfinite(one), one, math.nan) for name, one in rounded.items()}
    table = {**columns, "modal_answer": np.array(modal, object)}
    return {name: table[name] for name in SIGNS}


def error_growth(lengths: Any, median_errors: Any) -> float | None:
    """The exponent b of `error ~ length^b`; 1 means that the error grows in proportion to length.

    Least squares of log error on log length, over the lengths above 0 with a median error
    above 0; `None` for fewer than two such lengths.
    """
    lengths, errors = np.asarray(lengths, float), np.asarray(median_errors, float)
    wrong = (errors > 0) & (lengths > 0)
    if len(np.unique(lengths[wrong])) < 2:  # noqa: PLR2004  a straight line has two points
        return None
    slope, _ = np.polyfit(np.log(lengths[wrong]), np.log(errors[wrong]), 1)
    return round(float(slope), 9) + 0.0  # never -0
