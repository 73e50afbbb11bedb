"""How often a length is too long where replies are lost, and how often `bench score` says so: a
server that times out may lose the wrong replies, which are longer, and not the right ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.findings.served import is_in_doubt
from eyechart.harness.analysis.length.effective_length import effective_length
from tests.benchmarks.simulation.coverage import COVERED
from tests.benchmarks.simulation.draws import CORRELATION, Setting, holds_what_it_says, simulate
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = (20, 40)
SHAPES = ("slope 1", "slope 1.5", "slope 4", "step", "plateau 86 %", "recorded")
LOSSES: Mapping[str, tuple[float, float]] = {
    "3 % of all": (0.03, 0.03),
    "10 % of all": (0.1, 0.1),
    "10 % of the wrong": (0.1, 0.0),
    "50 % of the wrong": (0.5, 0.0),
    "90 % of the wrong": (0.9, 0.0),
}
"""Shares of the wrong and of the right replies that are lost."""
MOST_SILENT = 0.05


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    setting: Setting
    losses: str


def _one_run(case: Case, run: int) -> tuple[bool, bool, bool]:
    """Whether the interval lies beyond the true length; whether it is said to be in doubt; and
    whether the true length is not below the end that is then named.
    """
    truth, whole = simulate(case.setting, run)
    wrong, right = LOSSES[case.losses]
    rng = np.random.default_rng([case.setting.seed(run), 3])
    lost = rng.random(whole.correct.shape) < np.where(whole.correct > 0, right, wrong)
    seen = replace(whole, correct=np.where(lost, 0.0, whole.correct))
    asked = np.flatnonzero(~lost.all(axis=0))
    kept = replace(
        seen,
        lines=tuple(whole.lines[place] for place in asked),
        correct=seen.correct[:, asked],
        scored=np.where(lost, 0.0, 1.0)[:, asked],
        true_lengths=np.where(lost, np.nan, whole.true_lengths)[:, asked],
    )
    estimate, allowed = effective_length(kept), effective_length(seen)
    low, named = estimate.length_ci[0], allowed.length_ci[0]
    too_long = (
        not holds_what_it_says(estimate, truth) and low.sign != "<" and low.length > truth.crossing
    )
    in_doubt = low.sign != "<" and is_in_doubt(estimate, allowed)
    return too_long, in_doubt, named.sign == "<" or named.length <= truth.crossing


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    found = np.array([_one_run(case, run) for run in range(runs)])
    too_long, said, below = found.T
    silent = float(np.mean(too_long & ~said))
    named = float(np.mean(below[said])) if said.any() else None
    return {
        "shape": case.setting.shape,
        "rows": case.setting.rows,
        "options": case.losses,
        "samples": case.setting.samples,
        "too_long": float(too_long.mean()),
        "silent": silent,
        "said": float(said.mean()),
        "below": named,
        "missed": ", ".join(_missed(silent, named)),
    }


def _missed(silent: float, named: float | None) -> Iterator[str]:
    if silent > MOST_SILENT:
        yield "not said"
    if named is not None and named < COVERED:
        yield "coverage"


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation, loss and number of samples."""
    cases = [
        Case(Setting(shape, rows, samples), losses)
        for shape, rows, losses, samples in product(SHAPES, (0.0, CORRELATION), LOSSES, SAMPLES)
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "how often a length is too long where replies are lost, and how often that is said",
    (
        *SETTING[:2],
        Column("options", "lost"),
        SETTING[2],
        Column("too_long", "interval is too long", ".3f"),
        Column("silent", "and nothing is said", ".3f"),
        Column("said", "“lost replies” is said", ".2f"),
        Column("below", "then the true length is not below the named end", ".2f"),
        Column("missed", "missed"),
    ),
    rows,
)
