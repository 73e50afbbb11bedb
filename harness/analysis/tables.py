"""The tables that follow from a run: `effective_length.csv`, `diagnosis.csv`, and CSV itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.cells import csv_text
from harness.analysis.curve import Threshold
from harness.analysis.effective_length import EffectiveLength
from harness.analysis.interval import Bound, Span
from harness.analysis.judged_run import NOT_SCORED, JudgedRun
from harness.columns import DIAGNOSIS, EFFECTIVE_LENGTH, ESTIMATE, RUN
from harness.journal.files import replace_file

_DIGITS = 6


def effective_length_table(run: JudgedRun, threshold: Threshold = Threshold()) -> pd.DataFrame:
    """One row for each condition: effective length, crossing length and area, with intervals.

    A length outside the tested range has one bound: `…_min` alone is above the longest tested
    length, `…_max` alone below the shortest. `error_growth` is empty for answers that are texts.
    """
    manifest = run.manifest
    rows = []
    for condition, judged in run.conditions.items():
        estimate = judged.effective_length(threshold)
        rows.append(
            {
                "model": manifest.model,
                "task": manifest.task,
                "task_version": manifest.task_version,
                **condition,
                "n": int(judged.cells["n"].sum()),
                "not_scored": int(judged.cells[list(NOT_SCORED)].sum().sum()),
                **threshold_columns(threshold),
                **(dict.fromkeys(ESTIMATE) if estimate is None else estimate_columns(estimate)),
                "error_growth": judged.error_growth,
            }
        )
    table = pd.DataFrame(rows, columns=[*RUN, *manifest.spec["axes"], *EFFECTIVE_LENGTH])
    numbers = [*ESTIMATE, "error_growth"]
    table[numbers] = table[numbers].astype(float).round(_DIGITS)
    return table


def threshold_columns(threshold: Threshold) -> dict[str, Any]:
    """Column -> value of a threshold in CSV files."""
    measure = "own accuracy" if threshold.relative else "accuracy"
    return {"threshold": threshold.share, "threshold_of": measure}


def estimate_columns(estimate: EffectiveLength) -> dict[str, Any]:
    """Column -> value of an effective length in CSV files: the columns `ESTIMATE`."""
    return {
        **_bounds("effective_length", estimate.length, estimate.length_ci),
        **_bounds("crossing_length", estimate.crossing_length, estimate.crossing_length_ci),
        "area": estimate.area,
        "area_ci_low": estimate.area_ci[0],
        "area_ci_high": estimate.area_ci[1],
    }


def _bounds(name: str, length: Bound, interval: Span) -> dict[str, float | None]:
    return {
        f"{name}_min": length.at_least,
        f"{name}_max": length.at_most,
        f"{name}_ci_low": interval[0].at_least,
        f"{name}_ci_high": interval[1].at_most,
    }


def diagnosis_table(run: JudgedRun) -> pd.DataFrame:
    """`JudgedRun.diagnosis` with the columns of the cell and its number of scored samples."""
    table = pd.concat([run.cells, run.diagnosis], axis="columns")
    return table[[*RUN, *run.manifest.spec["axes"], *DIAGNOSIS]]


def to_csv(table: pd.DataFrame, path: Path) -> Path:
    """Writes `table` to `path`, and returns `path`; unknown is empty, texts are `cells.csv_text`.

    Raises:
        JournalError: the file cannot be written.
    """
    table = table.copy()
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = [
                csv_text(value) if isinstance(value, str) else value for value in table[name]
            ]
    replace_file(path, table.to_csv(index=False, lineterminator="\n").encode())
    return path
