"""To which length a model is right: effective and tested length, and area, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import (
    NEARLY,
    RESAMPLES,
    TAILS,
    Curve,
    Floats,
    areas_under,
    drawn_accuracies,
)
from eyechart.harness.analysis.length.equal_samples import kept_for_equal_samples
from eyechart.harness.analysis.length.fit import Fit, fit
from eyechart.harness.analysis.length.interval import Bound, Span, at_most, span_text
from eyechart.harness.analysis.length.limit import LENGTHS, Limit
from eyechart.harness.analysis.length.one_threshold import level_of
from eyechart.harness.score.outcomes import Cause
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line

NO_SINGLE_THRESHOLD = "no single threshold"
"""The note beside a certified length, which stands in for an effective length."""
NOT_KNOWN = "not known"
"""The text in place of a length that the replies leave open."""
GROUP = 20
"""Without a single threshold neighbouring lines are taken together until they have this many scored
replies: of fewer, one slip decides."""
FEW_REPLIES, FEW_ROWS = 8, 20
"""Fewer scored replies give no effective length, and fewer rows a note. With fewer rows that are
asked at several lengths, whose answers go together, intervals hold less often than they say."""


def few(scored: int, rows: int | None) -> str:
    """`only 3 replies`, `not sure: 5 rows`: the note beside an effective length; empty if there
    are enough. `rows` is `None` where each length has rows of its own.
    """
    if scored < FEW_REPLIES:
        return f"only {scored} repl{'y' if scored == 1 else 'ies'}"
    if rows is not None and rows < FEW_ROWS:
        return f"not sure: {rows} row{'s' * (rows != 1)}"
    return ""


def length_text(length: Bound | None) -> str:
    """`20`, `> 500`, or `not known`."""
    return NOT_KNOWN if length is None else str(length)


def limited_by(by: str) -> str:
    """`limited by room`, for one of `LIMITS`; empty for a length that is ranked."""
    limit = Limit(by)
    return "" if limit.is_ranked else f"limited by {limit.said}"


@dataclass(frozen=True, slots=True)
class EffectiveLength:
    """To which length a model is right under one condition. Lengths are in the task's unit."""

    threshold: float
    length: Bound | None
    """Where the accuracy falls below the threshold: the median of the posterior. Without a single
    threshold it is the certified length. Where something else than sight limits it, it is a lower
    bound. `None` where it is not known."""
    length_ci: Span
    limit: Limit
    one_threshold: bool
    """Whether the answers agree with an accuracy that falls below the threshold once at most."""
    dips: tuple[tuple[int, int], ...]
    """Without a single threshold: where the accuracy does not reach the threshold though it does at
    a greater length; the shortest and the longest length of each place."""
    lapse: float
    """Share of wrong answers at the shortest length: 0 to 1."""
    tested_length: Bound
    """The longest line such that it and every shorter one reach the threshold."""
    tested_length_ci: Span
    area: float
    """Area under accuracy over log length, as a share of the area at accuracy 1: 0 to 1."""
    area_ci: tuple[float, float]
    fit: Fit = field(compare=False, repr=False)
    """The fitted curve."""
    lines: int
    """Lines with a scored reply."""
    rows: int | None = None
    """Rows of symbols, each asked at several lengths; `None` if each length has its own."""

    @property
    def scored(self) -> int:
        """The scored replies that the estimate uses."""
        return int(self.fit.answered.sum())

    @property
    def few(self) -> str:
        return few(self.scored, self.rows)

    @property
    def is_ranked(self) -> bool:
        """Whether the length is known and a property of the model."""
        return self.length is not None and self.limit.is_ranked

    @property
    def length_text(self) -> str:
        """`20`, `> 500`, or `not known`."""
        return length_text(self.length)

    @property
    def span(self) -> str:
        """The interval: `18 to 23`, `200 to > 500`; empty if it says what the length says."""
        text = span_text(self.length_ci)
        return "" if text == self.length_text else text

    @property
    def threshold_note(self) -> str:
        """That there is no single threshold, and where the accuracy dips; mostly empty."""
        text = "" if self.one_threshold else NO_SINGLE_THRESHOLD
        if self.dips:
            spans = [str(low) if low == high else f"{low} to {high}" for low, high in self.dips]
            text += f": accuracy is below it at {' and '.join(spans)}"
        return text

    @property
    def note(self) -> str:
        """Beside the length: what limits it, no single threshold, few rows; mostly empty."""
        return ", ".join(filter(None, (limited_by(self.limit.by), self.threshold_note, self.few)))

    def __str__(self) -> str:
        """`20 (18 to 23)`, `50 (20 to 100, no single threshold)`, `> 500`."""
        inside = ", ".join(filter(None, (self.span, self.note)))
        return f"{self.length_text} ({inside})" if inside else self.length_text


@kept_for_equal_samples
def effective_length(
    samples: Curve, threshold: float = THRESHOLD, *, resamples: int = RESAMPLES
) -> EffectiveLength:
    """The effective length of a curve; tested length and area have intervals from `resamples`
    draws of its accuracies.

    The tested length is that of RULER (arXiv 2404.06654), but every shorter line must pass as well.
    The same samples give the same intervals; each contains its estimate.
    """
    fitted = fit(samples, threshold)
    draws = drawn_accuracies([samples], resamples)[0]
    shortest = float(samples.lengths[0])
    tested, tested_ci = _tested(samples, draws, threshold, shortest)
    length, interval = crossing(samples, fitted, threshold, resamples=resamples)
    dips: tuple[tuple[int, int], ...] = ()
    if not (single := has_single_threshold(samples, fitted, threshold)):
        length, interval = certified_length(samples, threshold, resamples=resamples)
        dips = _dips(grouped(samples), threshold)
    if int(fitted.answered.sum()) < FEW_REPLIES:
        length = None
    area = float(areas_under(samples.lengths, samples.accuracies[None])[0])
    return EffectiveLength(
        threshold=threshold,
        length=length,
        length_ci=interval,
        limit=Limit(LENGTHS if length and length.sign == ">" else Cause.SIGHT.value),
        one_threshold=single,
        dips=dips,
        lapse=fitted.lapse,
        tested_length=tested,
        tested_length_ci=tested_ci,
        area=area,
        area_ci=_ends(areas_under(samples.lengths, draws), area),
        fit=fitted,
        lines=len(samples.lines),
    )


def crossing(
    samples: Curve, fitted: Fit, threshold: float, *, resamples: int = RESAMPLES
) -> tuple[Bound | None, Span]:
    """Where the fitted curve falls below the threshold, and the interval; `None` where that may be
    anywhere.

    A single line says little about how the accuracy falls. So its interval is open below unless
    its accuracy is surely high enough, and open above unless it is surely too low.
    """
    low, high = fitted.interval()
    if len(samples.lines) == 1:
        draws = drawn_accuracies([samples], resamples)[0]
        _, tested_ci = _tested(samples, draws, threshold, float(samples.lengths[0]))
        if tested_ci[0].sign == "<":
            low = Bound("<", fitted.bins.shortest)
        if tested_ci[1].sign == ">":
            high = Bound(">", fitted.bins.longest)
    return None if _is_open((low, high)) else fitted.median, (low, high)


def _is_open(interval: Span) -> bool:
    return interval[0].sign == "<" and interval[1].sign == ">"


def _tested(samples: Curve, draws: Floats, threshold: float, shortest: float) -> tuple[Bound, Span]:
    """The longest line such that it and every shorter one reach the threshold, and its interval;
    `shortest` is the shortest length asked.
    """
    passed = int(passing_lengths(samples.accuracies[None], threshold)[0])
    low, high = _ends(passing_lengths(draws, threshold), passed)
    high = max(high, _before_a_failure(samples, threshold))
    bound = partial(_passed, samples.lengths, shortest)
    return bound(passed), (bound(int(low)), bound(int(high)))


def grouped(samples: Curve) -> Curve:
    """The curve with neighbouring lines taken together until they have `GROUP` scored replies; a
    rest joins the group before it. Each group has the nominal length of its longest line.
    """
    groups, number, size = [], 0, 0.0
    for n in samples.n:
        groups.append(number)
        size += n
        if size >= GROUP:
            number, size = number + 1, 0.0
    places = np.minimum(groups, max(number - 1, 0))
    first = np.flatnonzero(np.diff(places, prepend=-1))
    last = [*(first[1:] - 1), len(places) - 1]
    lines = samples.lines
    guessed = None
    if samples.guessed is not None:
        sums, counts = (
            np.add.reduceat(one, first) for one in (samples.chance * samples.n, samples.n)
        )
        guessed = sums / counts
    return Curve(
        tuple(
            Line(lines[end].length, lines[start].low, lines[end].high)
            for start, end in zip(first, last, strict=True)
        ),
        np.add.reduceat(samples.correct, first, axis=1),
        np.add.reduceat(samples.scored, first, axis=1),
        samples.true_lengths[:, first],
        guessed,
        own_rows=samples.own_rows,
    )


def has_single_threshold(
    samples: Curve, fitted: Fit, threshold: float, level: float | None = None
) -> bool:
    """Whether the accuracy falls below the threshold once at most: by the test of the fitted curve,
    or because no group of replies that is below the threshold has a longer one above it.

    `level` is that of the test; without it that of `one_threshold.level_of`.
    """
    if level is None:
        level = level_of(samples.n[samples.n > 0])
    return not _dips(grouped(samples), threshold) or fitted.one_threshold(level)


def certified_length(
    samples: Curve, threshold: float, *, resamples: int = RESAMPLES
) -> tuple[Bound | None, Span]:
    """What the lines certify where no single threshold fits: the longest group of lines such that
    it and every shorter one reach the threshold, and its interval. `None` where already the first
    one does not, or where the interval is open at both ends.
    """
    groups = grouped(samples)
    draws = drawn_accuracies([groups], resamples)[0]
    length, interval = _tested(groups, draws, threshold, float(samples.lengths[0]))
    return None if length.sign == "<" or _is_open(interval) else length, interval


def _dips(groups: Curve, threshold: float) -> tuple[tuple[int, int], ...]:
    """See `EffectiveLength.dips`."""
    reach = _reach(groups.accuracies[None], threshold)[0]
    last = int(np.flatnonzero(reach)[-1]) if reach.any() else 0
    dips: list[tuple[int, int]] = []
    for place in np.flatnonzero(~reach[:last]):
        line = groups.lines[place]
        if dips and not reach[place - 1]:
            dips[-1] = dips[-1][0], line.high
        else:
            dips.append((line.low, line.high))
    return tuple(dips)


def _ends(
    draws: npt.NDArray[np.float64] | npt.NDArray[np.int64], observed: float
) -> tuple[float, float]:
    """The middle 95 % of the draws, extended to contain `observed`."""
    low, high = np.quantile(draws, TAILS, method="inverted_cdf")
    return min(float(low), observed), max(float(high), observed)


def passing_lengths(accuracies: Floats, threshold: float) -> npt.NDArray[np.int64]:
    """How many lengths, from the shortest on, reach the threshold before one does not.

    `accuracies` has shape (B, L), the result (B,), 0 to L. An accuracy of 0 never passes.
    """
    reached: npt.NDArray[np.int64] = np.cumprod(_reach(accuracies, threshold), axis=-1).sum(axis=-1)
    return reached


def _reach(accuracies: Floats, threshold: float) -> npt.NDArray[np.bool_]:
    reach: npt.NDArray[np.bool_] = accuracies >= threshold - NEARLY
    return reach & (accuracies > 0)


def _before_a_failure(samples: Curve, required: float) -> int:
    """How many lines stand before the first that is significantly below the threshold.

    One exact binomial test at 2.5 % a line. Draws of the accuracies alone give an upper end that is
    too low where many lines lie little above the threshold: one of them falls short by chance.
    """
    for place, (correct, n) in enumerate(zip(samples.correct.sum(axis=0), samples.n, strict=True)):
        if at_most(math.ceil(correct), int(n), required) < TAILS[0]:
            return place
    return len(samples.n)


def _passed(lengths: Floats, shortest: float, count: int) -> Bound:
    """The longest of the first `count` lengths, which are the passing ones."""
    if count == 0:
        return Bound("<", shortest)
    return Bound(">" if count == len(lengths) else "=", float(lengths[count - 1]))
