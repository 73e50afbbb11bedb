"""How often the interval of the accuracy at a length that somebody names holds the true one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.at_length import at_length
from eyechart.harness.analysis.length.effective_length import effective_length
from eyechart.harness.settings.judging import THRESHOLD
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
    held, widths = np.full((2, runs, len(LENGTHS)), np.nan)
    promised, kept = [], []
    for run in range(runs):
        truth, curve = simulate(setting, run)
        estimate = effective_length(curve)
        for place, length in enumerate(LENGTHS):
            found = at_length(estimate, length)
            low, high = found.accuracy_ci
            if low is None or high is None or found.reaches is None:
                continue  # no falling curve fits, and the lines do not certify this length
            near = slice(round(length / NEAR), round(length * NEAR) + 1)
            true = float(truth.accuracies[near].mean())
            held[run, place] = low <= true <= high
            widths[run, place] = high - low
            promised.append(found.reaches)
            kept.append(true >= THRESHOLD)
    off = calibration(np.array(promised), np.array(kept, float))
    is_drawn = setting.family.moves  # of one truth a probability cannot be checked
    given = np.isfinite(held).sum(axis=0)
    at_each = np.where(given > 0, np.nansum(held, axis=0) / np.maximum(given, 1), np.inf)
    row: Row = {
        "shape": setting.shape,
        "rows": setting.rows,
        "samples": setting.samples,
        "given": float(np.isfinite(held).mean()),
        "held": float(np.nanmean(held)) if given.any() else None,
        "least": float(at_each.min()),
        "at": LENGTHS[int(at_each.argmin())],
        "width": float(np.nanmedian(widths)) if given.any() else None,
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
    if setting.shape in UNEVEN:  # no falling curve, and mostly said so
        return
    if row["held"] is not None and float(row["held"]) < COVERED:
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
        Column("given", "given", ".3f"),
        Column("held", "interval holds", ".3f"),
        Column("least", "at the worst length", ".3f"),
        Column("at", "that length"),
        Column("width", "median width", ".2f"),
        Column("off", "P(≥ 85 %) is off by", ".3f"),
        Column("missed", "missed"),
    ),
    rows,
)
