"""Which samples two runs are asked next, so that the comparison of them is decided.

First each run is asked what it lacks of the other. Then rows are added on the lines where the two
differ most likely, or where a reply is least certain: around both crossings. `docs/simulations.md`
shows how often a comparison that looks after each wave is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eyechart.harness.analysis.comparison import Comparison
from eyechart.harness.analysis.curve import Floats
from eyechart.harness.analysis.fit import Fit
from eyechart.harness.analysis.judged_run import JudgedRun
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec import CellKey, Line

WAVES = 4
"""Rows are added in so many waves, at most; a comparison is looked at after each."""
SURE = 0.02
"""Level at which a look ends the asking; the verdict goes by 5 %, as always. Each look may be wrong
by chance, so they must be surer than a single one."""
_WIDER = 2.0537 / 1.6449
"""An interval of 90 % is made one of 96 %, for the same reason."""
_LIKELY = 0.5
"""Share of the best line's weight from which a line is asked."""

Counts = Mapping[CellKey, int]
"""Cell -> its samples."""


def is_decided(comparison: Comparison, margin: float) -> bool:
    """Whether one side sees further, or both are equivalent, so surely that no more is asked; or
    whether something else than sight limits a length, so that more samples do not help.
    """
    length, area = comparison.length, comparison.area
    if length.is_limited or (length.further and length.p is not None and length.p < SURE):
        return True
    if area is None or comparison.change(margin) != "equivalent":
        return False
    ends = (area.difference + _WIDER * (end - area.difference) for end in area.equivalence_ci)
    return all(abs(end) < margin for end in ends)


@dataclass(frozen=True, slots=True)
class Pending:
    """What two runs are to have, and how much of it they lack."""

    counts: tuple[Counts, Counts]
    """All cells of each run."""
    lacks: tuple[int, int]
    """Samples of each run that have no reply yet."""

    @property
    def requests(self) -> int:
        return sum(self.lacks)


def missing_pairs(first: JudgedRun, second: JudgedRun) -> Pending:
    """Each run with the samples that only the other one has, under the conditions of both."""
    return _pending((first, second), _both(first, second))


def more_pairs(
    first: JudgedRun, second: JudgedRun, comparison: Comparison, requests: int
) -> Pending:
    """Rows more on the lines that tell most, for at most so many requests."""
    wanted = dict(_both(first, second))
    weights: dict[CellKey, float] = {}
    for compared in comparison.conditions:
        estimates = compared.estimates
        if estimates[0] is None or estimates[1] is None or compared.length.is_limited:
            continue
        condition = compared.condition
        lines = [line for at, line in wanted if at == condition]
        found = line_weights(estimates[0].fit, estimates[1].fit, lines)
        weights |= zip(((condition, line) for line in lines), found.tolist(), strict=True)
    keys = list(weights)
    for place, rows in rows_more(np.array(list(weights.values())), requests).items():
        wanted[keys[place]] += rows
    return _pending((first, second), wanted)


def line_weights(first: Fit, second: Fit, lines: Sequence[Line]) -> Floats:
    """How much a pair on each line tells: the difference of both accuracies, as fitted, and the
    standard deviation of a difference of two replies; shape (L,).
    """
    accuracies = [
        fitted.accuracy[np.clip(fitted.bins.places([line.length for line in lines]), 0, last)]
        for fitted, last in ((one, one.bins.count - 1) for one in (first, second))
    ]
    variance = sum(one * (1 - one) for one in accuracies)
    weights: Floats = abs(accuracies[0] - accuracies[1]) + np.sqrt(variance)
    return weights


def rows_more(weights: Floats, requests: int) -> dict[int, int]:
    """Place of a line -> the rows that it gets more, for at most so many requests of both runs: as
    many for each line that tells about as much as the best one.
    """
    best_first = np.argsort(-weights, kind="stable").tolist()
    likely = [place for place in best_first if weights[place] >= _LIKELY * weights.max()]
    likely = likely[: requests // 2]
    return {place: requests // (2 * len(likely)) for place in likely}


def _both(first: JudgedRun, second: JudgedRun) -> Counts:
    """The cells of both runs under the conditions that both have, each with the more samples."""
    common = set(first.conditions) & set(second.conditions)
    wanted: dict[CellKey, int] = {}
    for cell in (*first.manifest.cells, *second.manifest.cells):
        if cell.condition in common:
            wanted[cell.key] = max(cell.samples, wanted.get(cell.key, 0))
    return dict(sorted(wanted.items(), key=lambda item: item[0][1]))


def _pending(runs: tuple[JudgedRun, JudgedRun], wanted: Counts) -> Pending:
    counts = [
        {cell.key: cell.samples for cell in run.manifest.cells} | dict(wanted) for run in runs
    ]
    lacks = []
    for run, of_run in zip(runs, counts, strict=True):
        replied = run.samples[run.samples["outcome"] != Outcome.ERROR.place]
        planned = np.array([of_run[cell.key] for cell in run.manifest.cells])
        answered = replied["index"].to_numpy() < planned[replied["cell"].to_numpy()]
        lacks.append(sum(of_run.values()) - int(answered.sum()))
    return Pending((counts[0], counts[1]), (lacks[0], lacks[1]))


def full_run(run: JudgedRun) -> int:
    """The requests of a full run: as many samples on every line as on the largest one."""
    cells = run.manifest.cells
    conditions = {cell.condition for cell in cells}
    lines = {cell.line for cell in cells}
    return len(conditions) * len(lines) * max(cell.samples for cell in cells)
