"""How often one side is said to be right further: where both are equal, and where one does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from eyechart.harness.analysis.comparison.paired_curves import label_test
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.audited import ALIKE
from tests.benchmarks.simulation.draws import CORRELATION, Setting, simulate_pair
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread
from tests.curves import length_difference

SAMPLES = (20, 40)
FACTORS = (1.25, 1.5, 2.0)
TOGETHER = ((0.0, 0.0), (CORRELATION, 0.0), (CORRELATION, 0.5))
"""Correlation of the answers to one row, and of the two sides' answers to one sample."""
POWER_RUNS = 0.2
"""Share of the runs for each power, which need not be known as well as an error rate."""
MOST_FALSE = 0.05
GENTLE = ("Weibull 1", "Weibull 3")
"""Shapes of the power that is wanted: 50 % for a factor of 2 with 20 samples a line."""
_ERRORS = 3
"""Standard errors above it that count as missed: a test that holds its level exactly is above it in
half of the rows."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    setting: Setting
    sides: float


def _said(case: Case, run: int, factor: float) -> tuple[int, bool]:
    """Who is said to be right further, if the second's crossing is `factor` times shorter; and
    whether the two are said to differ.
    """
    setting = case.setting
    second = setting.family.draw(setting.seed(run), factor)
    pair = simulate_pair(setting, run, second, sides=case.sides)
    differ = label_test([pair])[0] < SIGNIFICANT
    return length_difference(*pair, THRESHOLD).further, differ


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    setting = case.setting
    equal = [_said(case, run, 1.0) for run in range(runs)]
    false = sum(further != 0 for further, _ in equal) / runs
    false_differ = sum(differ for _, differ in equal) / runs
    power_runs = max(1, round(POWER_RUNS * runs))
    powers: dict[str, float] = {}
    for factor in FACTORS if setting.family.moves else ():
        said = [_said(case, run, factor) for run in range(power_runs)]
        powers[f"power_{factor}"] = sum(further == 1 for further, _ in said) / power_runs
        powers[f"differ_{factor}"] = sum(differ for _, differ in said) / power_runs
    return {
        "shape": setting.shape,
        "rows": setting.rows,
        "sides": case.sides,
        "samples": setting.samples,
        "false": false,
        "false_differ": false_differ,
        **powers,
        "runs": runs,
        "missed": ", ".join(
            name
            for name, share in (("further", false), ("differ", false_differ))
            if share > MOST_FALSE + _ERRORS * math.sqrt(MOST_FALSE / runs)
        ),
    }


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation and number of samples, also of two Weibull functions."""
    some = [shape for shape in shapes if shape not in ALIKE]
    cases = [
        Case(Setting(shape, together, samples), sides)
        for shape, (together, sides), samples in product((*some, *GENTLE), TOGETHER, SAMPLES)
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "how often one side is said to be right further, truly and falsely",
    (
        *SETTING[:2],
        Column("sides", "sides go together", ".1f"),
        SETTING[2],
        Column("false", "false", ".3f"),
        *(Column(f"power_{factor}", f"found: factor {factor:g}", ".2f") for factor in FACTORS),
        Column("false_differ", "“differ”: false", ".3f"),
        *(Column(f"differ_{factor}", f"found: factor {factor:g}", ".2f") for factor in FACTORS),
        Column("missed", "missed"),
    ),
    rows,
)
