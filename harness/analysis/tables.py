"""Journals to accuracy-vs-length tables.

A cell is task × condition × length, one row of `table.csv`. Everything here is a pure function of
a run's folder.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import pandas as pd

from harness import columns, errors
from harness.analysis.cells import csv_text
from harness.analysis.diagnosis import collapsed
from harness.analysis.stats import wilson
from harness.columns import CELLS, RUN
from harness.journal import journal
from harness.score.verdict import judge_record
from harness.spec import Condition, condition_label, token_count

OUTCOMES, MEASURES = columns.OUTCOMES, columns.MEASURES
NOT_SCORED = ("error", "not_run")
UNANSWERED = ("unparsed", "refused", "truncated", "overflow")
"""Scored, but not for a wrong answer."""
_DIGITS = 6
_COLUMNS = {
    "cell": "i",
    "index": "i",
    "outcome": "b",
    "prompt": "Q",
    "answer": "i",
    "signed_error": "d",
    "collapsed": "b",
    "first_divergence": "d",
    "prompt_tokens": "d",
    "output_tokens": "d",
}
"""Column of `Run.samples` -> its type, in the letters that `struct` and NumPy share."""
_ROW = Struct(f"<{''.join(_COLUMNS.values())}")
_DTYPE = np.dtype([(name, f"<{letter}") for name, letter in _COLUMNS.items()])
_NAN = float("nan")
_AT_OUTCOME = 8
"""Byte of a row that holds the outcome."""


@dataclass(frozen=True)
class Run:
    """One run, judged."""

    folder: Path
    manifest: journal.Manifest
    samples: pd.DataFrame
    """One row a sample that has a record: `cell` (place in `manifest.cells`), `index`, `outcome`
    (place in `OUTCOMES`), `prompt` (its hash), `answer` (place in `answers`; -1 where no integer
    was read), `signed_error` (of integers; infinite where no float is as large), `collapsed` (1 or
    0, see `diagnosis.collapsed`; -1 where nothing was read), `first_divergence` (of texts),
    `prompt_tokens`, `output_tokens`; NaN where there is none."""
    answers: Sequence[int]
    """The different integers that were read, ascending."""
    cells: pd.DataFrame
    """One row a cell in the order of `manifest.cells`, the columns of `table.csv`."""


def read_run(folder: Path, warn: journal.Warn | None = None) -> Run:
    """The run in `folder`, every record judged anew.

    Raises:
        errors.JournalError: there is no run, or an axis of its task has the name of a column.
    """
    manifest = journal.read_manifest(folder)
    for axis in manifest.spec["axes"]:
        if table := columns.table_of(axis, with_axes=True):
            raise errors.JournalError(
                f"{folder}: the axis {axis!r} of its task has the name of a column of {table}; "
                "rename the axis in the task file and run that"
            )
    order = _condition_order(manifest)
    manifest.cells.sort(key=lambda cell: (order[condition_label(cell.condition)], cell.length))
    samples, answers = _judged(folder, manifest, warn)
    return Run(folder, manifest, samples, answers, _cells(manifest, samples))


def _judged(
    folder: Path, manifest: journal.Manifest, warn: journal.Warn | None
) -> tuple[pd.DataFrame, list[int]]:
    """Each sample's best record, judged, and the integers that were read: an answer beats an
    error, a later record an earlier one.
    """
    spec = manifest.task_spec()
    answer, repeated = spec.answer, spec.params.get("repeated")
    places = {cell.key: place for place, cell in enumerate(manifest.cells)}
    rows: list[array[int]] = [array("i") for _ in manifest.cells]
    table = bytearray()
    error = OUTCOMES.index("error")
    outcomes = {name: place for place, name in enumerate(OUTCOMES)}
    answers: dict[int, int] = {}
    for record in journal.read_records(folder, warn):
        place = places.get((condition_label(record["condition"]), record["length"]))
        index, target = record["index"], record["target"]
        if place is None or index >= manifest.cells[place].samples:
            continue
        if (answer.type == "integer") != isinstance(target, int):
            continue
        verdict = judge_record(record, answer)
        row = _ROW.pack(
            place,
            index,
            outcomes[verdict.outcome],
            int(record["prompt_hash"], 16),
            answers.setdefault(verdict.answer, len(answers))
            if isinstance(verdict.answer, int)
            else -1,
            as_float(verdict.signed_error),
            collapsed(verdict, target, repeated),
            as_float(verdict.first_divergence),
            as_float(token_count(record.get("prompt_tokens"))),
            as_float(token_count(record.get("output_tokens"))),
        )
        known = rows[place]
        if index >= len(known):
            known.extend([-1] * (index + 1 - len(known)))
        at = known[index]
        if at < 0:
            known[index] = len(table) // _ROW.size
            table += row
        elif verdict.outcome != "error" or table[at * _ROW.size + _AT_OUTCOME] == error:
            table[at * _ROW.size : (at + 1) * _ROW.size] = row
    read = np.frombuffer(table, _DTYPE)
    ascending = sorted(answers)
    places_of = np.empty(len(answers) + 1, np.int32)
    places_of[-1] = -1  # where no integer was read
    places_of[[answers[answer] for answer in ascending]] = np.arange(len(answers))
    read["answer"] = places_of[read["answer"]]
    # the bytes themselves, not a copy of them
    return pd.DataFrame({name: read[name] for name in _COLUMNS}, copy=False), ascending


def as_float(value: object) -> float:
    """NaN for what is no number, infinity for one that no float is as large as."""
    if not isinstance(value, int | float):
        return _NAN
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


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
    means = means.reindex(every).replace([np.inf, -np.inf], np.nan)
    table = pd.DataFrame(
        {
            "model": manifest.model,
            "task": manifest.task,
            "task_version": manifest.task_version,
            **cell_columns(manifest),
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
    return table[[*RUN, *manifest.spec["axes"], *CELLS]]


def cell_columns(manifest: journal.Manifest) -> dict[str, list[Any]]:
    """Columns that say which cell a row is, one entry a cell of the manifest."""
    axes = manifest.spec["axes"]
    return {
        **{axis: [cell.condition[axis] for cell in manifest.cells] for axis in axes},
        "length": [cell.length for cell in manifest.cells],
    }


def _condition_order(manifest: journal.Manifest) -> dict[str, int]:
    """Condition label -> rank, by the order in which the task file gives the values."""
    axes = manifest.spec["axes"]

    def rank(condition: Condition) -> tuple[int, ...]:
        return tuple(list(axes[axis]["values"]).index(name) for axis, name in condition.items())

    conditions = {condition_label(cell.condition): cell.condition for cell in manifest.cells}
    ordered = sorted(conditions, key=lambda label: rank(conditions[label]))
    return {label: place for place, label in enumerate(ordered)}


def write_csv(run: Run) -> Path:
    """Writes `table.csv` into the run's folder."""
    return to_csv(run.cells, run.folder / journal.TABLE)


def to_csv(table: pd.DataFrame, path: Path) -> Path:
    """Writes `table`; what is not known is an empty field, texts are as `cells.csv_text` has them.

    Raises:
        errors.JournalError: the file cannot be written.
    """
    table = table.copy()
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = [csv_text(v) if isinstance(v, str) else v for v in table[name]]
    journal.replace_file(path, table.to_csv(index=False, lineterminator="\n").encode())
    return path


def incomplete(run: Run) -> int:
    """Samples of the run without a reply."""
    return int(run.cells[list(NOT_SCORED)].sum().sum())
