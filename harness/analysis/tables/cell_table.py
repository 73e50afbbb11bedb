"""The columns of `table.csv` that follow from the verdicts alone."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.analysis.samples.draws import accuracy_interval, draws_columns, rows_of
from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.score.outcomes import ANSWERED, OUTCOMES, SCORED_PLACES
from eyechart.harness.spec import Line
from eyechart.harness.spec.columns import CELLS, DIGITS, LINE, RUN


def line_columns(line: Line) -> dict[str, int]:
    """Column -> value of a line in CSV files: the columns `LINE`."""
    return dict(zip(LINE, astuple(line), strict=True))


def cell_table(manifest: Manifest, samples: pd.DataFrame) -> pd.DataFrame:
    """The columns of `table.csv`, one row for each planned cell."""
    size, axes = len(manifest.cells), list(manifest.spec["axes"])
    flat = samples["cell"].to_numpy(np.int64) * len(OUTCOMES) + samples["outcome"].to_numpy()
    counted = np.bincount(flat, minlength=size * len(OUTCOMES)).reshape(size, len(OUTCOMES))
    counts = dict(zip(OUTCOMES, counted.T, strict=True))
    draws = [cell.draws for cell in manifest.cells]
    planned = np.array([cell.samples for cell in manifest.cells], np.int64)
    if manifest.recorded is None:
        done = counted.sum(axis=1)
        planned *= np.array(draws, np.int64)
    else:  # who collected replies chose how many each prompt has: one is enough
        done = np.bincount(np.unique(samples[["cell", "index"]].to_numpy(np.int64), axis=0)[:, 0])
        done = np.pad(done, (0, size - len(done)))
    counts["not_run"] = np.maximum(planned - done, 0)
    n = counted[:, SCORED_PLACES].sum(axis=1)
    correct, answered = counts["correct"], sum(counts[name] for name in ANSWERED)
    if max(draws, default=1) > 1:
        rows = rows_of(samples)
        found = [accuracy_interval(rows.at(rows.cells == cell)) for cell in range(size)]
    else:
        found = list(map(wilson, correct, n))
    intervals = [one or (math.nan, math.nan) for one in found]
    cells, signed = samples["cell"].to_numpy(np.int64), samples["signed_error"].to_numpy(float)
    error = np.abs(signed)
    measures = {
        "accuracy": correct / np.where(n > 0, n, np.nan),
        "ci_low": [low for low, _ in intervals],
        "ci_high": [high for _, high in intervals],
        "accuracy_of_answered": correct / np.where(answered > 0, answered, np.nan),
        "mean_abs_error": cell_means(cells, error, size),
        "mean_signed_error": cell_means(cells, signed, size),
        "off_by_one": cell_means(cells, np.where(np.isnan(error), np.nan, error == 1), size),
        "prompt_tokens": cell_means(cells, samples["prompt_tokens"].to_numpy(float), size),
        "output_tokens": cell_means(cells, samples["output_tokens"].to_numpy(float), size),
        "thinking_tokens": cell_means(cells, samples["thinking_tokens"].to_numpy(float), size),
    }
    lines = [line_columns(cell.line) for cell in manifest.cells]
    table = {
        "model": manifest.model,
        "task": manifest.task,
        "task_version": manifest.task_version,
        **{axis: [cell.condition[axis] for cell in manifest.cells] for axis in axes},
        **{name: [line[name] for line in lines] for name in LINE},
        "n": n,
        **counts,
        **{name: np.round(np.array(values, float), DIGITS) for name, values in measures.items()},
        **draws_columns(samples, draws),
    }
    return pd.DataFrame({name: table[name] for name in (*RUN, *axes, *CELLS)}, range(size))


def cell_means(cells: npt.NDArray[np.int64], values: Floats, size: int) -> Floats:
    """The mean of the known values in each cell; NaN without one, and where it is infinite."""
    known = ~np.isnan(values)
    counts = np.bincount(cells[known], minlength=size)
    sums = np.bincount(cells[known], values[known], size)
    means = sums / np.where(counts, counts, np.nan)
    return np.where(np.isfinite(means), means, np.nan)
