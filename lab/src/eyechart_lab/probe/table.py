"""The tables of a probe: `probe.csv`, and `changes.csv` with what is said of each shown measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from eyechart.harness.journal import replace_file
from eyechart_lab.probe.change import MeasureAtLength
from eyechart_lab.probe.folder import Measurement, read_manifest, read_measured
from eyechart_lab.probe.measures.catalogue import unit_of
from eyechart_lab.probe.passes import COUNTER
from eyechart_lab.probe.reading import ROUNDING
from eyechart_lab.probe.shown_measures import shown_changes

TABLE, CHANGES = "probe.csv", "changes.csv"
_OF_SAMPLE = ("tokens", "symbols", "index", "one", "rounding")
_WHERE = ("measure", "quantity", "unit", "length", "length_low", "length_high", "layer", "head")


def probe_rows(folder: Path) -> pd.DataFrame:
    """One row for each measure, quantity, condition, sample, layer and head of a probe.

    `one` is the value on the sample number `index` of its line, whose row has `symbols`, `rounding`
    how far rounding alone moves it. `layer` and `head` are empty where a quantity has none; axes,
    `symbols`, `length` and its bounds where it is one of the model.

    Raises:
        JournalError: there is no probe, or its files are damaged.
    """
    manifest = read_manifest(folder)
    axes = list(manifest["axes"])
    newest = {measured.key: measured for measured in read_measured(folder)}
    frame = pd.DataFrame(
        _rows(_largest(newest.values()), axes),
        columns=[*axes, *_WHERE, *_OF_SAMPLE],
        dtype=object,
    )
    for column, value in (("task_version", manifest["task_version"]), ("task", manifest["task"])):
        frame.insert(0, column, value)
    frame.insert(0, "model", manifest["model"])
    return frame.astype({"one": float, "rounding": float})


def probe_frame(rows: pd.DataFrame) -> pd.DataFrame:
    """`probe.csv`, from the rows of `probe_rows`: one row for each measure, quantity, condition,
    line, layer and head.

    `value` is the mean over the `n` samples, `low` and `high` the smallest and the largest one,
    `ci_low` and `ci_high` the 95 % interval of the mean, `rounding` how far rounding alone moves a
    value, `between_rows` the mean difference of two samples, `tokens` the mean number of tokens.
    """
    keys = [name for name in rows.columns if name not in _OF_SAMPLE]
    grouped = rows.groupby(keys, sort=False, dropna=False)
    ones = grouped["one"]
    found = pd.DataFrame(
        {
            "n": ones.count(),
            "tokens": grouped["tokens"].mean(),
            "value": ones.mean(),
            "low": ones.min(),
            "high": ones.max(),
        }
    )
    values = (MeasureAtLength(0, dict(enumerate(one))) for _, one in ones)
    floors = [(*(one.interval or (None, None)), one.between_rows) for one in values]
    found[["ci_low", "ci_high", "between_rows"]] = pd.DataFrame(
        floors, index=found.index, columns=["ci_low", "ci_high", "between_rows"], dtype=float
    )
    found.insert(len(found.columns) - 1, "rounding", grouped["rounding"].mean())
    return found.reset_index()


def _largest(measured: Iterable[Measurement]) -> Iterable[Measurement]:
    """The rows to summarise. Of maps that were fitted on the rows of a line, only the one with the
    most rows, which has the rows of the others as well; otherwise all rows of one sample.
    """
    fitted: dict[object, Measurement] = {}
    for one in measured:
        if one.measure != COUNTER:
            yield one
        elif (known := fitted.get((one.cell, one.length))) is None or known.index < one.index:
            fitted[one.cell, one.length] = one
    yield from fitted.values()


def _rows(measured: Iterable[Measurement], axes: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    for one in measured:
        of_model = not one.tokens
        line = (None, None, None) if of_model else one.line
        moved = {
            (quantity.removesuffix(ROUNDING), layer, head): value
            for quantity, layer, head, value in one.found
            if quantity.endswith(ROUNDING)
        }
        for quantity, layer, head, value in one.found:
            if quantity.endswith(ROUNDING):
                continue
            yield (
                *(one.condition.get(axis) for axis in axes),
                *(one.measure, quantity, unit_of(one.measure, quantity)),
                *(*line, layer, head),
                *((None, None) if of_model else (one.tokens, one.length)),
                *(one.index, value),
                moved.get((quantity, layer, head)),
            )


def write_tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Writes `probe.csv` and `changes.csv` in the folder of a probe; returns the rows that they are
    made from, and both.

    Raises:
        JournalError: there is no probe, or a table cannot be written.
    """
    rows = probe_rows(folder)
    frame, changes = probe_frame(rows), shown_changes(rows)
    for name, table in ((TABLE, frame), (CHANGES, changes)):
        text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        replace_file(folder / name, text.encode())
    return rows, frame, changes
