"""What adaptive runs save against full runs whose intervals are as wide, and what they cover.

The aim of the adaptive runs is the mean width of the intervals of full runs with so many samples a
line, within the limits of `--precision`. They end with somewhat narrower intervals than that, so
they are compared with full runs of as many samples as give their own mean width, and where they
end wider than their aim, of as many samples as the aim was taken from at least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.adaptive.adaptive import Aim, next_step
from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.analysis.length.effective_length import EffectiveLength, effective_length
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.settings.checks import COARSEST, FINEST
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.audited import ALIKE, NEAR
from tests.benchmarks.simulation.coverage import COVERED, SAID
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    LINES,
    Setting,
    draw,
    holds,
    holds_what_it_says,
)
from tests.benchmarks.simulation.shapes import UNEVEN, Truth
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

SAMPLES = (20, 40, 100)
MOST_SAMPLES = 400
FULL_SAMPLES = (10, 15, 20, 30, 40, 60, 100, 150, 200)
"""Samples of a line for which the width of full runs is simulated."""
WIDTH_RUNS = 0.4
"""Share of the runs for each of those widths, which are means."""
_NARROWEST = 0.01
"""Octaves: narrower widths count as this one, whose logarithm is known."""
REQUESTS, SYMBOLS, NEVER_ABOVE = 0.40, 0.25, 0.80
_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Case:
    """A shape, and whether rows go together; one run gives the rows for all numbers of samples."""

    shape: str
    rows: float

    def full(self, samples: int) -> Setting:
        """The full runs to compare with."""
        return Setting(self.shape, self.rows, samples)


def asked(correct: Floats, lengths: npt.NDArray[Any], counts: _Counts) -> Curve:
    """The curve of the first `counts` samples of each line."""
    kept = counts > 0
    mask = np.arange(counts.max())[:, None] < counts[kept]
    rows = slice(0, int(counts.max()))
    return Curve(
        tuple(line for line, keep in zip(LINES, kept, strict=True) if keep),
        np.where(mask, correct[rows, kept], 0.0),
        mask.astype(float),
        np.where(mask, lengths[rows, kept], np.nan),
    )


def counts_at_the_end(
    curve_of: Callable[[_Counts], Curve], aims: Sequence[Aim]
) -> Iterator[_Counts]:
    """Samples of each line when an adaptive run ends, for aims that become stricter.

    One run serves all: under all aims it asks the same samples until its interval is narrow enough
    for the first. What it then asks of the lines below that, it would ask later for the others.
    """
    counts = np.zeros(len(LINES), np.int64)
    for aim in aims:
        while True:
            samples = curve_of(counts) if counts.any() else None
            planned = dict(zip(LINES, counts.tolist(), strict=True))
            step = next_step(samples, planned, aim)
            if step.why:
                yield counts.copy()
                break
            assert sum(step.more.values()) > 0, "a wave without a sample must have a reason"
            for line, count in step.more.items():
                counts[LINES.index(line)] += count


def holds_or_told(found: EffectiveLength, truth: Truth) -> bool:
    """Whether the interval holds, or the lengths of the finding `near the threshold` do."""
    if holds_what_it_says(found, truth):
        return True
    between = found.fit.level_between()
    return found.one_threshold and between is not None and holds(between, truth.crossing)


def measure(case: Case, runs: int) -> list[Row]:
    """The rows of one shape."""
    widths = _full_widths(case, max(1, round(WIDTH_RUNS * runs)))
    of_samples = dict(zip(FULL_SAMPLES, widths.tolist(), strict=True))
    aims = [
        Aim(min(max(FINEST, of_samples[samples]), COARSEST), most_samples=MOST_SAMPLES)
        for samples in SAMPLES
    ]
    setting = case.full(MOST_SAMPLES)
    found = np.array([list(_one_run(setting, run, aims)) for run in range(runs)])
    rows: list[Row] = []
    for place, (samples, aim) in enumerate(zip(SAMPLES, aims, strict=True)):
        width, asked_of_each, symbols_of_each, held, said, told = (
            found[:, place].mean(axis=0).tolist()
        )
        as_wide = _samples_for(width, widths)
        if width > aim.precision:  # of runs that end because there is no single threshold
            as_wide = max(samples, as_wide)
        requests, symbols = asked_of_each / as_wide, symbols_of_each / as_wide
        row: Row = {
            "shape": case.shape,
            "rows": case.rows,
            "samples": samples,
            "precision": aim.precision,
            "width": width,
            "as_wide": as_wide,
            "requests": requests,
            "symbols": symbols,
            "held": held,
            "told": told if case.shape in NEAR else None,
            "no_one_threshold": said,
            "runs": runs,
        }
        missed = []
        if held < COVERED and (case.shape not in UNEVEN or said < SAID):
            missed.append("coverage")
        if max(requests, symbols) > NEVER_ABOVE:
            missed.append("saving")
        rows.append({**row, "missed": ", ".join(missed)})
    return rows


def _full_widths(case: Case, runs: int) -> Floats:
    """Mean width, in octaves, of the intervals of full runs for each of `FULL_SAMPLES`; more
    samples never count as wider.
    """
    setting = case.full(max(FULL_SAMPLES))
    widths = np.empty((runs, len(FULL_SAMPLES)))
    for run in range(runs):
        _, correct, lengths = draw(setting, run)
        for place, samples in enumerate(FULL_SAMPLES):
            counts = np.full(len(LINES), samples)
            widths[run, place] = fit(asked(correct, lengths, counts), THRESHOLD).octaves()
    return np.minimum.accumulate(widths.mean(axis=0))


def _samples_for(width: float, widths: Floats) -> float:
    """Samples of each line for which full runs have intervals of this mean width: between the
    simulated ones by their logarithms, and never beyond those.
    """
    narrowness, of_full = (-np.log(np.maximum(value, _NARROWEST)) for value in (width, widths))
    logs = np.interp(narrowness, of_full, np.log(np.array(FULL_SAMPLES, float)))
    return float(np.exp(logs))


def _one_run(setting: Setting, run: int, aims: Sequence[Aim]) -> Iterator[tuple[float, ...]]:
    """For each aim: width of the interval, requests and symbols as multiples of those of one
    sample on each line, and what was found.
    """
    truth, correct, lengths = draw(setting, run)
    symbols_to = np.concatenate([np.zeros((1, len(LINES))), lengths.cumsum(axis=0)])
    symbols_of_one = float(lengths.sum(axis=1).mean())
    for counts in counts_at_the_end(partial(asked, correct, lengths), aims):
        samples = asked(correct, lengths, counts)
        result = effective_length(samples)
        symbols = float(symbols_to[counts, np.arange(len(LINES))].sum())
        yield (
            fit(samples, THRESHOLD).octaves(),
            float(counts.sum()) / len(LINES),
            symbols / symbols_of_one,
            float(holds_what_it_says(result, truth)),
            float(not result.one_threshold),
            float(holds_or_told(result, truth)),
        )


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """Three rows for each shape and correlation, and at the end the median and the largest."""
    wanted = [shape for shape in shapes if shape not in ALIKE]
    cases = [Case(*case) for case in product(wanted, (0.0, CORRELATION))]
    everything: list[Row] = []
    for some in spread(partial(measure, runs=runs), cases):
        everything += some
        yield from some
    yield from _summary(everything, "median", np.median, (REQUESTS, SYMBOLS))
    yield from _summary(everything, "largest", np.max, (NEVER_ABOVE, NEVER_ABOVE))


def _summary(
    rows: Sequence[Row],
    name: str,
    summarise: Callable[[Floats], np.float64],
    wanted: tuple[float, float],
) -> Iterator[Row]:
    for samples in SAMPLES:
        same = [row for row in rows if row["samples"] == samples]
        shares = {
            column: float(summarise(np.array([row[column] for row in same], float)))
            for column in ("requests", "symbols")
        }
        missed = [
            column
            for (column, share), most in zip(shares.items(), wanted, strict=True)
            if share > most
        ]
        yield {"shape": name, "samples": samples, **shares, "missed": ", ".join(missed)}


SIMULATION = Simulation(
    "requests and symbols of adaptive runs as shares of full runs with an interval as wide",
    (
        *SETTING,
        Column("precision", "precision, octaves", ".2f"),
        Column("width", "width", ".2f"),
        Column("as_wide", "samples of full runs as wide", ".0f"),
        Column("requests", "requests", ".2f"),
        Column("symbols", "symbols", ".2f"),
        Column("held", "interval holds", ".3f"),
        Column("told", "or “near the threshold” does", ".3f"),
        Column("no_one_threshold", "“no single threshold”", ".2f"),
        Column("missed", "missed"),
    ),
    rows,
)
