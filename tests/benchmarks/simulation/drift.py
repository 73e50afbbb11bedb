"""How often a run is said to have become worse, where its server changed and where it did not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.samples.drift import drift_of
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    Setting,
    answers,
    normal_field,
    sample_lengths,
)
from tests.benchmarks.simulation.shapes import Truth
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = (10, 20, 40)
SHAPE = "slope 4"
Change = Callable[[Floats], Floats]


def _shorter(accuracies: Floats) -> Floats:
    """The model is right half as far."""
    lengths = np.minimum(2 * np.arange(len(accuracies)), len(accuracies) - 1)
    changed: Floats = accuracies[lengths]
    return changed


CHANGES: Mapping[str, Change] = {
    "none": lambda accuracies: accuracies,
    "10 % fewer right": lambda accuracies: 0.9 * accuracies,
    "30 % fewer right": lambda accuracies: 0.7 * accuracies,
    "is right half as far": _shorter,
}


def measure(case: tuple[str, float, int], runs: int) -> Row:
    """One row of the table."""
    name, rows, samples = case
    setting = Setting(SHAPE, rows, samples)
    said = []
    for run in range(runs):
        seed = setting.seed(run)
        truth = setting.family.draw(seed)
        lengths = sample_lengths(samples, run)
        field = normal_field(np.random.default_rng([seed, 1]), samples, rows)
        changed = Truth(CHANGES[name](truth.accuracies), truth.crossing)
        right = answers(truth, lengths, field)
        right[samples // 2 :] = answers(changed, lengths, field)[samples // 2 :]
        indexes, cells = np.indices(lengths.shape)
        found = drift_of(cells.ravel(), indexes.ravel(), right.ravel() > 0)
        said.append(found is not None)
    return {
        "shape": name,
        "rows": rows,
        "samples": samples,
        "said": float(np.mean(said)),
        "runs": runs,
    }


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each change, correlation and number of samples."""
    cases = product(CHANGES, (0.0, CORRELATION), SAMPLES)
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "how often a run is said to have changed, where the server changes after half of its rows",
    (*SETTING, Column("said", "a change is said", ".3f")),
    rows,
)
