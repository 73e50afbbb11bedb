"""How often the interval of the accuracy at a length that somebody names holds the true one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.at_length import at_length
from eyechart.harness.analysis.curve import THRESHOLD
from eyechart.harness.analysis.effective_length import effective_length
from tests.benchmarks.simulation.draws import CORRELATION, Setting, simulate
from tests.benchmarks.simulation.shapes import UNEVEN
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = (20, 40, 100)
LENGTHS = (10, 20, 50, 100, 200, 400)
NEAR = 2 ** (1 / 8)
"""The accuracy is that of the lengths around: up to so many times shorter or longer."""
COVERED, OFF = 0.93, 0.10


def measure(setting: Setting, runs: int) -> Row:
    """One row of the table: all lengths together, and the length where the interval holds least."""
    held = np.zeros((runs, len(LENGTHS)))
    widths = np.zeros((runs, len(LENGTHS)))
    promised, kept = [], []
    for run in range(runs):
        truth, curve = simulate(setting, run)
        estimate = effective_length(curve)
        for place, length in enumerate(LENGTHS):
            found = at_length(estimate, length)
            low, high = found.accuracy_ci
            assert low is not None
            assert high is not None
            assert found.reaches is not None
            near = slice(round(length / NEAR), round(length * NEAR) + 1)
            true = float(truth.accuracies[near].mean())
            held[run, place] = low <= true <= high
            widths[run, place] = high - low
            promised.append(found.reaches)
            kept.append(true >= THRESHOLD)
    off = calibration(np.array(promised), np.array(kept, float))
    is_drawn = setting.family.moves  # of one truth a probability cannot be checked
    row: Row = {
        "shape": setting.shape,
        "rows": setting.rows,
        "samples": setting.samples,
        "held": float(held.mean()),
        "least": float(held.mean(axis=0).min()),
        "at": LENGTHS[int(held.mean(axis=0).argmin())],
        "width": float(np.median(widths)),
        "off": off if is_drawn else None,
        "runs": runs,
    }
    return {**row, "missed": ", ".join(_missed(setting, row))}


def calibration(promised: np.ndarray, kept: np.ndarray) -> float:
    """Mean distance of probabilities from how often they come true, in tenths of probability."""
    tenths = np.minimum((promised * 10).astype(int), 9)
    counts = np.bincount(tenths, minlength=10)
    gaps = np.abs(np.bincount(tenths, promised - kept, minlength=10))
    return float(gaps.sum() / counts.sum())


def _missed(setting: Setting, row: Row) -> Iterator[str]:
    if setting.shape in UNEVEN:  # no falling curve, and said so
        return
    if float(row["held"] or 0) < COVERED:
        yield "coverage"
    if float(row["off"] or 0) > OFF:
        yield "probability"


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation and number of samples."""
    settings = [Setting(*case) for case in product(shapes, (0.0, CORRELATION), SAMPLES)]
    yield from spread(partial(measure, runs=runs), settings)


SIMULATION = Simulation(
    "coverage of the accuracy at a named length in full runs",
    (
        *SETTING,
        Column("held", "interval holds", ".3f"),
        Column("least", "at the worst length", ".3f"),
        Column("at", "that length"),
        Column("width", "median width", ".2f"),
        Column("off", "P(≥ 85 %) is off by", ".3f"),
        Column("missed", "missed"),
    ),
    rows,
)
