"""Which samples an adaptive run asks next: those that tell most about the effective length.

A run begins at its shortest lines and opens longer ones until the accuracy has probably fallen
below the threshold. Then each wave asks three quarters of its samples where the crossing may lie,
and a quarter on the shorter line that is least certain to reach the threshold, so that a dip is
found. A condition ends when its interval is narrow enough and no shorter line is in doubt, or when
it has no single threshold. All decisions follow from the run's folder alone.

`docs/statistics.md` shows what this saves, and what intervals cover after stopping early.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from harness.analysis.curve import Curve, Threshold
from harness.analysis.effective_length import at_most
from harness.analysis.fit import Fit, Tails, fit
from harness.analysis.judged_run import JudgedRun
from harness.spec import CellKey, Condition, Line

FIRST_LINES = 3
"""Lines that are opened at once."""
FIRST_SAMPLES = 2
"""Samples of a line when it is opened."""
BEYOND = 0.1
"""Longer lines are opened while the crossing lies beyond the opened ones with at least this
probability."""
CHECKING = 0.25
"""Share of a wave for the shorter line that is least certain."""
LEAST_SAMPLES, MOST_DOUBT = 5, 0.72
"""A line below the interval has at least so many samples, and its own answers leave at most this
probability of an accuracy below the threshold."""
MISFIT_LEVEL = 0.005
"""Level of the test for a single threshold; it is low because each wave tests."""
STOPPING: Tails = (0.02, 0.98)
"""Ends of the interval whose width decides. It is wider than the 95 % interval that is reported,
because looking after each wave favours moments at which it is too narrow by chance."""


@dataclass(frozen=True, slots=True)
class Aim:
    """When an adaptive run is precise enough, and how it gets there."""

    precision: float
    """Width of the interval at which a condition ends, in octaves."""
    threshold: Threshold = Threshold()
    wave: int = 8
    """Samples of each condition in a wave."""
    most_samples: int = 400
    """Samples of one line, at most."""

    def on(self, lines: Sequence[Line]) -> Aim:
        """The aim on these lines: where they leave gaps, nothing can be known more precisely."""
        return replace(self, precision=round(self.precision + widest_gap(lines), 2))


@dataclass(frozen=True, slots=True)
class Choice:
    """The plan after the next wave."""

    counts: Mapping[CellKey, int]
    """Cell -> its samples; equal to the present plan where nothing more is asked."""
    done: Mapping[Condition, str]
    """Condition that nothing more is asked of -> why."""


def choose(
    run: JudgedRun | None,
    conditions: Sequence[Condition],
    lines: Sequence[Line],
    aim: Aim,
    *,
    most_requests: int | None = None,
) -> Choice:
    """The next wave of `run` on `lines`, which ascend; `None` is a run that has not begun.

    `most_requests` limits the samples of the whole plan.
    """
    counts = {} if run is None else {cell.key: cell.samples for cell in run.manifest.cells}
    done: dict[Condition, str] = {}
    wanted: dict[Condition, dict[Line, int]] = {}
    for condition in conditions:
        judged = None if run is None else run.conditions.get(condition)
        planned = {line: counts.get((condition, line), 0) for line in lines}
        more, why = next_samples(None if judged is None else judged.curve, planned, aim)
        if why:
            done[condition] = why
        wanted[condition] = more
    left = None if most_requests is None else max(0, most_requests - sum(counts.values()))
    for condition, more in wanted.items():
        for line, samples in more.items():
            allowed = samples if left is None else min(samples, left)
            if left is not None:
                left -= allowed
            if allowed < samples:
                done.setdefault(condition, f"the limit of {most_requests:,} requests is reached")
            if allowed:
                counts[condition, line] = counts.get((condition, line), 0) + allowed
    return Choice(counts, done)


def widest_gap(lines: Sequence[Line]) -> float:
    """Octaves between neighbouring lines that have no sample, so that nothing can tell where in
    them a crossing lies: 0 for bands that meet.
    """
    gaps = [math.log2((longer.low - 1) / line.high) for line, longer in pairwise(lines)]
    return max([0.0, *gaps])


def next_samples(
    samples: Curve | None, planned: Mapping[Line, int], aim: Aim
) -> tuple[dict[Line, int], str]:
    """How many more samples one condition gets on each line, and why none where it is done.

    `planned` has all lines, ascending, with their samples so far.
    """
    lines = list(planned)
    opened = sum(planned[line] > 0 for line in lines)
    first = min(FIRST_SAMPLES, aim.most_samples)
    if not opened:
        return dict.fromkeys(lines[:FIRST_LINES], first), ""
    if samples is None:
        return {}, "nothing could be scored"
    last_opened = max(place for place, line in enumerate(lines) if planned[line])
    unopened = lines[last_opened + 1 :]
    considered = unopened[0] if unopened else lines[-1]
    fitted = fit(samples, aim.threshold, longest=float(considered.high))
    beyond = float(fitted.reaches(np.array([lines[last_opened].high], float))[0])
    if unopened and beyond > BEYOND:
        return dict.fromkeys(unopened[:FIRST_LINES], first), ""
    lines_in_doubt = _lines_in_doubt(samples, fitted, planned, aim)
    if (not unopened or beyond <= 1 - STOPPING[1]) and (
        why := _why_done(fitted, lines, aim, certain=not lines_in_doubt)
    ):
        return {}, why
    more = _wave(samples, fitted, planned, aim, lines_in_doubt)
    return more, "" if more else f"every line near the crossing has {aim.most_samples:,} samples"


def _lines_in_doubt(
    samples: Curve, fitted: Fit, planned: Mapping[Line, int], aim: Aim
) -> list[Line]:
    """Lines below the interval that may not reach the threshold, or have few samples."""
    low = fitted.place(STOPPING[0])
    if low == -math.inf:
        return []
    shortest = fitted.bins.longest if low == math.inf else fitted.bins.length(low)
    counts = {
        line: (int(correct), int(n))
        for line, correct, n in zip(
            samples.lines, samples.correct.sum(axis=0), samples.n, strict=True
        )
    }
    return [
        line
        for line, asked in planned.items()
        if line.high < shortest
        and asked < aim.most_samples
        and (
            asked < LEAST_SAMPLES or _doubt(*counts.get(line, (0, 0)), fitted.required) > MOST_DOUBT
        )
    ]


def _why_done(fitted: Fit, lines: Sequence[Line], aim: Aim, *, certain: bool) -> str:
    """Why the condition needs no more samples; empty where it does. `certain`: no line is in
    doubt.
    """
    if not fitted.one_threshold(MISFIT_LEVEL):
        return "its accuracy has no single threshold"
    if not certain or fitted.octaves(STOPPING) > aim.precision:
        return ""
    median = fitted.median
    if median.sign == ">":
        return f"it still reaches {aim.threshold} at {lines[-1].high:,}"
    if median.sign == "<":
        return f"it does not reach {aim.threshold} at {lines[0].low:,}"
    return f"its effective length is known to {aim.precision:g} octaves"


def _wave(
    samples: Curve,
    fitted: Fit,
    planned: Mapping[Line, int],
    aim: Aim,
    lines_in_doubt: Sequence[Line],
) -> dict[Line, int]:
    """A wave of samples, as far as lines have room for more.

    Where the interval is narrow enough, all of them go to the lines in doubt.
    """
    lines = list(planned)
    room = {line: max(0, aim.most_samples - planned[line]) for line in lines}
    more: Counter[Line] = Counter()
    narrow = fitted.octaves(STOPPING) <= aim.precision
    checks = aim.wave if narrow and lines_in_doubt else round(CHECKING * aim.wave)
    matched = aim.wave - checks
    for place in _where_to_look(fitted, matched):
        more[_line_at(lines, fitted, place)] += 1
    middle = lines.index(_line_at(lines, fitted, fitted.place(0.5)))
    checked_lines = lines_in_doubt if checks == aim.wave else lines[: max(1, middle)]
    correct = dict(zip(samples.lines, samples.correct.sum(axis=0), strict=True))
    scored = dict(zip(samples.lines, samples.n, strict=True))
    for _ in range(checks):
        # a sample of this wave counts as correct until its reply is there
        checked = max(
            checked_lines,
            key=lambda line: _doubt(
                int(correct.get(line, 0)) + more[line],
                int(scored.get(line, 0)) + more[line],
                fitted.required,
            ),
        )
        more[checked] += 1
    return {line: min(count, room[line]) for line, count in more.items() if room[line]}


def _doubt(correct: int, n: int, required: float) -> float:
    """Probability that the accuracy of a line is below `required`, from its own answers alone.

    The prior is uniform, so this is the tail of a beta distribution, written as a binomial one.
    """
    return 1 - at_most(correct, n + 1, required)


def _where_to_look(fitted: Fit, count: int) -> list[float]:
    """Places, in bins, for `count` samples: half of them where the crossing lies with equal
    probabilities, half spread evenly over its interval, since the ends of that are to move.
    """
    last = len(fitted.below) - 1
    low, high = (min(max(fitted.place(tail), 0), last) for tail in STOPPING)
    evenly = count // 2
    likely = count - evenly
    return [
        *(fitted.place((draw + 0.5) / likely) for draw in range(likely)),
        *(low + (high - low) * (draw + 0.5) / evenly for draw in range(evenly)),
    ]


def _line_at(lines: Sequence[Line], fitted: Fit, place: float) -> Line:
    """The line at a place, in bins; the nearest one outside the range."""
    if place == -math.inf:
        return lines[0]
    length = fitted.bins.longest if place == math.inf else fitted.bins.length(place)
    return next((line for line in lines if line.high + 0.5 >= length), lines[-1])
