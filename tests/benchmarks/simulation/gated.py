"""`bench gate --ask`: a baseline of 40 samples a line, and a run that begins with 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from eyechart.harness.analysis.adaptive.next_pairs import (
    WAVES,
    is_decided,
    is_surely_worse,
)
from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.length.curve import Curve
from eyechart.harness.settings.judging import MARGIN, THRESHOLD
from tests.benchmarks.simulation.asked_pairs import EQUAL, FACTORS, with_rows
from tests.benchmarks.simulation.draws import CORRELATION, LINES
from tests.benchmarks.simulation.equivalence import compare
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread
from tests.benchmarks.simulation.unequal import MOST_FALSE, Case, draw_pair
from tests.curves import length_difference

BASELINE, FEW = 40, 5
FULL = BASELINE * len(LINES)
"""Requests of a run that is asked all samples of the baseline."""


@dataclass(frozen=True, slots=True)
class Result:
    """One gate with `--ask`."""

    whole: Comparison
    """With all samples of the baseline."""
    asked: Comparison
    requests: int
    """All of the run, with those that it began with."""


def _compared(baseline: Curve, now: Curve, count: int) -> Comparison:
    """The comparison of the baseline with a run of `count` samples a line: lengths are those of
    each side's own samples, areas and lines those of the samples that both have.
    """
    first, second = (with_rows(curve, [count] * len(LINES)) for curve in (baseline, now))
    shared = compare(first, second)
    length = length_difference(baseline, second, THRESHOLD)
    conditions = tuple(replace(one, length=length) for one in shared.conditions)
    return replace(shared, conditions=conditions, length=length)


def gated(case: Case, run: int, factor: float) -> Result:
    """Asks as `bench gate --ask` does."""
    baseline, now = draw_pair(case, run, factor, BASELINE)
    count = FEW
    asked = _compared(baseline, now, count)
    for done in range(WAVES):
        if is_decided(asked, MARGIN) or is_surely_worse(asked):
            break
        count += -(-(BASELINE - count) // (WAVES - done))
        asked = _compared(baseline, now, count)
    return Result(compare(baseline, now), asked, count * len(LINES))


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    row: dict[str, str | float | None] = {"shape": case.first, "rows": case.rows, "samples": FEW}
    for factor in FACTORS:
        results = [gated(case, run, factor) for run in range(runs)]
        for name in ("whole", "asked"):
            said = [getattr(result, name).change(MARGIN) for result in results]
            row[f"{name}_{factor:g}"] = said.count("worse") / runs
            if factor == 1:
                row[f"{name}_equal"] = said.count("equivalent") / runs
        row[f"requests_{factor:g}"] = sum(one.requests for one in results) / runs
    row["missed"] = "false" if float(row["asked_1"] or 0) > MOST_FALSE else ""
    return row


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape and correlation."""
    cases = [
        Case(name, name, together, BASELINE)
        for name, together in product(EQUAL, (0.0, CORRELATION))
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    f"what `bench gate --ask` says of a run that begins with {FEW} samples a line, against a "
    f"baseline of {BASELINE}; all of them are {FULL} requests",
    (
        *SETTING[:2],
        Column("whole_1", "unchanged: “worse” with all", ".3f"),
        Column("asked_1", "with --ask", ".3f"),
        Column("whole_equal", "“equivalent” with all", ".2f"),
        Column("asked_equal", "with --ask", ".2f"),
        Column("requests_1", "requests", ".0f"),
        Column("whole_1.5", "factor 1.5: “worse” with all", ".2f"),
        Column("asked_1.5", "with --ask", ".2f"),
        Column("requests_1.5", "requests", ".0f"),
        Column("whole_2", "factor 2: with all", ".2f"),
        Column("asked_2", "with --ask", ".2f"),
        Column("requests_2", "requests", ".0f"),
        Column("missed", "missed"),
    ),
    rows,
)
