"""Patterns in a model's wrong answers, cell by cell.

The patterns are those of Barbero et al. (2024, arXiv 2406.04267): above about a hundred symbols
models answer 100, and copy the repeated symbol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
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
    is_round = np.array([answer % _ROUND == 0 for answer in answers], bool)
    taken = ("signed_error", "answer", "collapsed", "first_divergence")
    cell, *columns = (samples[name].to_numpy() for name in ("cell", *taken))
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], range(cells))
    parts = [np.split(column[order], starts)[1:] for column in columns]
    numbers, modal = [], []
    for signed, answer, copied, divergence in zip(*parts, strict=True):
        read = answer[answer >= 0]
        given, counts = np.unique(read, return_counts=True)
        modal.append(answers[given[counts.argmax()]] if len(read) else None)
        numbers.append(
            (
                _of_known(np.median, np.abs(signed)),
                _of_known(np.mean, is_round[read]),
                counts.max() / len(read) if len(read) else math.nan,
                _of_known(np.mean, copied[copied >= 0]),
                _of_known(np.mean, divergence),
            )
        )
    names = [name for name in SIGNS if name != "modal_answer"]
    with np.errstate(over="ignore"):
        rounded = np.round(np.array(numbers, float).reshape(cells, len(names)), _DIGITS)
    table = pd.DataFrame(np.where(np.isfinite(rounded), rounded, math.nan), columns=names)
    table["modal_answer"] = pd.Series(modal, dtype=object)
    return table[list(SIGNS)]


def _of_known(of: Callable[[Any], Any], values: npt.NDArray[Any]) -> float:
    """What `of` makes of the values that are not NaN; NaN without one."""
    known = values[~np.isnan(values)]
    return float(of(known)) if len(known) else math.nan


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
