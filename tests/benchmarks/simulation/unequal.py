"""Sides whose curves have other shapes and equal effective lengths: each statement that one sees
further is false, and each that they differ is true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.comparison.paired_curves import label_test
from eyechart.harness.analysis.length.curve import SIGNIFICANT, Curve, Floats
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.audited import MORE
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    Setting,
    answers,
    full_curve,
    normal_field,
    sample_lengths,
)
from tests.benchmarks.simulation.shapes import ALL, SHAPES, WEIBULL, Shape
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread
from tests.curves import length_difference

SAMPLES = (20, 100)
MOST_FALSE = 0.05
FAILING = 0.12
"""Share of the rows on which the side `rows fail` is always wrong."""


def _window(crossing: float, _: np.random.Generator) -> Floats:
    """All is right within it, and nothing beyond."""
    return np.where(crossing > ALL, 1.0, 0.0)


def _lapse_grows(crossing: float, _: np.random.Generator) -> Floats:
    """Accuracy that falls evenly with log length, from 1 at 5 symbols."""
    errors = (1 - THRESHOLD) * np.log(np.maximum(ALL, 5) / 5) / math.log(crossing / 5)
    accuracies: Floats = np.clip(1 - errors, 0, 1)
    return accuracies


def _rows_fail(crossing: float, _: np.random.Generator) -> Floats:
    """The accuracy on the other rows: with the failing ones it falls to the threshold there."""
    odds = (1 - FAILING) / THRESHOLD - 1
    return 1 / (1 + odds * (ALL / crossing) ** 4)


KINDS = {
    **{name: SHAPES[name] for name in ("slope 1.5", "slope 4", "step", "two-stage")},
    **WEIBULL,
    "window": Shape(_window),
    "lapse grows": Shape(_lapse_grows),
    "rows fail": Shape(_rows_fail),
    **MORE,
}
PAIRS = (
    ("rows fail", "window"),
    ("rows fail", "slope 4"),
    ("lapse grows", "window"),
    ("lapse grows", "slope 4"),
    ("Weibull 0.5", "Weibull 3"),
    ("step", "slope 1.5"),
    ("two-stage", "window"),
    *product(("plateau 86 %", "plateau 88 %", "shoulder"), ("slope 4", "Weibull 3", "Weibull 1")),
    ("plateau 84 %", "slope 4"),
    *product(("recorded", "heavy tails", "period 5", "four templates"), ("slope 4", "Weibull 1")),
    ("plateau 86 %", "recorded"),
    ("shoulder", "period 5"),
    ("slope 1", "cliff"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    first: str
    second: str
    rows: float
    samples: int

    @property
    def setting(self) -> Setting:
        """The same as for equal shapes."""
        return Setting(f"{self.first}, {self.second}", self.rows, self.samples)


def draw_pair(case: Case, run: int, factor: float = 1.0, rows: int = 0) -> tuple[Curve, Curve]:
    """Two curves on the same samples, of `rows` rows if not those of the case; the second's
    crossing is `factor` times shorter.
    """
    count, seed = rows or case.samples, case.setting.seed(run)
    lengths, rng = sample_lengths(count, run), np.random.default_rng([seed, 1])
    curves = []
    for kind, times in ((case.first, 1.0), (case.second, factor)):
        truth = KINDS[kind].draw(seed, times)
        correct = answers(truth, lengths, normal_field(rng, count, case.rows))
        failing = rng.random((count, 1)) < (FAILING if kind == "rows fail" else 0)
        curves.append(full_curve(np.where(failing, 0.0, correct), lengths))
    return curves[0], curves[1]


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    pairs = [draw_pair(case, run) for run in range(runs)]
    further = sum(length_difference(*pair, THRESHOLD).further != 0 for pair in pairs) / runs
    differ = sum(label_test([pair])[0] < SIGNIFICANT for pair in pairs) / runs
    return {
        "shape": case.setting.shape,
        "rows": case.rows,
        "samples": case.samples,
        "further": further,
        "differ": differ,
        "missed": "further" if further > MOST_FALSE else "",
    }


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each pair of shapes, correlation and number of samples."""
    cases = [
        Case(*pair, together, samples)
        for pair, together, samples in product(PAIRS, (0.0, CORRELATION), SAMPLES)
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "what is said of sides with other shapes and equal effective lengths",
    (
        *SETTING,
        Column("further", "“is right further”, falsely", ".3f"),
        Column("differ", "“differ”, truly", ".2f"),
        Column("missed", "missed"),
    ),
    rows,
)
