"""What the intervals of forced choices cover, where the accuracy of guesses is known or ignored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.coverage import COVERED
from tests.benchmarks.simulation.draws import (
    LINES,
    SHORTEST,
    Setting,
    answers,
    full_curve,
    holds,
    normal_field,
    sample_lengths,
    width,
)
from tests.benchmarks.simulation.shapes import LONGEST, Truth
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread

CHOSEN = ("slope 2", "slope 4", "lapse 3 %", "step", "flat 0.95", "flat 0.80")
"""Shapes of what is seen; a sample that is not seen is guessed."""
OPTIONS = (2, 5, 11)
SAMPLES = (20, 40, 100)


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    setting: Setting
    options: int

    def draw(self, run: int) -> tuple[float, Curve]:
        """The length where the accuracy, guesses among it, falls below the threshold; the curve."""
        seed, chance = self.setting.seed(run), 1 / self.options
        seen = self.setting.family.draw(seed)
        accuracies = chance + (1 - chance) * seen.accuracies
        lengths = sample_lengths(self.setting.samples, run)
        field = normal_field(
            np.random.default_rng([seed, 1]), self.setting.samples, self.setting.rows
        )
        correct = answers(Truth(accuracies, seen.crossing), lengths, field)
        curve = full_curve(correct, lengths)
        return crossing(accuracies), replace(curve, guessed=np.full(len(LINES), chance))


def crossing(accuracies: Floats) -> float:
    """The length where falling accuracies fall below the threshold; infinite where they never do,
    and 0 where all are below.
    """
    below = np.flatnonzero(accuracies[SHORTEST:] < THRESHOLD) + SHORTEST
    if not len(below) or below[0] == SHORTEST:
        return 0.0 if len(below) else math.inf
    before, behind = accuracies[below[0] - 1], accuracies[below[0]]
    return float(below[0] - 1 + (before - THRESHOLD) / (before - behind))


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    held: dict[str, list[bool]] = {"known": [], "ignored": []}
    widths: dict[str, list[float]] = {"known": [], "ignored": []}
    for run in range(runs):
        truth, curve = case.draw(run)
        for name, samples in (("known", curve), ("ignored", replace(curve, guessed=None))):
            interval = fit(samples, THRESHOLD).interval()
            held[name].append(holds(interval, truth, (SHORTEST, LONGEST)))
            widths[name].append(width(interval))
    row: dict[str, str | int | float] = {
        "shape": case.setting.shape,
        "options": str(case.options),
        "rows": case.setting.rows,
        "samples": case.setting.samples,
        "runs": runs,
    }
    for name, of_runs in held.items():
        row[f"{name}_held"] = float(np.mean(of_runs))
        row[f"{name}_width"] = float(np.median(widths[name]))
    return {**row, "missed": "coverage" if float(np.mean(held["known"])) < COVERED else ""}


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, number of options, correlation and number of samples."""
    cases = [
        Case(Setting(shape, together, samples), options)
        for shape, options, together, samples in product(
            [shape for shape in CHOSEN if shape in shapes], OPTIONS, (0.0,), SAMPLES
        )
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "coverage of the effective length in forced choices, where the accuracy of guesses is known",
    (
        Column("shape", "what is seen"),
        Column("options", "options"),
        Column("samples", "samples of a line"),
        Column("known_held", "interval holds", ".3f"),
        Column("known_width", "median width, octaves", ".2f"),
        Column("ignored_held", "holds, guesses ignored", ".3f"),
        Column("ignored_width", "width, guesses ignored", ".2f"),
        Column("missed", "missed"),
    ),
    rows,
)
