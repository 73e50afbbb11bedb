"""How often a measure of a probe is said to change with length: where it does not, and does.

python -m lab.benchmarks.changes changes [--runs 500] [--jobs 2] [--out results.csv] [--docs]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.curve import Floats
from eyechart_lab.probe.change import LEVEL, MeasureAtLength, change_with_length
from tests.benchmarks.simulation.__main__ import main
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread

SAMPLES = (2, 3, 5, 8, 20)
LENGTHS = (3, 9)
FACTORS = (2.0, 5.0, 30.0)
"""A fall by so much from the first length to the last, evenly on a logarithmic scale."""
DrawSummary = Callable[[np.random.Generator, int, int], Floats]
"""(rows, lengths): logarithms around 0."""


def _together(rng: np.random.Generator, rows: int, lengths: int) -> Floats:
    own = rng.normal(0, 0.5, (rows, 1))
    return np.asarray(own + rng.normal(0, 0.3, (rows, lengths)))


def _uneven(rng: np.random.Generator, rows: int, lengths: int) -> Floats:
    return np.asarray(rng.normal(0, np.linspace(0.05, 0.9, lengths), (rows, lengths)))


SHAPES: Mapping[str, DrawSummary] = {
    "rows vary by 0.04": lambda rng, rows, lengths: rng.normal(0, 0.04, (rows, lengths)),
    "rows vary by 0.5": lambda rng, rows, lengths: rng.normal(0, 0.5, (rows, lengths)),
    "rows go together": _together,
    "longer rows vary more": _uneven,
    "some rows far off": lambda rng, rows, lengths: 0.3 * rng.standard_t(3, (rows, lengths)),
    "skewed": lambda rng, rows, lengths: rng.exponential(0.5, (rows, lengths)) - 0.5,
}
"""How the logarithms of a value vary over rows; the number is a standard deviation."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    shape: str
    samples: int
    lengths: int


def _legs(case: Case, run: int, factor: float) -> tuple[bool, bool]:
    """Whether a change is said, and whether that is the fall from the first length on, alone."""
    seed = [run, case.samples, case.lengths, list(SHAPES).index(case.shape)]
    rng = np.random.default_rng(seed)
    values = np.exp(SHAPES[case.shape](rng, case.samples, case.lengths))
    values /= factor ** np.linspace(0, 1, case.lengths)
    found = change_with_length(
        [
            MeasureAtLength(10 * (place + 1), dict(enumerate(map(float, column))), 0.0)
            for place, column in enumerate(values.T)
        ],
        is_ratio=True,
    ).legs
    return bool(found), len(found) == 1 and found[0].end.mean < found[0].start.mean


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    false = sum(_legs(case, run, 1.0)[0] for run in range(runs)) / runs
    falls = {
        f"fall_{factor:g}": sum(_legs(case, run, factor)[1] for run in range(runs)) / runs
        for factor in FACTORS
    }
    return {
        "shape": case.shape,
        "lines": case.lengths,
        "samples": case.samples,
        "false": false,
        **falls,
        "runs": runs,
        "missed": "false" if false > LEVEL else "",
    }


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    cases = [
        Case(shape, samples, lengths)
        for shape, lengths, samples in product(SHAPES, LENGTHS, SAMPLES)
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "how often a measure is said to change with length where it does not, and how often a fall "
    "by a factor is reported as one fall",
    (
        Column("shape", "over rows"),
        Column("lines", "lengths"),
        Column("samples", "rows"),
        Column("false", "change where there is none", ".3f"),
        *(Column(f"fall_{factor:g}", f"fall {factor:g}-fold", ".2f") for factor in FACTORS),
    ),
    rows,
)

if __name__ == "__main__":
    main({"changes": SIMULATION}, "python -m lab.benchmarks.changes", __doc__)
