"""What the intervals of confidence in forced choices cover, and the bias of calibration errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np
from scipy.special import ndtri

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.tables.confidence import (
    Calibration,
    ForcedChoices,
    brier_interval,
    calibration,
    overconfidence_interval,
)
from tests.benchmarks.simulation.draws import CORRELATION
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread

OPTIONS = 11
SAMPLES = (10, 20, 40, 100)
_LINES = 8
"""Lines whose samples a calibration error is taken of together."""
_BINS, _LEAST = 10, 5
_MANY = 200_000
DrawSummary = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
"""Confidence of N samples, and the probability that each is right."""


def _beta(mean: float, size: float, right: Callable[[Floats], Floats]) -> DrawSummary:
    """Confidences above chance with this mean; a larger size means that they vary less."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        share = (mean - 1 / OPTIONS) / (1 - 1 / OPTIONS)
        drawn = rng.beta(share * size, (1 - share) * size, n)
        sure: Floats = 1 / OPTIONS + (1 - 1 / OPTIONS) * drawn
        return sure, right(sure)

    return draw


def _always(accuracy: float) -> Callable[[Floats], Floats]:
    return lambda sure: np.full_like(sure, accuracy)


SHAPES: Mapping[str, DrawSummary] = {
    "calibrated": _beta(0.6, 3, lambda sure: sure),
    "sure and right": _beta(0.97, 30, _always(0.98)),
    "sure and blind": _beta(0.93, 30, _always(0.05)),
    "unsure and blind": _beta(0.3, 20, _always(1 / OPTIONS)),
    "right and unsure": _beta(0.5, 10, _always(0.95)),
    "surer where wrong": _beta(0.6, 3, lambda sure: 1.09 - sure),
}


def draw(
    shape: str, rng: np.random.Generator, samples: int, lines: int = 1, together: float = 0.0
) -> ForcedChoices:
    """Samples of so many rows at each line; what the first choice leaves is shared evenly by the
    other options. `together` is the correlation of the verdicts on a row at two lines.
    """
    n = samples * lines
    rows = np.arange(n) // lines
    sure, share = SHAPES[shape](rng, n)
    of_row, own = rng.standard_normal(samples)[rows], rng.standard_normal(n)
    right = math.sqrt(together) * of_row + math.sqrt(1 - together) * own < ndtri(share)
    rest = (1 - sure) / (OPTIONS - 1)
    of_right = (1 - sure) ** 2 + (OPTIONS - 1) * rest**2
    of_wrong = sure**2 + (1 - rest) ** 2 + (OPTIONS - 2) * rest**2
    brier = np.where(right, of_right, of_wrong)
    return ForcedChoices(np.zeros(n, np.int64), right, sure, brier, np.zeros(n, bool), rows)


def uncorrected(chosen: ForcedChoices, bins: int = _BINS) -> float:
    """The calibration error as it is usually computed, in the same bins."""
    order = np.argsort(chosen.confidence, kind="stable")
    parts = np.array_split((chosen.confidence - chosen.right)[order], bins)
    return float(sum(len(part) * abs(part.mean()) for part in parts) / len(order))


def _calibration(chosen: ForcedChoices) -> Calibration:
    found = calibration(chosen)
    assert found is not None
    return found


def measure(case: tuple[str, int], runs: int) -> Row:
    """One row of the table."""
    shape, samples = case
    many = draw(shape, np.random.default_rng([99]), _MANY)
    bins = min(_BINS, samples // _LEAST)
    truths = (
        float((many.confidence - many.right).mean()),
        float(many.brier.mean()),
        uncorrected(many, bins),
        uncorrected(many),
    )
    held, widths = np.zeros((runs, 4)), np.zeros((runs, 4))
    errors = np.zeros((runs, 2))
    for run in range(runs):
        rng = np.random.default_rng([run, samples])
        line = draw(shape, rng, samples)
        alike = draw(shape, rng, samples, _LINES, CORRELATION)
        intervals = (
            overconfidence_interval(line.confidence, line.right),
            brier_interval(line.brier),
            _calibration(line)[1:],
            _calibration(alike)[1:],
        )
        for place, ((low, high), truth) in enumerate(zip(intervals, truths, strict=True)):
            held[run, place] = low <= truth <= high
            widths[run, place] = high - low
        condition = draw(shape, rng, samples, _LINES)
        errors[run] = uncorrected(condition), _calibration(condition).error
    usual, corrected = errors.mean(axis=0) - uncorrected(many)
    return {
        "shape": shape,
        "samples": samples,
        "held": float(held[:, 0].mean()),
        "width": float(np.median(widths[:, 0])),
        "brier_held": float(held[:, 1].mean()),
        "brier_width": float(np.median(widths[:, 1])),
        "line_held": float(held[:, 2].mean()),
        "line_width": float(np.median(widths[:, 2])),
        "lines_held": float(held[:, 3].mean()),
        "lines_width": float(np.median(widths[:, 3])),
        "usual": float(usual),
        "corrected": float(corrected),
        "runs": runs,
    }


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape and number of samples."""
    yield from spread(partial(measure, runs=runs), product(SHAPES, SAMPLES))


SIMULATION = Simulation(
    "coverage of the intervals of confidence less accuracy, of Brier scores and of the expected "
    "calibration error, of a line and over eight lines whose rows go together, and the bias of the "
    "latter where they do not",
    (
        Column("shape", "shape"),
        Column("samples", "samples of a line"),
        Column("held", "confidence less accuracy holds", ".3f"),
        Column("width", "its median width", ".2f"),
        Column("brier_held", "Brier score holds", ".3f"),
        Column("brier_width", "its median width", ".2f"),
        Column("line_held", "calibration error of a line holds", ".3f"),
        Column("line_width", "its median width", ".2f"),
        Column("lines_held", "of eight lines holds", ".3f"),
        Column("lines_width", "its median width", ".2f"),
        Column("usual", "bias, not corrected", "+.3f"),
        Column("corrected", "bias, corrected", "+.3f"),
    ),
    rows,
)
