"""How often many releases of an unchanged model are called worse than one baseline, whose rows are
asked once or several times. The luck of its replies is in every comparison with it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.comparison.gate import MANY_ALARMS, unlucky
from eyechart.harness.analysis.length.curve import (
    NEARLY,
    RESAMPLES,
    SIGNIFICANT,
    Floats,
    areas_under,
)
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    LINES,
    answers,
    family,
    normal_field,
    sample_lengths,
)
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

CURVES = ("slope 1.5", "slope 4", "plateau 86 %", "recorded")
SAMPLES = (20, 40)
DRAWS = (1, 2, 4, 8)
RELEASES = 200
"""Runs that are compared with each baseline, one reply a row."""
Case = tuple[str, float, int, int]
"""Shape, correlation of a reply at two lengths, draws of the baseline, and samples."""
_NOMINAL = np.array([line.length for line in LINES], float)


def differences(case: Case, run: int) -> Floats:
    """By how much each row of a baseline raises its area above that of each release: shape
    (RELEASES, samples).
    """
    shape, rows, draws, samples = case
    seed = zlib.crc32(f"{case}|{run}".encode())
    truth, lengths = family(shape).draw(seed), sample_lengths(samples, run)
    rng = np.random.default_rng([seed, 1])
    of_line = areas_under(_NOMINAL, np.eye(len(LINES))) / samples
    replies = np.array(
        [
            answers(truth, lengths, normal_field(rng, samples, rows)) @ of_line
            for _ in range(draws + RELEASES)
        ]
    )
    found: Floats = replies[:draws].mean(axis=0) - replies[draws:]
    return found


def are_worse(rows: Floats) -> Floats:
    """Which releases `label_test` calls worse: shape (RELEASES,). All have the same exchanges of
    labels, which is faster.
    """
    signs = np.random.default_rng(0).integers(0, 2, (RESAMPLES, rows.shape[1])) * 2.0 - 1
    observed = rows.sum(axis=1)
    larger = (abs(signs @ rows.T) >= abs(observed) - NEARLY).sum(axis=0)
    worse: Floats = ((1 + larger) / (1 + RESAMPLES) < SIGNIFICANT) & (observed > 0)
    return worse


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    shape, rows, draws, samples = case
    alarms = np.array([are_worse(differences(case, run)).mean() for run in range(runs)])
    return {
        "shape": shape,
        "rows": rows,
        "draws": draws,
        "samples": samples,
        "alarms": float(alarms.mean()),
        "none": float((alarms == 0).mean()),
        "many": float((alarms > MANY_ALARMS).mean()),
        "expected": unlucky(draws),
        "most": float(alarms.max()),
    }


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation, number of draws and of samples."""
    cases = list(product(CURVES, (0.0, CORRELATION), DRAWS, SAMPLES))
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    f"how often {RELEASES} unchanged runs of one reply a row are called worse than a baseline",
    (
        *SETTING[:2],
        Column("draws", "draws of the baseline", ".0f"),
        SETTING[2],
        Column("alarms", "“worse”, of all", ".3f"),
        Column("none", "baselines without any", ".2f"),
        Column("many", "with more than 10 %", ".3f"),
        Column("expected", "by the formula", ".3f"),
        Column("most", "the worst", ".2f"),
    ),
    rows,
)
