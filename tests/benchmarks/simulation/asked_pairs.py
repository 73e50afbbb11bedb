"""`bench compare --ask`: two full runs of 20 samples a line, and what is asked more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.adaptive.next_pairs import (
    WAVES,
    is_decided,
    line_weights,
    next_wave,
    rows_more,
)
from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.length.curve import Curve
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.settings.judging import MARGIN, THRESHOLD
from tests.benchmarks.simulation.draws import CORRELATION, LINES
from tests.benchmarks.simulation.equivalence import compare
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread
from tests.benchmarks.simulation.unequal import MOST_FALSE, PAIRS, Case, draw_pair

SAMPLES = 20
FULL = SAMPLES * len(LINES)
"""Requests of a full run: what is asked more, at most, of both sides together."""
EQUAL = ("Weibull 1", "Weibull 3", "slope 4", "step", "rows fail", "plateau 86 %", "recorded")
FACTORS = (1.0, 1.5, 2.0)
_MOST = 8 * SAMPLES


def with_rows(curve: Curve, counts: Sequence[int]) -> Curve:
    """The curve with so many rows on each line."""
    rows = max(counts)
    scored = (np.arange(rows)[:, None] < np.array(counts)).astype(float)
    lengths = np.where(scored > 0, curve.true_lengths[:rows], np.nan)
    correct = curve.correct[:rows] * scored
    return replace(curve, correct=correct, scored=scored, true_lengths=lengths)


@dataclass(frozen=True, slots=True)
class Result:
    """One comparison with `--ask`."""

    before: Comparison
    """Of the full runs."""
    after: Comparison
    requests: int
    """That were asked more."""


def compared(case: Case, run: int, factor: float) -> Result:
    """Asks as `bench compare --ask` does."""
    pair = draw_pair(case, run, factor, _MOST)
    counts, left = [SAMPLES] * len(LINES), FULL
    before = after = compare(*(with_rows(curve, counts) for curve in pair))
    for done in range(WAVES):
        if is_decided(after, MARGIN):
            break
        first, second = (fit(with_rows(curve, counts), THRESHOLD) for curve in pair)
        more = rows_more(line_weights(first, second, LINES), next_wave(left, done) // 2)
        for place, rows in more.items():
            counts[place] += rows
            left -= 2 * rows
        after = compare(*(with_rows(curve, counts) for curve in pair))
    return Result(before, after, FULL - left)


def measure(case: Case, runs: int) -> Row:
    """One row of the table."""
    row: dict[str, str | float | None] = {
        "shape": case.setting.shape,
        "rows": case.rows,
        "samples": SAMPLES,
    }
    for factor in FACTORS if case.first == case.second else FACTORS[:1]:
        results = [compared(case, run, factor) for run in range(runs)]
        for name in ("before", "after"):
            said = [getattr(result, name).length.further for result in results]
            found = sum(one == 1 or (factor == 1 and one == -1) for one in said)
            row[f"{name}_{factor:g}"] = found / runs
        row[f"requests_{factor:g}"] = sum(one.requests for one in results) / runs
        if factor == 1 and case.first == case.second:
            equal = [one.after.change(MARGIN) == "equivalent" for one in results]
            row["equivalent"] = sum(equal) / runs
    row["missed"] = "false" if float(row["after_1"] or 0) > MOST_FALSE else ""
    return row


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each pair of shapes and correlation."""
    cases = [
        Case(*pair, together, SAMPLES)
        for pair, together in product(
            [*((name, name) for name in EQUAL), *PAIRS], (0.0, CORRELATION)
        )
    ]
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    f"what `bench compare --ask` says after at most {FULL} requests more",
    (
        *SETTING[:2],
        Column("before_1", "false before", ".3f"),
        Column("after_1", "false after", ".3f"),
        Column("equivalent", "equal: “equivalent”", ".2f"),
        Column("requests_1", "equal lengths: requests", ".0f"),
        Column("before_1.5", "factor 1.5: found before", ".2f"),
        Column("after_1.5", "found after", ".2f"),
        Column("before_2", "factor 2: found before", ".2f"),
        Column("after_2", "found after", ".2f"),
        Column("requests_2", "requests", ".0f"),
        Column("missed", "missed"),
    ),
    rows,
)
