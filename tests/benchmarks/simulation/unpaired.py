"""How often one of two sides with different rows is said to be right further, truly and falsely."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.comparison.length_difference import fitted_side, sides_difference
from eyechart.harness.analysis.comparison.paired_curves import compare_unpaired, holm
from eyechart.harness.analysis.length.curve import SIGNIFICANT, Curve
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line, line_start
from tests.benchmarks.simulation.draws import CORRELATION, Setting, answers, rows_field
from tests.benchmarks.simulation.right_further import FACTORS, MOST_FALSE, POWER_RUNS
from tests.benchmarks.simulation.shapes import Truth
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = 16


def _lines(*centres: int) -> tuple[Line, ...]:
    """Lines of 0.8 to 1.2 times these centres, as in `results/recorded/`."""
    return tuple(Line(centre, -(-4 * centre // 5), 6 * centre // 5) for centre in centres)


SIDES = _lines(32, 64, 128, 256, 384), _lines(16, 32, 48, 64, 96, 128)
"""The lines of first and second: another shortest line, other numbers of lines, some in common."""


def draw(setting: Setting, run: int, truths: tuple[Truth, Truth]) -> tuple[Curve, Curve]:
    """The curves of two sides, each with its own lines, rows and answers."""
    rng = np.random.default_rng([setting.seed(run), 2])
    curves = []
    for side, (lines, truth) in enumerate(zip(SIDES, truths, strict=True)):
        start = line_start(2 * run + side, "simulation")
        lengths = np.array(
            [[line.length_of(index, start) for line in lines] for index in range(setting.samples)]
        )
        field = rows_field(rng, lengths.shape, setting.rows)
        correct = answers(truth, lengths, field)
        curves.append(Curve(lines, correct, np.ones_like(correct), lengths.astype(float)))
    return curves[0], curves[1]


def _said(setting: Setting, run: int, factor: float) -> tuple[int, bool]:
    """Who is said to be right further, and whether a line differs significantly, if the second's
    crossing is `factor` times shorter.
    """
    family, seed = setting.family, setting.seed(run)
    first, second = draw(setting, run, (family.draw(seed), family.draw(seed, factor)))
    sides = fitted_side(first, THRESHOLD), fitted_side(second, THRESHOLD)
    length = sides_difference(*sides, paired=False)
    lines = holm([line.p for line in compare_unpaired(first, second).lengths])
    return length.further, min(lines) < SIGNIFICANT


def measure(setting: Setting, runs: int) -> Row:
    """One row of the table."""
    said = [_said(setting, run, 1.0) for run in range(runs)]
    power_runs = max(1, round(POWER_RUNS * runs))
    powers = {
        f"power_{factor}": sum(_said(setting, run, factor)[0] == 1 for run in range(power_runs))
        / power_runs
        for factor in FACTORS
        if setting.family.moves
    }
    false = sum(further != 0 for further, _ in said) / runs
    line = sum(differs for _, differs in said) / runs
    return {
        "shape": setting.shape,
        "rows": setting.rows,
        "samples": setting.samples,
        "false": false,
        "line": line,
        **powers,
        "runs": runs,
        "missed": "false" if max(false, line) > MOST_FALSE else "",
    }


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape and correlation."""
    settings = [Setting(*case, SAMPLES) for case in product(shapes, (0.0, CORRELATION))]
    yield from spread(partial(measure, runs=runs), settings)


SIMULATION = Simulation(
    "how often one side with other rows and lines is said to be right further, or a line to differ",
    (
        *SETTING,
        Column("false", "false", ".3f"),
        Column("line", "a line falsely differs", ".3f"),
        *(Column(f"power_{factor}", f"found: factor {factor:g}", ".2f") for factor in FACTORS),
        Column("missed", "missed"),
    ),
    rows,
)
