"""The tables that follow from a run: `effective_length.csv`, `diagnosis.csv`, and CSV itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eyechart.harness.analysis.at_length import AT_COLUMNS, at_length, is_described
from eyechart.harness.analysis.capacity import STATISTIC, capacity_columns
from eyechart.harness.analysis.cell_table import cell_means
from eyechart.harness.analysis.cells import csv_text
from eyechart.harness.analysis.cost_at import cost_of_reply_at
from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.effective_length import EffectiveLength
from eyechart.harness.analysis.in_tokens import token_columns
from eyechart.harness.analysis.interval import Bound, Span
from eyechart.harness.analysis.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.analysis.overall import overall
from eyechart.harness.journal.files import replace_file
from eyechart.harness.score.outcomes import NOT_SCORED
from eyechart.harness.spec.columns import (
    CAPACITY,
    COST,
    COST_A_REPLY,
    DIAGNOSIS,
    EFFECTIVE_LENGTH,
    ESTIMATE,
    ESTIMATE_TEXTS,
    OVERALL,
    REACHES,
    READ,
    RIGHT_AT,
    ROW_TOKENS,
    RUN,
    TOKEN_TEXTS,
    TOKENS,
)

_DIGITS = 6


def cells_table(run: JudgedRun, threshold: Threshold = Threshold()) -> pd.DataFrame:
    """The columns of `table.csv`: `JudgedRun.cells`, and for each line the mean tokens of its rows,
    by tokens a symbol; and the probability that its accuracy reaches the threshold, by the fitted
    curve; empty where nothing was scored, for length 0, and where the curve does not describe it.
    """
    cells, lengths = (run.samples[name].to_numpy() for name in ("cell", "true_length"))
    symbols = cell_means(cells, lengths.astype(float), len(run.cells))
    row_tokens, reaches = np.full((2, len(run.cells)), np.nan)
    for judged in run.conditions.values():
        estimate, tokens = judged.effective_length(threshold), judged.tokens_a_symbol
        if tokens is not None:
            places = list(judged.places)
            row_tokens[places] = symbols[places] * tokens.value
        if estimate is not None:
            nominal = judged.scored_cells["length"]
            nominal = nominal[[one > 0 and is_described(estimate, one) for one in nominal]]
            reaches[nominal.index] = estimate.fit.reaches(nominal.to_numpy(float))
    return run.cells.assign(
        **{ROW_TOKENS: np.round(row_tokens, _DIGITS), REACHES: np.round(reaches, _DIGITS)}
    )


def effective_length_table(run: JudgedRun, threshold: Threshold = Threshold()) -> pd.DataFrame:
    """One row for each condition: accuracy over all lengths, effective length, tested length and
    area, with intervals.

    `…_bound` is `<` or `>` where a length is below or above the tested range, and an end of an
    interval that is not in it is empty. The area of an adaptive condition is empty, since its
    samples are where the accuracy falls. `error_growth` is empty for answers that are texts. The
    lengths in tokens are empty where tokens a symbol are not known. A task that asks for the
    statistic `capacity` has its columns last.
    """
    manifest = run.manifest
    has_capacity = STATISTIC in run.spec.statistics
    rows = []
    for condition, judged in run.conditions.items():
        estimate = judged.effective_length(threshold)
        rows.append(
            {
                "model": manifest.model,
                "task": manifest.task,
                "task_version": manifest.task_version,
                **condition,
                "adaptive": "yes" if judged.adaptive else "",
                "n": int(judged.cells["n"].sum()),
                "not_scored": int(judged.cells[list(NOT_SCORED)].sum().sum()),
                "read": run.manifest.settings.get("read", "reply"),
                "chance": judged.curve.mean_chance if run.options and judged.curve else None,
                **_calibration_columns(judged),
                **({} if (total := overall(judged)) is None else total.columns()),
                **threshold_columns(threshold),
                **estimate_columns(estimate, adaptive=judged.adaptive),
                "error_growth": judged.error_growth,
                **token_columns(judged, threshold),
                **cost_columns(judged),
                **(capacity_columns(judged) if has_capacity else {}),
            }
        )
    columns = [*EFFECTIVE_LENGTH, *(CAPACITY if has_capacity else ())]
    table = pd.DataFrame(rows, columns=[*RUN, *manifest.spec["axes"], *columns])
    numbers = [
        *(name for name in ESTIMATE if name not in ESTIMATE_TEXTS),
        *(*OVERALL, *(name for name in READ if name != "read"), "error_growth", "cost_usd"),
        *(name for name in TOKENS if name not in TOKEN_TEXTS),
    ]
    if has_capacity:
        numbers += ["capacity", "capacity_fails_at"]
    table[numbers] = table[numbers].astype(float).round(_DIGITS)
    return table


def _calibration_columns(judged: JudgedCondition) -> dict[str, float]:
    found = judged.calibration
    return {} if found is None else dict(zip(READ[2:], found, strict=True))


def at_table(run: JudgedRun, threshold: Threshold, lengths: Sequence[int]) -> pd.DataFrame:
    """A row for each condition and each of `lengths`: the values of its axes, and the columns of
    `AtLength`; outside the lengths asked there are bounds. The last column has the dollars of a
    reply there, see `cost_at`.
    """
    rows = [
        {
            **condition,
            **at_length(estimate, length).columns,
            COST_A_REPLY: cost_of_reply_at(judged, length),
        }
        for condition, judged in run.conditions.items()
        if (estimate := judged.effective_length(threshold)) is not None
        for length in lengths
    ]
    table = pd.DataFrame(rows, columns=[*run.manifest.spec["axes"], *AT_COLUMNS, COST_A_REPLY])
    numbers = [name for name in AT_COLUMNS if name not in ("at", "bound", "limited_by")]
    table[numbers] = table[numbers].astype(float).round(_DIGITS)
    table[COST_A_REPLY] = table[COST_A_REPLY].astype(float)
    return table


def cost_columns(judged: JudgedCondition) -> dict[str, Any]:
    """Column -> value of what its replies cost in CSV files: the columns `COST`."""
    cost = judged.cost
    return dict(
        zip(COST, (None, "") if cost is None else (cost.dollars, cost.prices_of), strict=True)
    )


def right_at_columns(
    estimate: EffectiveLength, lengths: Sequence[int]
) -> dict[str, float | str | None]:
    """Column -> value of the accuracy at each of `lengths` in the file of a leaderboard: the
    columns `RIGHT_AT`, each with the length in its name.
    """
    return {
        name.format(length): value
        for length in lengths
        for found in [at_length(estimate, length)]
        for name, value in zip(
            RIGHT_AT,
            (
                *(found.accuracy, *found.accuracy_ci, found.reaches),
                "" if found.bound == "=" else found.bound,
            ),
            strict=True,
        )
    }


def threshold_columns(threshold: Threshold) -> dict[str, Any]:
    """Column -> value of a threshold in CSV files."""
    measure = "own accuracy" if threshold.relative else "accuracy"
    return {"threshold": threshold.share, "threshold_of": measure}


def estimate_columns(estimate: EffectiveLength | None, *, adaptive: bool) -> dict[str, Any]:
    """Column -> value of an effective length in CSV files: the columns `ESTIMATE`. The area is
    `None` for an adaptive condition.
    """
    if estimate is None:
        return dict.fromkeys(ESTIMATE)
    area = None if adaptive else estimate.area
    low, high = (None, None) if adaptive else estimate.area_ci
    return {
        **_length_columns("effective_length", estimate.length, estimate.length_ci),
        "limited_by": estimate.limit.by,
        "rows": estimate.rows,
        "one_threshold": "yes" if estimate.one_threshold else "no",
        "lapse": estimate.lapse,
        **_length_columns("tested_length", estimate.tested_length, estimate.tested_length_ci),
        "area": area,
        "area_ci_low": low,
        "area_ci_high": high,
    }


def _length_columns(
    name: str, length: Bound | None, interval: Span
) -> dict[str, float | str | None]:
    """The columns of a length: its value, the sign of its bound, and the ends of its interval. The
    first two are empty where it is not known.
    """
    return {
        name: None if length is None else length.length,
        f"{name}_bound": "" if length is None or length.sign == "=" else length.sign,
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
