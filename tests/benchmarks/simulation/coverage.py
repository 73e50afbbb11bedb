"""What the intervals of full runs cover, how wide they are, and how far estimates are off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.effective_length import effective_length
from tests.benchmarks.simulation.audited import NEAR
from tests.benchmarks.simulation.draws import (
    A_LINE,
    CORRELATION,
    Setting,
    error,
    holds,
    holds_what_it_says,
    simulate,
    true_tested_length,
    width,
)
from tests.benchmarks.simulation.shapes import UNEVEN
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = (20, 40, 100)
COVERED, TESTED_COVERED, SAID, FALSELY_SAID = 0.93, 0.93, 0.80, 0.05
NEAR_COVERED = 0.90
"""Wished for where the accuracy stays near the threshold."""
WIDEST, LOWEST = 2.0, 0.10


def measure(setting: Setting, runs: int) -> Row:
    """One row of the table."""
    held, said, tested, widths, errors = [], [], [], [], []
    for run in range(runs):
        truth, curve = simulate(setting, run)
        found = effective_length(curve)
        held.append(holds_what_it_says(found, truth))
        said.append(not found.one_threshold)
        tested.append(holds(found.tested_length_ci, true_tested_length(truth)))
        widths.append(width(found.length_ci))
        errors.append(error(found.fit.median, truth.crossing))
    median_width = float(np.median(widths))
    narrowest = 2 * float(np.quantile(np.abs(errors), 0.95))
    ratio = median_width / narrowest if setting.family.in_range and narrowest else None
    row: Row = {
        "shape": setting.shape,
        "rows": setting.rows,
        "samples": setting.samples,
        "held": float(np.mean(held)),
        "no_one_threshold": float(np.mean(said)),
        "width": median_width,
        "ratio": ratio,
        "low": float(np.mean(np.array(errors) < -A_LINE)),
        "tested_held": float(np.mean(tested)),
        "runs": runs,
    }
    return {**row, "missed": ", ".join(_missed(setting, row))}


def _missed(setting: Setting, row: Row) -> Iterator[str]:
    held, said, tested, low = (
        float(row[name] or 0) for name in ("held", "no_one_threshold", "tested_held", "low")
    )
    if held < (NEAR_COVERED if setting.shape in NEAR else COVERED) and (
        setting.shape not in UNEVEN or said < SAID
    ):
        yield "coverage"
    if setting.shape not in UNEVEN and said > FALSELY_SAID:
        yield "one threshold"
    if float(row["ratio"] or 0) > WIDEST and setting.shape not in NEAR:
        yield "width"
    if setting.shape == "flat 0.90" and setting.samples == min(SAMPLES) and low > LOWEST:
        yield "low"
    if tested < TESTED_COVERED:
        yield "tested length"


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation and number of samples."""
    settings = [Setting(*case) for case in product(shapes, (0.0, CORRELATION), SAMPLES)]
    yield from spread(partial(measure, runs=runs), settings)


SIMULATION = Simulation(
    "coverage of the effective length and the tested length in full runs",
    (
        *SETTING,
        Column("held", "interval holds", ".3f"),
        Column("no_one_threshold", "“no single threshold”", ".2f"),
        Column("width", "median width, octaves", ".2f"),
        Column("ratio", "width over the least", ".2f"),
        Column("low", "low by a line", ".2f"),
        Column("tested_held", "tested length: holds", ".3f"),
        Column("missed", "missed"),
    ),
    rows,
)
