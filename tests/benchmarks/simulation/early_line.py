"""What one reply at a line far below the others does to an estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.analysis.length.fit import Fit, fit
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line, line_start
from tests.benchmarks.simulation.draws import CORRELATION, Setting, answers, holds, rows_field
from tests.benchmarks.simulation.shapes import Truth
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread

EARLY = Line.exact(8)
LINES = tuple(
    Line(centre, low, high)
    for centre, low, high in (
        (32, 26, 38),
        (64, 52, 76),
        (128, 103, 153),
        (256, 205, 307),
        (384, 308, 460),
    )
)
"""Lines of 0.8 to 1.2 times their centre, as in `results/recorded/`."""
SAMPLES = 16
SHAPES = ("slope 1.5", "slope 2", "slope 4", "lapse 3 %", "lapse 8 %", "step", "two-stage")
"""Those with a crossing that is drawn, without irregular ones."""
_THRESHOLD = THRESHOLD


def draw(setting: Setting, run: int) -> tuple[Truth, Curve]:
    """The truth, and a curve whose first line is `EARLY` with a single sample."""
    seed = setting.seed(run)
    truth = setting.family.draw(seed)
    start = line_start(run, "simulation")
    lengths: npt.NDArray[np.int64] = np.array(
        [
            [line.length_of(index, start) for line in (EARLY, *LINES)]
            for index in range(setting.samples)
        ]
    )
    rng = np.random.default_rng([seed, 1])
    field = rows_field(rng, lengths.shape, setting.rows)
    scored = np.ones(lengths.shape)
    scored[1:, 0] = 0
    return truth, _curve(answers(truth, lengths, field), scored, lengths)


def _curve(correct: Floats, scored: Floats, lengths: npt.NDArray[np.int64]) -> Curve:
    true_lengths = np.where(scored > 0, lengths, np.nan)
    return Curve((EARLY, *LINES), correct * scored, scored, true_lengths)


def without_reply(samples: Curve) -> Curve:
    """The same range of lengths without the sample of the first line."""
    scored, correct = samples.scored.copy(), samples.correct.copy()
    scored[:, 0] = correct[:, 0] = 0
    true_lengths = np.where(scored > 0, samples.true_lengths, np.nan)
    return Curve(samples.lines, correct, scored, true_lengths)


def _moved(first: Fit, second: Fit) -> float:
    """Octaves between two estimates within the range that both have."""
    low, high = LINES[0].low, LINES[-1].high
    ends = [min(max(one.median.length, low), high) for one in (first, second)]
    return abs(float(np.log2(ends[0] / ends[1])))


def measure(setting: Setting, runs: int) -> Row:
    """One row of the table."""
    held: list[tuple[bool, bool]] = []
    moved: list[float] = []
    by_range: list[float] = []
    inside: list[bool] = []
    asked = LINES[0].low, LINES[-1].high
    for run in range(runs):
        truth, samples = draw(setting, run)
        others = fit(samples.at(slice(1, None)), _THRESHOLD)
        everything = fit(samples, _THRESHOLD)
        span = others.interval()
        held.append(
            (
                holds(span, truth.crossing, asked),
                holds(everything.interval(), truth.crossing, (EARLY.low, LINES[-1].high)),
            )
        )
        moved.append(_moved(others, everything))
        by_range.append(_moved(fit(without_reply(samples), _THRESHOLD), everything))
        inside.append(holds(span, everything.median.length, asked))
    before, after = np.mean(held, axis=0)
    return {
        "shape": setting.shape,
        "rows": setting.rows,
        "samples": setting.samples,
        "held": float(before),
        "held_with": float(after),
        "moved": float(np.median(moved)),
        "moved_95": float(np.quantile(moved, 0.95)),
        "by_reply": float(np.quantile(by_range, 0.95)),
        "inside": float(np.mean(inside)),
        "runs": runs,
    }


def rows(shapes: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape of `SHAPES` and correlation."""
    known = [shape for shape in shapes if shape in SHAPES]
    settings = [Setting(*case, SAMPLES) for case in product(known, (0.0, CORRELATION))]
    yield from spread(partial(measure, runs=runs), settings)


SIMULATION = Simulation(
    "what one reply at length 8 does where the other lines begin at 26",
    (
        *SETTING,
        Column("held", "interval holds the truth", ".3f"),
        Column("held_with", "with the reply", ".3f"),
        Column("moved", "estimate moves, octaves: median", ".2f"),
        Column("moved_95", "95 % of the runs", ".2f"),
        Column("by_reply", "by what the reply says", ".2f"),
        Column("inside", "stays in the interval", ".3f"),
    ),
    rows,
)
