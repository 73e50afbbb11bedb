"""Which samples two runs are asked next, so that the comparison of them is decided.

First each run is asked what it lacks of the other, which is a wave of its own. Then rows are added
on the lines where the two differ most likely, or whose accuracy is near the threshold.
`results/simulations` shows how often a comparison that looks before each wave is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.dispersion import nearness
from eyechart.harness.analysis.length.fit import Fit
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.settings.judging import Margin, factor_of
from eyechart.harness.spec import CellKey, Line

WAVES = 4
"""Samples are asked in this many waves, at most; a comparison is looked at before each."""
SURE = 0.02
"""Level at which a look ends the asking; the verdict goes by 5 %, as always. Each look may be wrong
by chance, so they must be surer than a single one."""
_WIDER_AREA, _WIDER_LENGTH = 2.0537 / 1.6449, 2.0537 / 1.96
"""An interval of 90 or 95 % is made one of 96 %, for the same reason."""
_LEAST = 1e-6
"""Least accuracy, so that it has a logit."""
_LIKELY = 0.5
"""Share of the best line's weight from which a line is asked."""

Counts: TypeAlias = Mapping[CellKey, int]
"""Cell -> its samples."""


def is_decided(comparison: Comparison, margin: Margin) -> bool:
    """Whether the answer is found, see `is_found`, or more samples do not help, because something
    else than sight limits a length, or because neither area can fall by more than the margin.
    """
    is_at_floor = comparison.has_same_lines and comparison.is_at_floor(margin)
    return comparison.length.is_limited or is_at_floor or is_found(comparison, margin)


def is_found(comparison: Comparison, margin: Margin) -> bool:
    """Whether one side is right further, or both have the same lines and are equivalent, so surely
    that no more is asked. Samples that one of them lacks would not change it.
    """
    length = comparison.length
    if length.further and length.p is not None and length.p < SURE:
        return True
    is_equivalent = comparison.has_same_lines and comparison.change(margin) == "equivalent"
    middle, *ends = comparison.in_margins(margin)
    wider = _WIDER_AREA if factor_of(margin) is None else _WIDER_LENGTH
    return is_equivalent and all(abs(middle + wider * (end - middle)) < 1 for end in ends)


def is_surely_worse(comparison: Comparison) -> bool:
    """Whether the second has a smaller area at the level `SURE`: then it is asked no more."""
    area = comparison.area
    return area is not None and area.larger > 0 and area.p < SURE


Both: TypeAlias = tuple[Counts, Counts]
"""What each of two runs is to have: all of its cells."""


def missing_pairs(first: JudgedRun, second: JudgedRun) -> Both:
    """Each run with the samples that only the other one has, under the conditions of both."""
    return _with((first, second), _both(first, second))


def planned(run: JudgedRun) -> Counts:
    """The samples of each cell of a run, answered or not."""
    return {cell.key: cell.samples for cell in run.manifest.cells}


def lacking(run: JudgedRun, wanted: Counts) -> int:
    """How many of the wanted samples have no reply."""
    replied = run.samples[run.samples["outcome"] != Outcome.ERROR.place]
    most = np.array([wanted.get(cell.key, 0) for cell in run.manifest.cells])
    answered = replied["index"].to_numpy() < most[replied["cell"].to_numpy()]
    return draws_of(run) * sum(wanted.values()) - int(answered.sum())


def within(run: JudgedRun, wanted: Counts, requests: int | None) -> Counts:
    """What of `wanted` so many requests pay for, beside what the run has planned: the rows with the
    lowest numbers, on all lines alike. All of it without a limit.
    """
    if requests is None:
        return wanted
    counts = dict(planned(run))
    left = math.ceil((requests - lacking(run, counts)) / draws_of(run))
    new = ((row, key) for key, most in wanted.items() for row in range(counts.get(key, 0), most))
    for row, key in sorted(new, key=itemgetter(0))[: max(0, left)]:
        counts[key] = row + 1
    return counts


def draws_of(run: JudgedRun) -> int:
    """How often each sample of a run is asked."""
    return max(cell.draws for cell in run.manifest.cells)


def more_pairs(first: JudgedRun, second: JudgedRun, comparison: Comparison, requests: int) -> Both:
    """Rows more on the lines that tell most, for at most `requests`: one for each draw of a row."""
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
    rows_of_both = requests // (draws_of(first) + draws_of(second))
    for place, rows in rows_more(np.array(list(weights.values())), rows_of_both).items():
        wanted[keys[place]] += rows
    return _with((first, second), wanted)


def more_of_baseline(baseline: JudgedRun, now: JudgedRun, waves: int) -> Counts:
    """The rows that a run shall have after the next wave. On each line it gets an equal share of
    the rows that only its baseline has: with `waves` waves left, one part of that many. After the
    last wave it has all of them.

    `more_pairs` would add rows only on the lines that tell most. The test of equivalence compares
    areas, and needs rows on all lines.
    """
    wanted, has = dict(planned(now)), planned(baseline)
    for key, most in has.items():
        own = wanted.get(key, 0)
        if waves and most > own and key[0] in now.conditions:
            wanted[key] = own - (own - most) // waves
    return wanted


def line_weights(first: Fit, second: Fit, lines: Sequence[Line]) -> Floats:
    """How much a pair on each line tells, shape (L,): the difference of the two fitted accuracies,
    plus the mean of how near both are to the threshold.
    """
    lengths = [line.length for line in lines]
    accuracies, near = [], []
    for fitted in (first, second):
        places = np.clip(fitted.bins.places(lengths), 0, fitted.bins.count - 1)
        accuracies.append(np.clip(fitted.accuracy[places], _LEAST, 1 - _LEAST))
        near.append(nearness(accuracies[-1], fitted.required))
    return abs(accuracies[0] - accuracies[1]) + (near[0] + near[1]) / 2


def rows_more(weights: Floats, most: int) -> dict[int, int]:
    """Place of a line -> the rows that are added to it, at most `most` in all. Each line that tells
    about as much as the best one gets the same number.
    """
    best_first = np.argsort(-weights, kind="stable").tolist()
    best = weights.max(initial=0)
    likely = [place for place in best_first if weights[place] >= _LIKELY * best][:most]
    return {place: most // len(likely) for place in likely}


def next_wave(left: int, done: int) -> int:
    """Requests in the next wave; `left` requests are left, and `done` waves were asked."""
    return left // (WAVES - done) if done < WAVES else 0


def _both(first: JudgedRun, second: JudgedRun) -> Counts:
    """The cells under conditions that both runs have, each with the larger number of samples."""
    common = set(first.conditions) & set(second.conditions)
    wanted: dict[CellKey, int] = {}
    for cell in (*first.manifest.cells, *second.manifest.cells):
        if cell.condition in common:
            wanted[cell.key] = max(cell.samples, wanted.get(cell.key, 0))
    return by_line(wanted)


def by_line(counts: Counts) -> Counts:
    return dict(sorted(counts.items(), key=lambda item: item[0][1]))


def _with(runs: tuple[JudgedRun, JudgedRun], wanted: Counts) -> Both:
    first, second = ({**planned(run), **wanted} for run in runs)
    return first, second


def full_run(run: JudgedRun) -> int:
    """The requests of a full run: as many samples on every line as on the largest one."""
    cells = run.manifest.cells
    conditions = {cell.condition for cell in cells}
    lines = {cell.line for cell in cells}
    return len(conditions) * len(lines) * max(cell.samples for cell in cells) * draws_of(run)
