"""What `bench compare` calls equal sides, and sides whose areas or lengths differ by exactly the
margin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.comparison.comparison import Comparison, ConditionComparison
from eyechart.harness.analysis.comparison.paired_curves import compare_pairs, holm
from eyechart.harness.analysis.length.curve import RESAMPLES, Curve, areas_under
from eyechart.harness.analysis.length.tokens_of_row import PairTokens
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Condition
from tests.benchmarks.simulation.audited import ALIKE
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    LINES,
    Setting,
    line_accuracies,
    simulate_pair,
)
from tests.benchmarks.simulation.shapes import Truth
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread
from tests.curves import length_difference

SAMPLES = (20, 40, 100)
MARGIN = 0.05
"""The default of `bench compare --margin`."""
FACTOR = 1.5
"""A margin as a factor of length, which is held against the effective lengths."""
TOGETHER = ((0.0, 0.0), (CORRELATION, 0.5))
"""Correlation of the answers to one row, and of the two sides' answers to one sample."""
MOST_FALSE = 0.05
_FEW = 10


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    setting: Setting
    sides: float


def compare(
    first: Curve, second: Curve, *, chosen: tuple[Curve, Curve] | None = None
) -> Comparison:
    """The comparison of two curves on the same samples, as `bench compare` makes it of two runs.
    `chosen` are all samples of either side, where these are adaptive.

    Only the intervals of the single lines have fewer draws: no verdict goes by them.
    """
    threshold, pair = THRESHOLD, (first, second)
    paired = replace(compare_pairs(pair, resamples=_FEW), resamples=RESAMPLES)
    p_values = tuple(holm([line.p for line in paired.lengths]))
    length = length_difference(*(chosen or pair), threshold)
    one = ConditionComparison(
        Condition(),
        paired,
        p_values,
        same_targets=True,
        control=False,
        length=length,
        tokens=PairTokens(None, None),
        adaptive=chosen is not None,
    )
    return Comparison(
        task="simulation",
        task_version=1,
        unit="symbols",
        model=None,
        first="first",
        second="second",
        conditions=(one,),
        length=length,
    )


def lower(truth: Truth, margin: float) -> Truth:
    """A model whose area is smaller by `margin`: its accuracy is the same share of that of `truth`
    at all lengths.
    """
    nominal = np.array([line.length for line in LINES], float)
    area = float(areas_under(nominal, line_accuracies(truth)[None])[0])
    return Truth(truth.accuracies * (1 - margin / area), truth.crossing)


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    setting = case.setting
    equal, differing = Counter[str](), Counter[str]()
    alike, shorter = Counter[str](), Counter[str]()
    for run in range(runs):
        seed = setting.seed(run)
        truth = setting.family.draw(seed)
        compared = compare(*simulate_pair(setting, run, truth, sides=case.sides))
        equal[compared.change(MARGIN)] += 1
        alike[compared.change(f"{FACTOR}x")] += 1
        pair = simulate_pair(setting, run, lower(truth, MARGIN), sides=case.sides)
        differing[compare(*pair).change(MARGIN)] += 1
        if setting.family.moves:
            second = setting.family.draw(seed, FACTOR)
            pair = simulate_pair(setting, run, second, sides=case.sides)
            shorter[compare(*pair).change(f"{FACTOR}x")] += 1
    false = {
        "worse": equal["worse"] / runs,
        "better": equal["better"] / runs,
        "false_equivalent": differing["equivalent"] / runs,
        "false_by_factor": shorter["equivalent"] / runs,
    }
    return {
        "shape": setting.shape,
        "rows": setting.rows,
        "sides": case.sides,
        "samples": setting.samples,
        **false,
        "equivalent": equal["equivalent"] / runs,
        "by_factor": alike["equivalent"] / runs,
        "runs": runs,
        "missed": ", ".join(
            name.replace("_", " ") for name, share in false.items() if share > MOST_FALSE
        ),
    }


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation and number of samples."""
    some = [shape for shape in shapes if shape not in ALIKE]
    cases = [
        Case(Setting(shape, together, samples), sides)
        for shape, (together, sides), samples in product(some, TOGETHER, SAMPLES)
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "what is said of equal sides, and of sides that differ by exactly the margin",
    (
        *SETTING[:2],
        Column("sides", "sides go together", ".1f"),
        SETTING[2],
        Column("worse", "equal: “worse”", ".3f"),
        Column("better", "equal: “better”", ".3f"),
        Column("equivalent", "equal: “equivalent”", ".2f"),
        Column("false_equivalent", "differ by the margin: “equivalent”", ".3f"),
        Column("by_factor", f"equal: “equivalent” by {FACTOR}x", ".2f"),
        Column("false_by_factor", f"lengths differ by {FACTOR}: “equivalent” by it", ".3f"),
        Column("missed", "missed"),
    ),
    rows,
)
