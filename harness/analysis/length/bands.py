"""The lines that tables and charts show: each of a run's own, or bands where these have few rows.

Items of somebody's data often have lengths that are all different. Each length is then a line with
one row, whose accuracy is 0 or 1. Bands of half an octave show more; they have the same ends in all
runs. Estimates do not need them: they use the true lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.spec import Cell, Line

BANDS_AN_OCTAVE = 2
_MOST_LINES = 12
"""Lines up to which each is shown, however few rows it has."""
_FEW = 5
"""Rows of a line below which lines are shown together, in the mean of all lines."""
_SHOWN = ("length", "n", "overflow", "accuracy", "ci_low", "ci_high")
ShownLine: TypeAlias = Mapping[str, Any]
"""The columns `_SHOWN` of a line."""


def is_banded(judged: JudgedCondition) -> bool:
    """Whether a condition is shown in bands: given rows, of which few have the same length."""
    return judged.run.has_given_rows and are_sparse(judged.planned)


def are_sparse(cells: Sequence[Cell]) -> bool:
    """Whether cells are more than 12 exact lines with fewer than 5 rows each, in the mean."""
    lines = {cell.line for cell in cells}
    rows = sum(cell.samples for cell in cells)
    return (
        len(lines) > _MOST_LINES
        and all(line.is_exact for line in lines)
        and rows < _FEW * len(cells)
    )


def band_of(length: int) -> Line:
    """The band of half an octave with this length: 32–45, 46–63, 64–90; short ones are one length
    each, as is 0. Its nominal length is the geometric middle of its ends.
    """
    if length == 0:
        return Line.exact(0)
    step = math.floor(math.log2(length) * BANDS_AN_OCTAVE + 1e-9)
    low, after = (math.ceil(2 ** (one / BANDS_AN_OCTAVE) - 1e-9) for one in (step, step + 1))
    return Line(math.isqrt(low * (after - 1)), low, after - 1)


def shown_lines(conditions: Iterable[JudgedCondition]) -> list[dict[Line, ShownLine]]:
    """For each condition line -> what is shown; bands if one of them has many sparse lines."""
    parts = list(conditions)
    in_bands = any(map(is_banded, parts))
    return [_bands(part) if in_bands else _own(part) for part in parts]


def _own(part: JudgedCondition) -> dict[Line, ShownLine]:
    rows = zip(*(part.cells[name].tolist() for name in _SHOWN), strict=True)
    return {
        cell.line: dict(zip(_SHOWN, row, strict=True))
        for cell, row in zip(part.planned, rows, strict=True)
    }


def _bands(part: JudgedCondition) -> dict[Line, ShownLine]:
    counts: dict[Line, list[int]] = {}
    columns = (part.cells[name] for name in ("n", "overflow", "correct"))
    for cell, *row in zip(part.planned, *columns, strict=True):
        line = band_of(cell.length) if cell.line.is_exact else cell.line
        sums = counts.setdefault(line, [0, 0, 0])
        counts[line] = [total + int(one) for total, one in zip(sums, row, strict=True)]
    return {line: _shown(line, *sums) for line, sums in sorted(counts.items())}


def _shown(line: Line, n: int, overflow: int, correct: int) -> ShownLine:
    low, high = wilson(correct, n) or (math.nan, math.nan)
    accuracy = correct / n if n else math.nan
    return dict(zip(_SHOWN, (line.length, n, overflow, accuracy, low, high), strict=True))
