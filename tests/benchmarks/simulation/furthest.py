"""How often the model that is said to see furthest with some probability truly does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.analysis.ranking.furthest import furthest
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.at_length import calibration
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    Setting,
    answers,
    full_curve,
    normal_field,
    sample_lengths,
)
from tests.benchmarks.simulation.shapes import SHAPES, UNEVEN
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = (5, 20, 40)
MODELS = 6
OCTAVES = 1.0
"""The crossings of the models of a table are drawn evenly over so many octaves."""
OFF = 0.10


def _table(setting: Setting, run: int) -> tuple[list[float | None], int]:
    """The probabilities of the models of one table, asked the same rows, and which is furthest."""
    rng = np.random.default_rng([setting.seed(run), 3])
    lengths = sample_lengths(setting.samples, run)
    curves, crossings = [], []
    for octaves in rng.uniform(0, OCTAVES, MODELS):
        truth = setting.family.draw(setting.seed(run), 2**octaves)
        field = normal_field(rng, setting.samples, setting.rows)
        curves.append(full_curve(answers(truth, lengths, field), lengths))
        crossings.append(truth.crossing)
    found = furthest([fit(curve, THRESHOLD) for curve in curves])
    return found, int(np.argmax(crossings))


def measure(setting: Setting, runs: int) -> Row:
    """One row of the table."""
    promised: list[float] = []
    kept: list[bool] = []
    first, right = [], []
    for run in range(runs):
        found, best = _table(setting, run)
        known = {place: one for place, one in enumerate(found) if one is not None}
        promised += known.values()
        kept += [place == best for place in known]
        if known:
            likeliest = max(known, key=known.__getitem__)
            first.append(known[likeliest])
            right.append(likeliest == best)
    off = calibration(np.array(promised), np.array(kept, float))
    return {
        "shape": setting.shape,
        "rows": setting.rows,
        "samples": setting.samples,
        "said": float(np.mean(first)),
        "true": float(np.mean(right)),
        "off": off,
        "open": 1 - len(promised) / (MODELS * runs),
        "runs": runs,
        "missed": "probability" if off > OFF and setting.shape not in UNEVEN else "",
    }


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape whose truth is drawn, correlation and number of samples."""
    moving = [shape for shape in shapes if SHAPES[shape].moves]
    settings = [Setting(*case) for case in product(moving, (0.0, CORRELATION), SAMPLES)]
    yield from spread(partial(measure, runs=runs), settings)


SIMULATION = Simulation(
    f"the probability to see furthest of {MODELS} models, whose lengths lie within an octave",
    (
        *SETTING,
        Column("said", "P of the likeliest", ".2f"),
        Column("true", "it is", ".2f"),
        Column("off", "P is off by", ".3f"),
        Column("open", "open", ".2f"),
        Column("missed", "missed"),
    ),
    rows,
)
