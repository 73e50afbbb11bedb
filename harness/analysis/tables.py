"""The tables that follow from a run: `effective_length.csv`, `diagnosis.csv`, and CSV itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.cells import csv_text
from harness.analysis.diagnosis import error_growth
from harness.analysis.judged_run import NOT_SCORED, JudgedRun
from harness.analysis.stats import Bound, EffectiveLength, Span, Threshold
from harness.columns import DIAGNOSIS, EFFECTIVE_LENGTH, ESTIMATE, RUN
from harness.journal.files import replace_file

_DIGITS = 6


def effective_length_table(run: JudgedRun, threshold: Threshold = Threshold()) -> pd.DataFrame:
    """One row a condition: effective length, crossing, area, with their intervals as bounds.

    A length outside the tested range has one bound alone: `…_min` without `…_max` is beyond the
    longest one, `…_max` without `…_min` below the shortest. `error_growth` is of counts.
    """
    manifest = run.manifest
    rows = []
    for condition, judged in run.conditions.items():
        estimate = judged.effective_length(threshold)
        errors = run.diagnosis["median_abs_error"].loc[list(judged.places)]
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
                "error_growth": error_growth(judged.cells["length"], errors),
            }
        )
    table = pd.DataFrame(rows, columns=[*RUN, *manifest.spec["axes"], *EFFECTIVE_LENGTH])
    numbers = [*ESTIMATE, "error_growth"]
    table[numbers] = table[numbers].astype(float).round(_DIGITS)
    return table


def threshold_columns(threshold: Threshold) -> dict[str, Any]:
    """A threshold under its names in files."""
    of = "own accuracy" if threshold.relative else "accuracy"
    return {"threshold": threshold.share, "threshold_of": of}


def estimate_columns(estimate: EffectiveLength) -> dict[str, Any]:
    """The numbers of an effective length under their names in CSV files."""
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
    """`diagnosis` with the columns that say which cell a row is, and how many were scored."""
    table = pd.concat([run.cells, run.diagnosis], axis="columns")
    return table[[*RUN, *run.manifest.spec["axes"], *DIAGNOSIS]]


def to_csv(table: pd.DataFrame, path: Path) -> Path:
    """Writes `table`; what is not known is an empty field, texts are as `cells.csv_text` has them.

    Raises:
        JournalError: the file cannot be written.
    """
    table = table.copy()
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = [csv_text(v) if isinstance(v, str) else v for v in table[name]]
    replace_file(path, table.to_csv(index=False, lineterminator="\n").encode())
    return path
