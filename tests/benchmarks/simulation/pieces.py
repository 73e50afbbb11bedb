"""How often a model that surely passes with a row in pieces does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.at_length import LIKELY, at_length
from eyechart.harness.analysis.length.effective_length import effective_length
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.draws import CORRELATION, Setting, simulate
from tests.benchmarks.simulation.shapes import UNEVEN
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = (8, 16, 40)
LENGTH, PIECES = 200, (1, 2, 4, 10)
FALSE = 1 - LIKELY
NEAR = 2 ** (1 / 8)
"""The accuracy is that of the lengths around: up to so many times shorter or longer."""


def measure(setting: Setting, runs: int) -> Row:
    """One row of the table: for each number of pieces, sure claims and the false ones of them."""
    sure, false = np.zeros((2, len(PIECES)))
    for run in range(runs):
        truth, curve = simulate(setting, run)
        estimate = effective_length(curve)
        for place, pieces in enumerate(PIECES):
            length = LENGTH // pieces
            if at_length(estimate, length, pieces).verdict != "yes":
                continue
            near = slice(round(length / NEAR), round(length * NEAR) + 1)
            true = 1 - pieces * (1 - float(truth.accuracies[near].mean()))
            sure[place] += 1
            false[place] += true < THRESHOLD
    row: Row = {
        "shape": setting.shape,
        "rows": setting.rows,
        "samples": setting.samples,
        **{f"sure_{pieces}": int(sure[place]) for place, pieces in enumerate(PIECES)},
        **{f"false_{pieces}": int(false[place]) for place, pieces in enumerate(PIECES)},
        "runs": runs,
    }
    is_off = setting.shape not in UNEVEN and (false > FALSE * runs).any()
    return {**row, "missed": "false" if is_off else ""}


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation and number of samples."""
    settings = [Setting(*case) for case in product(shapes, (0.0, CORRELATION), SAMPLES)]
    yield from spread(partial(measure, runs=runs), settings)


SIMULATION = Simulation(
    "rows in pieces: sure claims, and the false ones",
    (
        *SETTING,
        *(
            Column(f"{what}_{pieces}", f"{what}, {pieces}")
            for pieces in PIECES
            for what in ("sure", "false")
        ),
        Column("missed", "missed"),
    ),
    rows,
)
