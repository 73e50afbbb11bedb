"""How often intervals hold where few lengths are asked, or the crossing is near their ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Curve
from eyechart.harness.analysis.length.effective_length import crossing
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line, fifth_around, line_start, lines_of
from tests.benchmarks.simulation.audited import ALIKE
from tests.benchmarks.simulation.coverage import COVERED, SAMPLES
from tests.benchmarks.simulation.draws import LINES, Setting, answers, holds, rows_field
from tests.benchmarks.simulation.shapes import UNEVEN, Truth
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread

ASKED: Mapping[str, Sequence[Line]] = {
    "13 lines, 5 to 500": LINES,
    "3 lines, 22 to 50": lines_of((22, 33, 50), "bands"),
    "1 line, 26 to 38": (fifth_around(32),),
    "exactly 10, 20, 40, 80": lines_of((10, 20, 40, 80), "none"),
    "exactly 5, 50, 500": lines_of((5, 50, 500), "none"),
    "exactly 36 to 43": lines_of(range(36, 44), "none"),
    "exactly 40 and 41": lines_of((40, 41), "none"),
    "a row at each of 24 to 83": lines_of(range(24, 84), "none"),
    "a row at each 7th of 10 to 430": lines_of(range(10, 431, 7), "none"),
}
SCATTERED = tuple(name for name in ASKED if name.startswith("a row"))
"""Rows of somebody's data, whose lengths all differ."""
NEAR = math.sqrt(2)
"""A crossing is near an end of the lengths asked where it is at most this factor from it."""
ZONES = ("below", "shortest", "within", "longest", "above")
LEFT_OUT = (*UNEVEN, *ALIKE, "period 5", "guess 20 %")
"""Uneven shapes, and those that are much like others."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    setting: Setting
    asked: str
    """Which of `ASKED`."""

    @property
    def lines(self) -> Sequence[Line]:
        """The lines that are asked."""
        return ASKED[self.asked]

    @property
    def ends(self) -> tuple[int, int]:
        """The shortest and the longest length asked."""
        return self.lines[0].low, self.lines[-1].high

    def crossings(self, zone: str) -> tuple[float, float]:
        """The crossings of a zone lie between these."""
        shortest, longest = self.ends
        return {
            "below": (shortest / NEAR, shortest),
            "shortest": (shortest, min(shortest * NEAR, longest)),
            "within": (shortest, longest),
            "longest": (max(longest / NEAR, shortest), longest),
            "above": (longest, longest * NEAR),
        }[zone]

    def draw(self, run: int, zone: str) -> tuple[Truth, Curve]:
        """The truth and the curve of one run whose crossing lies in `zone`."""
        seed = self.setting.seed(run)
        rng = np.random.default_rng([seed, ZONES.index(zone)])
        family = self.setting.family
        drawn = math.exp(rng.uniform(*np.log(self.crossings(zone))))
        truth = family.truth(drawn, seed, rng)
        start = line_start(run, "simulation")
        lengths: npt.NDArray[np.int64] = np.array(
            [
                [line.length_of(index, start) for line in self.lines]
                for index in range(self.setting.samples)
            ]
        )
        field = rows_field(rng, lengths.shape, self.setting.rows)
        if own_rows := self.asked in SCATTERED:
            correct = answers(truth, lengths.T, field.T).T
        else:
            correct = answers(truth, lengths, field)
        return truth, Curve(
            tuple(self.lines),
            correct,
            np.ones_like(correct),
            lengths.astype(float),
            own_rows=own_rows,
        )


def zones(shape: str) -> Sequence[str]:
    """The zones in which the crossing of a shape can lie. A flat accuracy crosses the threshold
    above or below all lengths.
    """
    fixed = Setting(shape, 0.0, 1).family.fixed
    return ZONES if fixed is None else ("below",) if fixed == 0 else ("above",)


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    shares: dict[str, float] = {}
    for zone in zones(case.setting.shape):
        held = []
        for run in range(runs):
            truth, curve = case.draw(run, zone)
            _, interval = crossing(curve, fit(curve, THRESHOLD), THRESHOLD)
            held.append(holds(interval, truth.crossing, case.ends))
        shares[zone] = float(np.mean(held))
    return {
        "shape": case.setting.shape,
        "lines": case.asked,
        "samples": case.setting.samples,
        **shares,
        "runs": runs,
        "missed": ", ".join(zone for zone, share in shares.items() if share < COVERED),
    }


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, lines and number of samples."""
    some = [shape for shape in shapes if shape not in LEFT_OUT]
    cases = [
        Case(Setting(shape, 0.0, samples), asked)
        for shape, asked in product(some, ASKED)
        for samples in ((1,) if asked in SCATTERED else SAMPLES)
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "how often intervals hold where few lengths are asked, or the crossing is near their ends",
    (
        Column("shape", "shape"),
        Column("lines", "asked"),
        Column("samples", "samples of a line"),
        Column("below", "crossing below the shortest", ".3f"),
        Column("shortest", "above the shortest", ".3f"),
        Column("within", "within", ".3f"),
        Column("longest", "below the longest", ".3f"),
        Column("above", "above the longest", ".3f"),
        Column("missed", "missed"),
    ),
    rows,
)
