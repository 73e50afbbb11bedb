"""How often “no single threshold” is said of dips, and falsely of accuracies that fall."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.analysis.length.effective_length import effective_length, has_single_threshold
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.analysis.length.one_threshold import LEVEL, LEVEL_AT
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.audited import MORE, PERIODIC
from tests.benchmarks.simulation.coverage import COVERED, FALSELY_SAID, SAID
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    Setting,
    answers,
    full_curve,
    holds_what_it_says,
    normal_field,
    sample_lengths,
)
from tests.benchmarks.simulation.shapes import (
    ALL,
    SHAPES,
    Shape,
    Truth,
    flat,
    logistic,
    steps,
)
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread, Value
from tests.benchmarks.simulation.unequal import KINDS

SAMPLES_OF_DIPS, SAMPLES = (20, 40), (20,)


@dataclass(frozen=True, slots=True)
class Dip:
    """A shape that is below the threshold at some lengths, and above it at the next ones."""

    shape: Shape
    first: int
    last: int
    """The lengths below the threshold."""


def _uneven(first: int, last: int, level: float) -> Shape:
    """97 % up to the crossing, but for `level` at the lengths from `first` to `last`."""

    def accuracies(crossing: float, _: np.random.Generator) -> Floats:
        values = np.where(crossing >= ALL, 0.97, 0.05)
        values[first : last + 1] = level
        return values

    return Shape(accuracies, shortest=2.0 * last, fixed=float(first) if first > 0 else 0.0)


DIPS: Mapping[str, Dip] = {
    "shallow dip": Dip(_uneven(30, 60, 0.75), 30, 60),
    "bad start": Dip(_uneven(0, 7, 0.70), 0, 7),
}


def _gompertz(slope: float) -> Shape:
    """Accuracy 1 - exp(-exp(-slope * log(length) + constant))."""
    at_threshold = math.log(-math.log(1 - THRESHOLD))

    def accuracies(crossing: float, _: np.random.Generator) -> Floats:
        logs = np.log(np.maximum(ALL, 1) / crossing)
        values: Floats = 1 - np.exp(-np.exp(at_threshold - slope * logs))
        return values

    return Shape(accuracies)


def _power(crossing: float, _: np.random.Generator) -> Floats:
    """Accuracy that is inverse to the length."""
    values: Floats = np.minimum(1.0, THRESHOLD * crossing / np.maximum(ALL, 1))
    return values


FALLING: Mapping[str, Shape] = {
    **{name: KINDS[name] for name in ("Weibull 0.5", "Weibull 1", "Weibull 3", "lapse grows")},
    "Gompertz 1.2": _gompertz(1.2),
    "power": Shape(_power),
    "guess 50 %": Shape(logistic(3, guess=0.5)),
    "lapse 8 %": SHAPES["lapse 8 %"],
    "lapse 12 %": Shape(logistic(3, lapse=0.12)),
    "two-stage": SHAPES["two-stage"],
    "95 %, then 75 %": Shape(steps((1, 0.95), (math.inf, 0.75))),
    "88 %, then 50 %": Shape(steps((1, 0.88), (math.inf, 0.5))),
    "flat 0.90": SHAPES["flat 0.90"],
    **{name: shape for name, shape in MORE.items() if name not in PERIODIC},
    "flat 0.86": Shape(flat(0.86), fixed=math.inf),
    "flat 0.84": Shape(flat(0.84), fixed=0.0),
}


def _draw(shape: Shape, setting: Setting, run: int) -> tuple[Truth, Curve]:
    """The truth and the curve of one run."""
    seed = setting.seed(run)
    truth, lengths = shape.draw(seed), sample_lengths(setting.samples, run)
    field = normal_field(np.random.default_rng([seed, 1]), setting.samples, setting.rows)
    return truth, full_curve(answers(truth, lengths, field), lengths)


def _hypergeometric(asked: int, right: int, behind: int) -> Floats:
    """Probabilities that 0, 1, … of the `behind` among the `asked` answers are right, if `right` of
    all are: shape (`behind` + 1,).
    """
    ways = [math.comb(behind, k) * _ways(asked - behind, right - k) for k in range(behind + 1)]
    chances: Floats = np.array(ways, float) / math.comb(asked, right)
    return chances


def _ways(answers: int, right: int) -> int:
    return math.comb(answers, right) if right >= 0 else 0


def told_where(dip: Dip, truth: Truth, curve: Curve) -> bool:
    """Whether a test finds the dip that is told which lengths are in it, and where the accuracy
    falls for good: that the answers of a row are as often right within as behind (exact and
    stratified by rows, mid-p), and that the accuracy within is at the threshold (binomial, mid-p),
    each at its level in the test for a single threshold.
    """
    lengths, right = curve.true_lengths, curve.correct
    within = (dip.first <= lengths) & (lengths <= dip.last)
    last = np.flatnonzero(truth.accuracies >= THRESHOLD)[-1]
    behind = (lengths > dip.last) & (lengths <= last)
    asked, asked_behind = (within | behind).sum(axis=1), behind.sum(axis=1)
    of_both, of_behind = (right * (within | behind)).sum(axis=1), (right * behind).sum(axis=1)
    chances = np.ones(1)
    for row in zip(asked, of_both, asked_behind, strict=True):
        chances = np.convolve(chances, _hypergeometric(*map(int, row)))
    found = int(of_behind.sum())
    as_many = chances[found + 1 :].sum() + chances[found] / 2
    few, answered = int(right[within].sum()), int(within.sum())
    at_threshold = [
        math.comb(answered, k) * THRESHOLD**k * (1 - THRESHOLD) ** (answered - k)
        for k in range(few + 1)
    ]
    as_few = sum(at_threshold[:-1]) + at_threshold[-1] / 2
    return bool(as_many < LEVEL and as_few < LEVEL_AT)


def measure(setting: Setting, runs: int) -> Row:
    """One row of the table."""
    row: dict[str, Value] = {
        "shape": setting.shape,
        "rows": setting.rows,
        "samples": setting.samples,
    }
    if dip := DIPS.get(setting.shape):
        drawn = [_draw(dip.shape, setting, run) for run in range(runs)]
        found = [effective_length(curve) for _, curve in drawn]
        said = float(np.mean([not one.one_threshold for one in found]))
        said_and_held = [
            holds_what_it_says(one, truth)
            for one, (truth, _) in zip(found, drawn, strict=True)
            if not one.one_threshold
        ]
        row["told"] = float(np.mean([told_where(dip, *one) for one in drawn]))
        row["held"] = float(np.mean(said_and_held)) if said_and_held else None
    else:
        threshold, shape = THRESHOLD, FALLING[setting.shape]
        curves = [_draw(shape, setting, run)[1] for run in range(runs)]
        said = float(
            np.mean([not has_single_threshold(c, fit(c, threshold), threshold) for c in curves])
        )
        row["told"] = row["held"] = None
    return {**row, "said": said, "missed": ", ".join(_missed(setting, said, row["held"]))}


def _missed(setting: Setting, said: float, held: object) -> Iterator[str]:
    if setting.shape in DIPS and said < SAID:
        yield "said"
    if setting.shape in FALLING and said > FALSELY_SAID:
        yield "falsely said"
    if isinstance(held, float) and held < COVERED:
        yield "coverage"


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape, correlation and number of samples."""
    cases = [
        *product(DIPS, (0.0, CORRELATION), SAMPLES_OF_DIPS),
        *product(FALLING, (0.0, CORRELATION), SAMPLES),
    ]
    yield from spread(partial(measure, runs=runs), [Setting(*case) for case in cases])


SIMULATION = Simulation(
    "how often “no single threshold” is said",
    (
        *SETTING,
        Column("said", "“no single threshold”", ".3f"),
        Column("told", "by a test that is told where the dip is", ".3f"),
        Column("held", "interval of those runs holds", ".3f"),
        Column("missed", "missed"),
    ),
    rows,
)
