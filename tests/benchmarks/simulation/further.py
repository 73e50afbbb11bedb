"""How often one side is said to see further: where both are equal, and where one does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.further import length_difference
from tests.benchmarks.simulation.draws import CORRELATION, Setting, simulate_pair
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = (20, 40)
FACTORS = (1.25, 1.5, 2.0)
TOGETHER = ((0.0, 0.0), (CORRELATION, 0.0), (CORRELATION, 0.5))
"""Correlation of the answers to one row, and of the two sides' answers to one sample."""
POWER_RUNS = 0.2
"""Share of the runs for each power, which need not be known as well as an error rate."""
MOST_FALSE = 0.05


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    setting: Setting
    sides: float


def _said(case: Case, run: int, factor: float) -> int:
    """Who is said to see further, if the second's crossing is `factor` times shorter."""
    setting = case.setting
    second = setting.family.draw(setting.seed(run), factor)
    pair = simulate_pair(setting, run, second, sides=case.sides)
    return length_difference(*pair, Threshold()).further


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    setting = case.setting
    false = sum(_said(case, run, 1.0) != 0 for run in range(runs)) / runs
    power_runs = max(1, round(POWER_RUNS * runs))
    powers = {
        f"power_{factor}": sum(_said(case, run, factor) == 1 for run in range(power_runs))
        / power_runs
        for factor in FACTORS
        if setting.family.moves
    }
    return {
        "shape": setting.shape,
        "rows": setting.rows,
        "sides": case.sides,
        "samples": setting.samples,
        "false": false,
        **powers,
        "runs": runs,
        "missed": "false" if false > MOST_FALSE else "",
    }


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation and number of samples."""
    cases = [
        Case(Setting(shape, together, samples), sides)
        for shape, (together, sides), samples in product(shapes, TOGETHER, SAMPLES)
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "how often one side is said to see further, truly and falsely",
    (
        *SETTING[:2],
        Column("sides", "sides go together", ".1f"),
        SETTING[2],
        Column("false", "false", ".3f"),
        *(Column(f"power_{factor}", f"found: factor {factor:g}", ".2f") for factor in FACTORS),
        Column("missed", "missed"),
    ),
    rows,
)
