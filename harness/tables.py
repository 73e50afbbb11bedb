"""Journals to accuracy-vs-length tables.

A cell is task × condition × length, one row of `table.csv`. Everything here is a pure function of
a run's folder.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd

from harness import journal
from harness.score import Outcome, judge_record
from harness.spec import Condition, condition_label
from harness.stats import wilson

OUTCOMES: tuple[str, ...] = get_args(Outcome)
NOT_SCORED = ("error", "not_run")
UNANSWERED = ("unparsed", "refused", "truncated", "overflow")
"""Scored, but not for a wrong answer."""
MEASURES = (
    "accuracy",
    "ci_low",
    "ci_high",
    "accuracy_of_answered",
    "mean_abs_error",
    "mean_signed_error",
    "off_by_one",
    "prompt_tokens",
    "output_tokens",
)
_DIGITS = 6
_COLUMNS = {
    "cell": "i",
    "index": "i",
    "outcome": "b",
    "signed_error": "d",
    "prompt_tokens": "d",
    "output_tokens": "d",
}
"""Column of `Run.samples` -> its type in an `array`."""


@dataclass(frozen=True)
class Run:
    """One run, judged."""

    folder: Path
    manifest: journal.Manifest
    samples: pd.DataFrame
    """One row a sample that has a record: `cell` (place in `manifest.cells`), `index`, `outcome`
    (place in `OUTCOMES`), `signed_error`, `prompt_tokens`, `output_tokens` (NaN where unknown)."""
    cells: pd.DataFrame
    """One row a cell in the order of `manifest.cells`, the columns of `table.csv`."""


def read_run(folder: Path, warn: journal.Warn | None = None) -> Run:
    """The run in `folder`, every record judged anew.

    Raises:
        journal.JournalError: there is no run.
    """
    manifest = journal.read_manifest(folder)
    order = _condition_order(manifest)
    manifest.cells.sort(key=lambda cell: (order[condition_label(cell.condition)], cell.length))
    samples = _judged(folder, manifest, warn)
    return Run(folder, manifest, samples, _cells(manifest, samples))


def _judged(folder: Path, manifest: journal.Manifest, warn: journal.Warn | None) -> pd.DataFrame:
    """Each sample's best record, judged: an answer beats an error, a later one an earlier."""
    answer = manifest.task_spec().answer
    places = {cell.key: place for place, cell in enumerate(manifest.cells)}
    rows: list[array[int]] = [array("i") for _ in manifest.cells]
    columns = {name: array(code) for name, code in _COLUMNS.items()}
    error = OUTCOMES.index("error")
    for record in journal.read_records(folder, warn):
        place = places.get((condition_label(record["condition"]), record["length"]))
        if place is None or record["index"] >= manifest.cells[place].samples:
            continue
        if (answer.type == "integer") != isinstance(record["target"], int):
            continue
        verdict = judge_record(record, answer)
        values = (
            place,
            record["index"],
            OUTCOMES.index(verdict.outcome),
            _number(verdict.signed_error),
            _number(record.get("prompt_tokens")),
            _number(record.get("output_tokens")),
        )
        known = rows[place]
        if record["index"] >= len(known):
            known.extend([-1] * (record["index"] + 1 - len(known)))
        row = known[record["index"]]
        if row < 0:
            known[record["index"]] = len(columns["cell"])
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
        elif verdict.outcome != "error" or columns["outcome"][row] == error:
            for column, value in zip(columns.values(), values, strict=True):
                column[row] = value
    # the arrays themselves, not copies of them
    return pd.DataFrame({name: np.asarray(column) for name, column in columns.items()}, copy=False)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _cells(manifest: journal.Manifest, samples: pd.DataFrame) -> pd.DataFrame:
    """Counts and means of every planned cell."""
    every = range(len(manifest.cells))
    counts = (
        pd.crosstab(samples["cell"], samples["outcome"])
        .reindex(index=every, columns=range(len(OUTCOMES)), fill_value=0)
        .set_axis(OUTCOMES, axis="columns")
    )
    planned = pd.Series([cell.samples for cell in manifest.cells], index=every)
    counts["not_run"] = (planned - counts.sum(axis="columns")).clip(lower=0)
    grouped = samples.groupby("cell")
    means = grouped[["signed_error", "prompt_tokens", "output_tokens"]].mean()
    error = samples["signed_error"].abs()
    means["abs_error"] = error.groupby(samples["cell"]).mean()
    means["off_by_one"] = (error == 1)[error.notna()].groupby(samples["cell"]).mean()
    means = means.reindex(every)
    table = pd.DataFrame(
        {
            "model": manifest.model,
            "task": manifest.task,
            "task_version": manifest.task_version,
            **{
                axis: [cell.condition[axis] for cell in manifest.cells]
                for axis in manifest.spec["axes"]
            },
            "length": [cell.length for cell in manifest.cells],
        },
        index=every,
    )
    table["n"] = counts[[name for name in OUTCOMES if name not in NOT_SCORED]].sum(axis="columns")
    table[list(OUTCOMES)] = counts
    table["accuracy"] = table["correct"] / table["n"].where(table["n"] > 0)
    intervals = [
        wilson(int(correct), int(n)) or (None, None)
        for correct, n in zip(table["correct"], table["n"], strict=True)
    ]
    table["ci_low"] = pd.Series([low for low, _ in intervals], index=every, dtype=float)
    table["ci_high"] = pd.Series([high for _, high in intervals], index=every, dtype=float)
    answered = table["correct"] + table["incorrect"]
    table["accuracy_of_answered"] = table["correct"] / answered.where(answered > 0)
    table["mean_abs_error"] = means["abs_error"]
    table["mean_signed_error"] = means["signed_error"]
    table["off_by_one"] = means["off_by_one"]
    table["prompt_tokens"] = means["prompt_tokens"]
    table["output_tokens"] = means["output_tokens"]
    table[list(MEASURES)] = table[list(MEASURES)].astype(float).round(_DIGITS)
    return table


def _condition_order(manifest: journal.Manifest) -> dict[str, int]:
    """Condition label -> rank, by the order in which the task file gives the values."""
    axes = manifest.spec["axes"]

    def rank(condition: Condition) -> tuple[int, ...]:
        return tuple(list(axes[axis]["values"]).index(name) for axis, name in condition.items())

    conditions = {condition_label(cell.condition): cell.condition for cell in manifest.cells}
    ordered = sorted(conditions, key=lambda label: rank(conditions[label]))
    return {label: place for place, label in enumerate(ordered)}


def write_csv(run: Run) -> Path:
    """Writes `table.csv` into the run's folder; an empty mean is an empty field."""
    path = run.folder / journal.TABLE
    content = run.cells.to_csv(index=False, lineterminator="\n")
    journal.replace_file(path, content.encode())
    return path


def incomplete(run: Run) -> int:
    """Samples of the run without a reply."""
    return int(run.cells[list(NOT_SCORED)].sum().sum())
