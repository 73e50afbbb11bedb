"""What adaptive runs cost by default, beside the full run of the same task, and what they cover.

By default an adaptive run asks at most as many samples of a condition as its full run has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.adaptive.adaptive import Aim
from eyechart.harness.analysis.length.effective_length import effective_length
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.adaptive import (
    MOST_SAMPLES,
    Case,
    asked,
    counts_at_the_end,
    holds_or_told,
)
from tests.benchmarks.simulation.audited import NEAR
from tests.benchmarks.simulation.coverage import COVERED, SAID
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    LINES,
    Setting,
    draw,
    holds_what_it_says,
)
from tests.benchmarks.simulation.shapes import UNEVEN
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

FULL = 20
"""Samples of a line in a full run."""
WIDER, WANTED = 1.1, 1 / 3


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    aim = Aim(full_samples=FULL, most_samples=MOST_SAMPLES)
    setting = case.full(MOST_SAMPLES)
    found = np.array([_one_run(setting, run, aim) for run in range(runs)])
    requests, width, of_full, held, said, told = found.T
    row: Row = {
        "shape": case.shape,
        "rows": case.rows,
        "samples": FULL,
        "requests": float(np.median(requests)),
        "most": float(requests.max()),
        "width": float(np.median(width)),
        "of_full": float(np.median(of_full)),
        "held": float(held.mean()),
        "told": float(told.mean()) if case.shape in NEAR else None,
        "no_one_threshold": float(said.mean()),
        "runs": runs,
    }
    return {**row, "missed": ", ".join(_missed(case, row))}


def _one_run(setting: Setting, run: int, aim: Aim) -> tuple[float, ...]:
    """Requests as a share of those of the full run, both widths in octaves, and what was found."""
    truth, correct, lengths = draw(setting, run)
    curve_of = partial(asked, correct, lengths)
    (counts,) = counts_at_the_end(curve_of, [aim])
    samples = curve_of(counts)
    result = effective_length(samples)
    full = curve_of(np.full(len(LINES), FULL))
    return (
        float(counts.sum()) / (FULL * len(LINES)),
        fit(samples, THRESHOLD).octaves(),
        fit(full, THRESHOLD).octaves(),
        float(holds_what_it_says(result, truth)),
        float(not result.one_threshold),
        float(holds_or_told(result, truth)),
    )


def _missed(case: Case, row: Row) -> Iterator[str]:
    held, said, width, of_full = (
        float(row[name] or 0) for name in ("held", "no_one_threshold", "width", "of_full")
    )
    if held < COVERED and (case.shape not in UNEVEN or said < SAID):
        yield "coverage"
    if width > WIDER * of_full and case.shape not in UNEVEN:
        yield "width"


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape and correlation, and at the end the median of all."""
    cases = [Case(*case) for case in product(shapes, (0.0, CORRELATION))]
    everything: list[Row] = []
    for row in spread(partial(measure, runs=runs), cases):
        everything.append(row)
        yield row
    median = float(np.median([float(row["requests"] or 0) for row in everything]))
    missed = "requests" if median > WANTED else ""
    yield {"shape": "median", "samples": FULL, "requests": median, "missed": missed}


SIMULATION = Simulation(
    "requests of adaptive runs by default, as shares of the full run",
    (
        *SETTING,
        Column("requests", "requests, median", ".2f"),
        Column("most", "at most", ".2f"),
        Column("width", "width, octaves", ".2f"),
        Column("of_full", "width of the full run", ".2f"),
        Column("held", "interval holds", ".3f"),
        Column("told", "or “near the threshold” does", ".3f"),
        Column("no_one_threshold", "“no single threshold”", ".2f"),
        Column("missed", "missed"),
    ),
    rows,
)
