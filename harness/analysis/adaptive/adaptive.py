"""Which samples an adaptive run asks next: those that tell most about the effective length.

A run begins at its shortest lines and opens longer ones until the accuracy has probably fallen
below the threshold. Then each wave asks three quarters of its samples where the crossing may lie,
and a quarter on the shorter line that is least certain to reach the threshold, so that a dip is
found. Once the interval is narrow enough, all samples go to the shorter lines that are still in
doubt. A condition ends when there are none, or when it has no single threshold. By default the
interval is narrow enough when that of a full run would be no narrower. All decisions follow from
the run's folder alone.

`results/simulations` shows what this saves, and what intervals cover after stopping early.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eyechart.harness.analysis.length.bins import BINS_AN_OCTAVE
from eyechart.harness.analysis.length.curve import Curve, threshold_text
from eyechart.harness.analysis.length.effective_length import has_single_threshold
from eyechart.harness.analysis.length.fit import WIDE, Fit, Tails, fit
from eyechart.harness.analysis.length.interval import Span, at_most, span_text
from eyechart.harness.analysis.length.one_threshold import LEVEL_OF_CHOSEN
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.plan.selection import MOST_SAMPLES
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import CellKey, Condition, Line
from eyechart.providers.naming import named

FIRST_LINES = 3
"""Number of lines that are opened at once."""
FIRST_SAMPLES = 2
"""Samples of a line when it is opened."""
BEYOND = 0.1
"""Longer lines are opened while the crossing lies beyond the opened ones with at least this
probability."""
CHECKING = 0.25
"""Share of a wave for the shorter line that is least certain."""
LEAST_SAMPLES = 8
"""A line below the interval has at least this many samples, so that chance seldom hides a dip."""
MOST_DOUBT = 0.4
"""The answers of a line below the interval leave at most this probability of an accuracy below the
threshold."""
END_SAMPLES = 10
"""Least number of samples on the first line if the interval ends below it, and on the last line if
it ends above: such an end must not follow from other lines alone."""
UNCLEAR_LEVEL = 0.2
"""While the test for a single threshold fails at this level, samples are added to the line that is
farthest from the fitted curve.
"""
UNCLEAR_SAMPLES = 30
"""A line with this many samples gets no more for that reason."""
UNCLEAR_MISFIT = 1.0
"""A line nearer to the curve than this many standard deviations gets no more either."""
NARROWEST = 3 / BINS_AN_OCTAVE
"""Octaves: with enough samples an interval becomes this narrow around each crossing. The lengths on
its two sides are at most two bins apart, and an interval has `MARGIN` more at each end."""
STOPPING: Tails = (0.02, 0.98)
"""Ends of the interval whose width decides. It is wider than the 95 % interval that is reported,
because looking after each wave favours moments at which it is too narrow by chance."""
WIDEST = 2.0
"""Octaves: a run that aims at the interval of a full run goes on where that one is wider than this,
because a run that ends after very few samples has intervals that hold too seldom."""
CLEAR = 0.9
"""Between exact lengths that are far apart, the answers of the full run that a run is compared with
have this quantile of the accuracy, so that it seldom ends with an interval one length wider."""


@dataclass(frozen=True, slots=True)
class Aim:
    """When an adaptive run is precise enough, and how it gets there."""

    precision: float | None = None
    """Width of the interval at which a condition ends, in octaves; at least `NARROWEST`. `None` is
    the width that a full run would have; a condition then has at most the samples of a full run.
    """
    full_samples: int = 20
    """Samples of a line in a full run."""
    threshold: float = THRESHOLD
    wave: int = 8
    """Samples of each condition in a wave."""
    most_samples: int = MOST_SAMPLES
    """Samples of one line, at most."""
    items: Mapping[Line, int] = field(default_factory=dict)
    """Line -> samples that exist of it; a line that is not here has as many as are wanted."""

    def most_requests(self, lines: int) -> int | None:
        """Samples of a condition on this many lines, at most: it ends with what is known then.
        `None` is no limit.
        """
        return lines * self.full_samples if self.precision is None else None

    def most(self, line: Line) -> int:
        return self.least(line, self.most_samples)

    def least(self, line: Line, wanted: int) -> int:
        """The samples that are `wanted` of a line, or all that exist."""
        return min(wanted, self.items.get(line, wanted))


@dataclass(frozen=True, slots=True)
class Step:
    """What one condition is asked next, and how well its effective length is known."""

    more: Mapping[Line, int]
    """Samples to add; none where the condition is done."""
    found: str = "nothing is known of its effective length"
    """How well the effective length is known."""
    octaves: float = math.inf
    """Width in octaves of the interval in `found`, within the tested range."""
    is_known: bool = False
    """Whether the effective length is known as well as wanted, or there is no single one."""
    is_narrow: bool = False
    """Whether the interval is narrow enough, so that only lines in doubt are asked."""
    full: str = ""
    """Why nothing can be asked although the effective length is not known well enough."""
    needs_items: bool = False
    """Whether the reason is that all items near the crossing were asked."""

    @property
    def why(self) -> str:
        """Why nothing more is asked; empty if something is."""
        if self.is_known:
            return self.found
        return f"{self.found}; {self.full}" if self.full else ""


@dataclass(frozen=True, slots=True)
class NextWave:
    """The plan after the next wave."""

    counts: Mapping[CellKey, int]
    """Cell -> its samples; equal to the present plan where nothing more is asked."""
    steps: Mapping[Condition, Step]


def choose(
    run: JudgedRun | None,
    conditions: Sequence[Condition],
    lines: Sequence[Line],
    aim: Aim,
    *,
    most_requests: int | None = None,
) -> NextWave:
    """The next wave of `run` on `lines`, which ascend; `None` is a run that has not begun.

    `most_requests` limits the samples of the whole plan.
    """
    counts = {} if run is None else {cell.key: cell.samples for cell in run.manifest.cells}
    steps: dict[Condition, Step] = {}
    for condition in conditions:
        judged = None if run is None else run.conditions.get(condition)
        planned = {line: counts.get((condition, line), 0) for line in lines}
        steps[condition] = next_step(None if judged is None else judged.curve, planned, aim)
    left = None if most_requests is None else max(0, most_requests - sum(counts.values()))
    for condition, step in steps.items():
        for line, samples in step.more.items():
            allowed = samples if left is None else min(samples, left)
            if left is not None:
                left -= allowed
            if allowed:
                counts[condition, line] = counts.get((condition, line), 0) + allowed
    return NextWave(counts, steps)


def neighbours(length: float, lines: Sequence[Line]) -> tuple[int, int]:
    """The two lengths that can be asked on both sides of `length`; outside the lines both are the
    nearest one. No reply can tell where between them a crossing lies.
    """
    whole = math.floor(min(max(length, lines[0].low - 1), lines[-1].high))
    shorter = [min(whole, line.high) for line in lines if line.low <= length]
    longer = [max(whole + 1, line.low) for line in lines if line.high > length]
    return max(shorter, default=lines[0].low), min(longer, default=lines[-1].high)


def next_step(samples: Curve | None, planned: Mapping[Line, int], aim: Aim) -> Step:
    """What one condition is asked next. `planned` has all lines, ascending, with their samples."""
    step = _next_step(samples, planned, aim)
    most = aim.most_requests(len(planned))
    if most is None or not step.more:
        return step
    asked = sum(planned.values())
    left = most - asked
    if left <= 0:
        full = "as many as" if not left else f"more than the {most:,} that"
        found = f"{step.found}; {asked:,} samples were asked, {full} a full run has"
        found += f"; {named('precision')} asks for more"
        return replace(step, more={}, found=found, is_known=True)
    more: dict[Line, int] = {}
    for line, samples_of_line in step.more.items():
        if left > 0:
            more[line] = min(samples_of_line, left)
            left -= more[line]
    return replace(step, more=more)


def _next_step(samples: Curve | None, planned: Mapping[Line, int], aim: Aim) -> Step:
    """The next step without a limit of requests."""
    lines = list(planned)
    opened = sum(planned[line] > 0 for line in lines)
    if not opened:
        return Step(_opening(lines, aim))
    if samples is None:
        return Step({}, full="nothing could be scored")
    last_opened = max(place for place, line in enumerate(lines) if planned[line])
    unopened = lines[last_opened + 1 :]
    considered = unopened[0] if unopened else lines[-1]
    fitted = fit(samples, aim.threshold, longest=float(considered.high))
    beyond = 1 - float(fitted.below[fitted.bins.places(lines[last_opened].high)])
    reported = fitted.up_to(float(samples.lines[-1].high))
    step = _step(reported, aim.threshold)
    if unopened and beyond > BEYOND:
        return replace(step, more=_opening(unopened, aim))
    wanted = _octaves_wanted(fitted, lines, aim)
    is_narrow = _is_narrow(fitted, wanted, lines)
    ends = _few_at_the_ends(fitted, planned, aim)
    lines_in_doubt = _lines_in_doubt(samples, fitted, planned, ends, aim) if is_narrow else []
    if not unopened or beyond <= 1 - STOPPING[1]:
        if not has_single_threshold(samples, fitted, aim.threshold, LEVEL_OF_CHOSEN):
            return replace(step, found="its accuracy has no single threshold", is_known=True)
        if is_narrow and not ends and not lines_in_doubt:
            if unopened and reported.interval()[1].sign == ">":
                return replace(step, more=_opening(unopened[:1], aim))
            reason = _why_wide(reported, aim.precision or wanted, lines)
            return replace(step, found=step.found + reason, is_known=True)
    more = _wave(samples, fitted, planned, aim, lines_in_doubt)
    if not more and beyond > 1 - STOPPING[1]:
        more = _opening(unopened, aim)
    step = replace(step, more=more, is_narrow=is_narrow)
    return step if more else _stuck(step, fitted, lines, aim)


def _stuck(step: Step, fitted: Fit, lines: Sequence[Line], aim: Aim) -> Step:
    """The step where nothing can be asked, with the reason."""
    middle = _line_at(lines, fitted, fitted.place(0.5))
    if not step.is_narrow and aim.most(middle) < aim.most_samples:
        return replace(
            step, full="every item of the lines near the crossing was asked", needs_items=True
        )
    few = "the lines in doubt have" if step.is_narrow else "every line near the crossing has"
    full = f"{few} {aim.most_samples:,} sample{'s' * (aim.most_samples > 1)}"
    if aim.precision is None and aim.most_samples >= aim.full_samples:
        return replace(step, found=f"{step.found}; {full}, as in a full run", is_known=True)
    return replace(step, full=full)


def _opening(unopened: Sequence[Line], aim: Aim) -> dict[Line, int]:
    """The first samples of the next lines."""
    return {line: min(FIRST_SAMPLES, aim.most(line)) for line in unopened[:FIRST_LINES]}


def _octaves_wanted(fitted: Fit, lines: Sequence[Line], aim: Aim) -> float:
    """The width of the interval at which the condition ends, in octaves. Where nothing is asked
    between the neighbours of the crossing, their distance is added to a precision; the interval of
    a full run has it. It is then one length narrower or wider, so the answers of that run count as
    clear ones.
    """
    shorter, longer = _around_the_crossing(fitted, lines)
    apart = math.log2(longer / shorter) if longer - shorter > 1 else 0.0
    if aim.precision is not None:
        return aim.precision + apart
    full = fitted.expected(lines, aim.full_samples, CLEAR if apart else 0.5)
    widest = WIDE if full.octaves_between() <= WIDE else WIDEST  # from there on it is joined
    return min(widest + apart, full.octaves_between(STOPPING))


def _is_narrow(fitted: Fit, wanted: float, lines: Sequence[Line]) -> bool:
    """Whether the interval to stop at, and the reported one with its ends in whole lengths, are at
    most `wanted` octaves wide, or the first of them is about as narrow as it can become. An
    interval that is open at both ends is never narrow.
    """
    low, high = fitted.between_quantiles(STOPPING)
    if low.sign == "<" and high.sign == ">":
        return False
    shorter, longer = _around_the_crossing(fitted, lines)
    width = fitted.octaves_between(STOPPING)
    reported = _octaves(fitted.between_quantiles())
    return max(width, reported) <= wanted or width <= NARROWEST + math.log2(longer / shorter)


def _around_the_crossing(fitted: Fit, lines: Sequence[Line]) -> tuple[int, int]:
    """The two lengths that can be asked on both sides of the median of the crossing."""
    place = fitted.place(0.5)
    return neighbours(fitted.bins.length(place) if math.isfinite(place) else place, lines)


def _why_wide(fitted: Fit, wanted: float, lines: Sequence[Line]) -> str:
    """Why the interval of a condition that ends is open, or wider than `wanted`; else empty."""
    low, high = fitted.interval()
    reasons = []
    if low.sign == "<" and high.sign == "=":
        reasons.append("no shorter length was asked")
    if low.sign == "=" and high.sign == ">":
        reasons.append("no longer length was asked")
    if _width(fitted) > wanted:
        shorter, longer = _around_the_crossing(fitted, lines)
        if longer - shorter > 1 and fitted.octaves() > wanted:
            reasons.append(f"no length between {shorter:,} and {longer:,} is asked")
        elif not reasons:
            reasons.append("more samples make it hardly narrower")
    return "".join(f"; {reason}" for reason in reasons)


def _width(fitted: Fit) -> float:
    """Octaves between the ends of the interval as they are reported, in whole lengths."""
    return _octaves(fitted.interval())


def _octaves(interval: Span) -> float:
    return math.log2(interval[1].length / interval[0].length)


def _step(fitted: Fit, threshold: float) -> Step:
    """How well the effective length is known, without what to ask next."""
    low, high = fitted.interval()
    if low.sign == "<" and high.sign == ">":
        return Step({})
    if low.sign == ">":
        found = f"it still reaches {threshold_text(threshold)} at {low.length:,.0f}"
    elif high.sign == "<":
        found = f"it does not reach {threshold_text(threshold)} at {high.length:,.0f}"
    elif low.sign == high.sign == "=":
        known = f"{_width(fitted):.2f} octaves ({span_text((low, high))})"
        found = f"its effective length is known to {known}"
    else:
        found = f"its effective length is {span_text((low, high))}"
    return Step({}, found, _width(fitted))


def _few_at_the_ends(fitted: Fit, planned: Mapping[Line, int], aim: Aim) -> list[Line]:
    """The first line, if the interval ends below it, and the last one, if it is opened and the
    interval ends above it; each only if it has few samples.
    """
    lines = list(planned)
    low, high = fitted.between_quantiles(STOPPING)
    ends = [(lines[0], low.sign == "<"), (lines[-1], high.sign == ">")]
    return [
        line
        for line, is_open in ends
        if is_open and 0 < planned[line] < aim.least(line, END_SAMPLES)
    ]


def _lines_in_doubt(
    samples: Curve, fitted: Fit, planned: Mapping[Line, int], ends: Sequence[Line], aim: Aim
) -> list[Line]:
    """`ends`, and the lines below the interval that may not reach the threshold, or have few
    samples. If there are none, and it is unclear whether there is a single threshold: the line
    that is farthest from the curve.
    """
    shortest = fitted.bins.length(fitted.place(STOPPING[0]))
    counts = {
        line: (int(correct), int(n))
        for line, correct, n in zip(
            samples.lines, samples.correct.sum(axis=0), samples.n, strict=True
        )
    }
    below = {line for line in planned if line.high < shortest}
    few = {line for line in below if planned[line] < aim.least(line, LEAST_SAMPLES)}
    doubtful = {
        line for line in below if _doubt(*counts.get(line, (0, 0)), fitted.required) > MOST_DOUBT
    }
    wanted = {*ends, *few, *doubtful}
    in_doubt = [
        line for line, asked in planned.items() if line in wanted and asked < aim.most(line)
    ]
    if in_doubt or fitted.one_threshold(UNCLEAR_LEVEL):
        return in_doubt
    misfits = {
        line: misfit
        for line, misfit in _misfits(samples, fitted)
        if misfit >= UNCLEAR_MISFIT
        and line in planned
        and planned[line] < min(UNCLEAR_SAMPLES, aim.most(line))
    }
    return [max(misfits, key=lambda line: misfits[line])] if misfits else []


def _misfits(samples: Curve, fitted: Fit) -> Iterator[tuple[Line, float]]:
    """Each line, and by how many standard deviations its number of correct replies differs from
    the number that the fitted curve expects.
    """
    for place, line in enumerate(samples.lines):
        scored = samples.scored[:, place] > 0
        if not scored.any():
            continue
        lengths = samples.true_lengths[scored, place]
        accuracy = fitted.accuracy[fitted.bins.places(lengths)]
        correct = samples.correct[scored, place]
        yield line, abs((correct - accuracy).sum()) / math.sqrt((accuracy * (1 - accuracy)).sum())


def _wave(
    samples: Curve,
    fitted: Fit,
    planned: Mapping[Line, int],
    aim: Aim,
    lines_in_doubt: Sequence[Line],
) -> dict[Line, int]:
    """A wave of samples, as far as lines have room for more. If `lines_in_doubt` are given, they
    get all samples. A line without room is replaced by the nearest one in the interval.
    """
    lines = list(planned)
    more: Counter[Line] = Counter()

    def with_room(lines: Sequence[Line]) -> list[Line]:
        return [line for line in lines if planned[line] + more[line] < aim.most(line)]

    checks = aim.wave if lines_in_doubt else round(CHECKING * aim.wave)
    low, high = (bound.length for bound in fitted.between_quantiles(STOPPING))
    within = [line for line in lines if low <= line.low and line.high <= high]
    for place in _where_to_look(fitted, aim.wave - checks):
        wanted = _line_at(lines, fitted, place)
        if near := with_room([wanted]) or with_room(within):
            more[_line_at(near, fitted, place)] += 1
    middle = lines.index(_line_at(lines, fitted, fitted.place(0.5)))
    checked_lines = lines_in_doubt or lines[: max(1, middle)]
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
    room = {line: max(0, aim.most(line) - planned[line]) for line in more}
    return {line: min(count, room[line]) for line, count in more.items() if room[line]}


def _doubt(correct: int, n: int, required: float) -> float:
    """Probability that the accuracy of a line is below `required`, from its own answers alone.

    The prior is uniform, so this is the tail of a beta distribution, written as a binomial one.
    """
    return 1 - at_most(correct, n + 1, required)


def _where_to_look(fitted: Fit, count: int) -> list[float]:
    """Places, in bins, for `count` samples: half of them where the crossing lies with equal
    probabilities, half spread evenly over its interval, since the wave is to move its ends.
    """
    last = len(fitted.below) - 1
    low, high = (min(max(fitted.place(tail), 0), last) for tail in STOPPING)
    evenly = count // 2
    likely = count - evenly
    return [
        *(fitted.place((draw + 0.5) / likely) for draw in range(likely)),
        *(low + (high - low) * (draw + 0.5) / evenly for draw in range(evenly)),
    ]


def around_crossing(fitted: Fit, lines: Sequence[Line], count: int) -> dict[Line, int]:
    """Line -> its share of `count` samples that look for the crossing, as those of a wave do."""
    return Counter(_line_at(lines, fitted, place) for place in _where_to_look(fitted, count))


def _line_at(lines: Sequence[Line], fitted: Fit, place: float) -> Line:
    """The line at a place, in bins; the nearest one where no line is there."""
    if place == -math.inf:
        return lines[0]
    length = fitted.bins.longest if place == math.inf else fitted.bins.length(place)

    def octaves_away(line: Line) -> float:
        if line.low - 0.5 <= length <= line.high + 0.5:
            return 0.0
        return abs(math.log2((line.low if length < line.low else line.high) / length))

    return min(lines, key=octaves_away)
