"""The table of a probe: `probe.csv`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from eyechart.harness.journal.files import replace_file
from eyechart.harness.satellites.probe.folder import Measured, read_manifest, read_measured
from eyechart.harness.satellites.probe.measures.catalogue import unit_of
from eyechart.harness.satellites.probe.passes import COUNTER

TABLE = "probe.csv"
_WHERE = ("measure", "quantity", "unit", "length", "length_low", "length_high", "layer", "head")


def probe_frame(folder: Path) -> pd.DataFrame:
    """One row for each measure, quantity, condition, line, layer and head of a probe.

    `value` is the mean over the `n` samples, `low` and `high` the smallest and the largest one,
    `tokens` the mean number of tokens. `layer` and `head` are empty where a quantity has none;
    axes, `length` and its bounds where it is one of the model.

    Raises:
        JournalError: there is no probe, or its files are damaged.
    """
    manifest = read_manifest(folder)
    axes = list(manifest["axes"])
    newest = {measured.key: measured for measured in read_measured(folder)}
    frame = pd.DataFrame(
        _rows(_largest(newest.values()), axes),
        columns=[*axes, *_WHERE, "tokens", "one"],
        dtype=object,
    )
    keys = [*axes, *_WHERE]
    grouped = frame.groupby(keys, sort=False, dropna=False)
    ones = grouped["one"]
    found = pd.DataFrame(
        {
            "n": ones.count(),
            "tokens": grouped["tokens"].mean(),
            "value": ones.mean(),
            "low": ones.min(),
            "high": ones.max(),
        }
    ).reset_index()
    for column, value in (("task_version", manifest["task_version"]), ("task", manifest["task"])):
        found.insert(0, column, value)
    found.insert(0, "model", manifest["model"])
    return found


def _largest(measured: Iterable[Measured]) -> Iterable[Measured]:
    """The rows to summarise. Of maps that were fitted on the rows of a line, only the one with the
    most rows, which has the rows of the others as well; otherwise all rows of one sample.
    """
    fitted: dict[object, Measured] = {}
    for one in measured:
        if one.measure != COUNTER:
            yield one
        elif (known := fitted.get((one.cell, one.length))) is None or known.index < one.index:
            fitted[one.cell, one.length] = one
    yield from fitted.values()


def _rows(measured: Iterable[Measured], axes: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    for one in measured:
        of_model = not one.tokens
        line = (None, None, None) if of_model else one.line
        for quantity, layer, head, value in one.found:
            yield (
                *(one.condition.get(axis) for axis in axes),
                *(one.measure, quantity, unit_of(one.measure, quantity)),
                *(*line, layer, head, None if of_model else one.tokens, value),
            )


def write_table(folder: Path) -> pd.DataFrame:
    """Writes `probe.csv` in the folder of a probe; returns its rows.

    Raises:
        JournalError: there is no probe, or the table cannot be written.
    """
    frame = probe_frame(folder)
    text = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    replace_file(folder / TABLE, text.encode())
    return frame
