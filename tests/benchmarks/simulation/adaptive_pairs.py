"""What `bench compare` says of two adaptive runs with a factor of length as margin: of sides that
are right equally far, and of sides whose lengths differ by the margin or by its square.

A run of a row, six adaptive runs, takes 1 to 20 s on one core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.adaptive.adaptive import Aim
from eyechart.harness.analysis.comparison.comparison import Comparison
from tests.benchmarks.simulation.adaptive import asked, counts_at_the_end
from tests.benchmarks.simulation.draws import Setting, simulate_pair
from tests.benchmarks.simulation.equivalence import FACTOR, MOST_FALSE, TOGETHER, compare
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

MOST_SAMPLES = 200
AIM = Aim(0.75, most_samples=MOST_SAMPLES)
"""Each side is known to as many octaves as in the standard set."""
MARGIN = f"{FACTOR}x"
FALLING = ("slope 2", "slope 4", "lapse 3 %", "guess 20 %", "step", "two-stage")


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    setting: Setting
    sides: float


def compared(case: Case, run: int, factor: float) -> Comparison:
    """The second side is right to a length that is `factor` times shorter."""
    seed = case.setting.seed(run)
    second = case.setting.family.draw(seed, factor)
    pair = simulate_pair(case.setting, run, second, sides=case.sides)
    counts, chosen = [], []
    for side in pair:
        curve_of = partial(asked, side.correct, side.true_lengths)
        (one,) = counts_at_the_end(curve_of, [AIM])
        counts.append(one)
        chosen.append(curve_of(one))
    both = np.minimum(*counts)
    first, other = (asked(side.correct, side.true_lengths, both) for side in pair)
    return compare(first, other, chosen=(chosen[0], chosen[1]))


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    said = {
        factor: Counter(compared(case, run, factor).change(MARGIN) for run in range(runs))
        for factor in (1.0, FACTOR, FACTOR**2)
    }
    equal, differing, far = said.values()
    false = {
        "worse": equal["worse"] / runs,
        "better": equal["better"] / runs,
        "false_by_factor": differing["equivalent"] / runs,
    }
    return {
        "shape": case.setting.shape,
        "rows": case.setting.rows,
        "sides": case.sides,
        **false,
        "by_factor": equal["equivalent"] / runs,
        "found": far["worse"] / runs,
        "runs": runs,
        "missed": ", ".join(
            name.replace("_", " ") for name, share in false.items() if share > MOST_FALSE
        ),
    }


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape and correlation."""
    cases = [
        Case(Setting(shape, together, MOST_SAMPLES), sides)
        for shape, (together, sides) in product(FALLING, TOGETHER)
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    f"what is said of two adaptive runs with a margin of {FACTOR}x",
    (
        *SETTING[:2],
        Column("sides", "sides go together", ".1f"),
        Column("worse", "equal: “worse”", ".3f"),
        Column("better", "equal: “better”", ".3f"),
        Column("by_factor", "equal: “equivalent”", ".2f"),
        Column("false_by_factor", f"lengths differ by {FACTOR}: “equivalent”", ".3f"),
        Column("found", f"lengths differ by {FACTOR**2:g}: “worse”", ".2f"),
        Column("missed", "missed"),
    ),
    rows,
)
