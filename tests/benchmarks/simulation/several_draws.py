"""What intervals cover where each row is asked several times, and whether the variance is split
without bias.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
from scipy.special import ndtr, ndtri

from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.analysis.length.effective_length import effective_length
from eyechart.harness.analysis.samples.draws import ScoredRows, accuracy_interval, split_of
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    LINES,
    family,
    holds_what_it_says,
    normal_field,
    sample_lengths,
    width,
)
from tests.benchmarks.simulation.shapes import Truth
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread

CURVES = ("slope 1.5", "slope 4", "flat 0.90", "plateau 86 %", "recorded", "heavy tails")
SAMPLES = (20, 40)
DRAWS = (1, 3, 8)
ALIKE = (0.0, 0.5, 0.95)
"""Correlation of two draws of a row: 0 where only chance decides, 1 where only the row does."""
_NODES = np.linspace(-8, 8, 401)
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
Case = tuple[str, float, float, int, int]
"""Shape, correlation of draws, correlation of a row at two lengths, draws, and samples."""


def drawn(case: Case, run: int) -> tuple[Truth, Curve, Floats]:
    """The truth of a run, its curve, and the true accuracy of each sample: (samples, lines)."""
    shape, alike, rows, draws, samples = case
    seed = zlib.crc32(f"{case}|{run}".encode())
    truth = family(shape).draw(seed)
    lengths = sample_lengths(samples, run)
    rng = np.random.default_rng([seed, 1])
    row = normal_field(rng, samples, rows)[..., None]
    chance = rng.standard_normal((samples, len(LINES), draws))
    accuracies = truth.at(lengths)
    right = math.sqrt(alike) * row + math.sqrt(1 - alike) * chance < ndtri(accuracies)[..., None]
    replies = np.full(lengths.shape, float(draws))
    curve = Curve(
        LINES,
        right.mean(axis=-1),
        np.ones_like(replies),
        lengths.astype(float),
        draws=replies if draws > 1 else None,
    )
    return truth, curve, accuracies


def true_row_variance(accuracies: Floats, alike: float) -> float:
    """The expected variance between rows with these mean accuracies, of which each belongs to one
    length.
    """
    limits = ndtri(accuracies)[:, None]
    of_row = ndtr((limits - math.sqrt(alike) * _NODES) / math.sqrt(1 - alike))
    within_a_length = (of_row**2) @ _WEIGHTS - accuracies**2
    return float(within_a_length.mean() + accuracies.var(ddof=1))


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    shape, alike, rows, draws, samples = case
    held, widths, of_lines, line_widths, bias = [], [], [], [], []
    for run in range(runs):
        truth, curve, accuracies = drawn(case, run)
        found = effective_length(curve)
        held.append(holds_what_it_says(found, truth))
        widths.append(width(found.length_ci))
        for place in range(len(LINES)):
            means = curve.correct[:, place]
            of_line = ScoredRows(
                np.zeros(samples, np.int64), np.full(samples, float(draws)), means * draws
            )
            interval = accuracy_interval(of_line)
            true = accuracies[:, place]
            if interval is not None and 0.02 < true.mean() < 0.98:
                of_lines.append(interval[0] <= true.mean() <= interval[1])
                line_widths.append(interval[1] - interval[0])
            if (split := split_of(of_line)) is not None:
                bias.append(split.row - true_row_variance(true, alike))
    return {
        "shape": shape,
        "alike": alike,
        "rows": rows,
        "draws": draws,
        "samples": samples,
        "held": float(np.mean(held)),
        "width": float(np.median(widths)),
        "line_held": float(np.mean(of_lines)) if of_lines else None,
        "line_width": float(np.median(line_widths)) if line_widths else None,
        "bias": float(np.mean(bias)) if bias else None,
        "runs": runs,
    }


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, both correlations, number of draws and number of samples."""
    wanted = [shape for shape in CURVES if shape in shapes]
    cases = [
        case
        for case in product(wanted, ALIKE, (0.0, CORRELATION), DRAWS, SAMPLES)
        if case[3] > 1 or case[1] == ALIKE[1]  # one draw says nothing of others
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "coverage of the effective length and of the accuracy of a line where each row is asked "
    "several times, and the bias of the variance between rows",
    (
        Column("shape", "shape"),
        Column("alike", "draws alike", ".2f"),
        Column("rows", "rows go together", ".1f"),
        Column("draws", "draws"),
        Column("samples", "samples of a line"),
        Column("held", "interval holds", ".3f"),
        Column("width", "median width, octaves", ".2f"),
        Column("line_held", "accuracy holds", ".3f"),
        Column("line_width", "its median width", ".2f"),
        Column("bias", "bias of row variance", "+.4f"),
    ),
    rows,
)
