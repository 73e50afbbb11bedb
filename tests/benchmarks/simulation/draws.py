"""Simulated answers: the built-in lines, the lengths of their samples, and curves of answers."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import line_start, lines_of
from tests.benchmarks.simulation.audited import MORE
from tests.benchmarks.simulation.shapes import LONGEST, SHAPES, WEIBULL, Shape, Truth

LINES = tuple(lines_of((5, 7, 10, 15, 22, 33, 50, 75, 110, 160, 240, 350, LONGEST), "bands"))
"""Those of the built-in tasks."""
SHORTEST = LINES[0].low
A_LINE = math.log2(LONGEST / SHORTEST) / (len(LINES) - 1)
"""Octaves from one line to the next, in the mean."""
CORRELATION = 0.6
"""Correlation of the answers to one row at two lengths, where rows go together."""


def family(shape: str) -> Shape:
    """The shape of this name."""
    return {**SHAPES, **WEIBULL, **MORE}[shape]


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One row of a table: what is simulated many times."""

    shape: str
    rows: float
    """Correlation of the answers to one row of symbols at two lengths."""
    samples: int
    """Samples of each line."""

    @property
    def family(self) -> Shape:
        """The shape."""
        return family(self.shape)

    def seed(self, run: int) -> int:
        """A seed for each run of each row, so that any row can be simulated alone."""
        return zlib.crc32(f"{self.shape}|{self.rows}|{self.samples}|{run}".encode())


def sample_lengths(samples: int, run: int) -> npt.NDArray[np.int64]:
    """Lengths of the samples of all lines, spread as in a run of another seed each time.

    The shape is (samples, lines).
    """
    start = line_start(run, "simulation")
    return np.array([[line.length_of(index, start) for line in LINES] for index in range(samples)])


def normal_field(rng: np.random.Generator, samples: int, rows: float) -> Floats:
    """Standard normal numbers of shape (samples, lines) with this correlation within a row."""
    return rows_field(rng, (samples, len(LINES)), rows)


def rows_field(rng: np.random.Generator, shape: tuple[int, ...], rows: float) -> Floats:
    """The same of another `shape` than that of `LINES`."""
    own = rng.standard_normal(shape)
    if not rows:
        return own
    shared: Floats = rng.standard_normal((shape[0], 1))
    field: Floats = math.sqrt(rows) * shared + math.sqrt(1 - rows) * own
    return field


def answers(truth: Truth, lengths: npt.NDArray[np.int64], field: Floats) -> Floats:
    """1 where the answer is correct, else 0: a normal copula has the correlations of `field`."""
    return np.where(field < ndtri(truth.at(lengths)), 1.0, 0.0)


def full_curve(correct: Floats, lengths: npt.NDArray[np.int64]) -> Curve:
    """The curve of a run that asked all samples of all lines."""
    return Curve(LINES, correct, np.ones_like(correct), lengths.astype(float))


def draw(setting: Setting, run: int) -> tuple[Truth, Floats, npt.NDArray[np.int64]]:
    """The truth, and the answers and lengths of all samples, of shape (samples, lines)."""
    seed = setting.seed(run)
    truth = setting.family.draw(seed)
    lengths = sample_lengths(setting.samples, run)
    field = normal_field(np.random.default_rng([seed, 1]), setting.samples, setting.rows)
    return truth, answers(truth, lengths, field), lengths


def simulate(setting: Setting, run: int) -> tuple[Truth, Curve]:
    """The truth and the curve of one full run."""
    truth, correct, lengths = draw(setting, run)
    return truth, full_curve(correct, lengths)


def simulate_pair(
    setting: Setting, run: int, second: Truth | None = None, *, sides: float = 0.0
) -> tuple[Curve, Curve]:
    """Two curves on the same samples, of the truth of `setting` and of `second` or the same.

    `sides` is the correlation of the two answers to one sample.
    """
    seed = setting.seed(run)
    truth = setting.family.draw(seed)
    lengths = sample_lengths(setting.samples, run)
    rng = np.random.default_rng([seed, 1])
    shared, *own = (normal_field(rng, setting.samples, setting.rows) for _ in range(3))
    first, other = (
        full_curve(
            answers(side, lengths, math.sqrt(sides) * shared + math.sqrt(1 - sides) * field),
            lengths,
        )
        for side, field in zip((truth, second or truth), own, strict=True)
    )
    return first, other


def line_accuracies(truth: Truth) -> Floats:
    """True accuracy of each line: the mean over its band."""
    return np.array([truth.accuracies[line.low : line.high + 1].mean() for line in LINES])


def true_tested_length(truth: Truth) -> float:
    """The last line before the first whose true accuracy is below the threshold; 0 or infinite
    outside the tested range.
    """
    below = np.flatnonzero(line_accuracies(truth) < THRESHOLD)
    if not len(below):
        return math.inf
    return float(LINES[below[0] - 1].length) if below[0] else 0.0


def holds(interval: Span, truth: float, asked: tuple[float, float] = (SHORTEST, LONGEST)) -> bool:
    """Whether an interval holds a true length, which may lie outside the lengths `asked`."""
    shortest, longest = asked
    low, high = interval
    from_below = low.sign == "<" or (truth >= low.length and (low.sign == "=" or truth > longest))
    from_above = high.sign == ">" or (
        truth <= high.length and (high.sign == "=" or truth < shortest)
    )
    return from_below and from_above


def holds_what_it_says(found: EffectiveLength, truth: Truth) -> bool:
    """Whether the interval of a run holds what it is the interval of: where the accuracy falls
    below the threshold, or the tested length where the run says that there is no single threshold.
    """
    true = truth.crossing if found.one_threshold else true_tested_length(truth)
    return holds(found.length_ci, true)


def octave(length: float) -> float:
    """Base-2 logarithm of a length, limited to the tested range."""
    return math.log2(min(max(length, SHORTEST), LONGEST))


def width(interval: Span) -> float:
    """Octaves from end to end, within the tested range."""
    return octave(interval[1].length) - octave(interval[0].length)


def error(estimate: Bound, truth: float) -> float:
    """Octaves by which an estimate is too high, within the tested range."""
    return octave(estimate.length) - octave(truth)
