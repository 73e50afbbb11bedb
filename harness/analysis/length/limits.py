"""The effective length of a condition, and what limits it.

The effective length is computed a second time with the readings that the replies allow: unread
replies that have the right answer count as right, and so do wrong ones where too many have it in
them for chance (see `right_inside`); replies that were cut off or refused, or for
which there was no room, are left out. If this length lies outside the interval of the first one,
the model's sight is not what limits it, and only bounds are known: the lower end of the first
interval, where all of them count as failures, and the upper end of an interval where all of them
count as right. `tests/benchmarks/simulation/limits.py` measures how
often that is right. Wrong replies that were misread forbid a length in any case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Curve, Floats, curve
from eyechart.harness.analysis.length.effective_length import EffectiveLength, effective_length
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.analysis.length.interval import Bound, at_most
from eyechart.harness.analysis.length.limit import LENGTHS, MIXED, OF_MISREAD, Limit
from eyechart.harness.score.outcomes import Cause, Outcome
from eyechart.harness.score.readings import Recount
from eyechart.harness.spec import Line

Column: TypeAlias = npt.NDArray[Any]
_MOST_OF = 2 / 3
"""One cause is named where it has this share of the replies that failed, except for sight."""
_FAR = math.sqrt(2)
"""Times the length that is far beyond it, in an interval that few replies leave wide."""
_FIRST = 10
"""Replies of the shortest lines, which show whether the form fails where sight does not."""
_WRONG = 0.05
"""Wrong answers for each unread reply, from which on the unread ones may be failures of sight."""
_GROWS = 0.3
"""Correlation of targets and lengths from which on targets grow with them."""
_RISEN = 0.005
"""Level of the test that more replies of a line are unread than of the shorter ones."""


def misread(samples: Mapping[str, npt.NDArray[np.generic]]) -> npt.NDArray[np.bool_]:
    """Which of some samples were read as wrong and may be right."""
    wrong = samples["outcome"] == Outcome.INCORRECT.place
    found: npt.NDArray[np.bool_] = wrong & (samples["reading"] == Recount.MAY_BE_RIGHT)
    return found


@dataclass(frozen=True, eq=False)
class Numbers:
    """The targets of N samples, and the answers that were read; NaN where one is no number."""

    targets: Floats
    answers: Floats


@dataclass(frozen=True, eq=False)
class Copies:
    """How near the copies of N samples are to their rows, see `score.copies.CopyCredit`."""

    off: Floats
    nearer: Floats


@dataclass(frozen=True, eq=False)
class Choices:
    """N choices between two options."""

    margins: Floats
    """Log-probability of the right option less that of the wrong one; NaN without a reply."""
    offered: Column
    """A number that tells pairs of options apart; 0 for other numbers of options."""


@dataclass(frozen=True, eq=False)
class ScoredSamples:
    """The scored samples of one condition: N of them, in any order. Each column has shape (N,)."""

    lines: Sequence[Line]
    places: Column
    """Place of each sample's line in `lines`."""
    indexes: Column
    lengths: Column
    """Symbols in each row."""
    outcomes: Column
    """Places of outcomes."""
    readings: Column
    """See `score.readings`."""
    chances: Column | None = None
    """Accuracy of a guess, in a forced choice."""
    has_same_rows: bool = False
    """Whether a sample has the same row of symbols at all lengths."""
    own_rows: bool = False
    """See `Curve.own_rows`."""
    unanswered: int = 0
    """Samples of lines beyond the longest scored length, to which the server sent no reply."""
    numbers: Numbers | None = None
    """Targets and answers, where replies are read."""
    copies: Copies | None = None
    """Where replies are read, and each target is its row."""
    choices: Choices | None = None
    """Where options are chosen by their probability."""

    @cached_property
    def counts(self) -> bool:
        """Whether the answers are numbers that tell how much is in a row: no target is below 0, and
        targets grow with the lengths, where these differ.
        """
        if self.numbers is None or not (self.numbers.targets >= 0).all():
            return False
        if len(np.unique(self.lengths)) == 1:
            return True
        if len(np.unique(self.numbers.targets)) == 1 or np.isinf(self.numbers.targets).any():
            return False
        return float(np.corrcoef(self.lengths, self.numbers.targets)[0, 1]) >= _GROWS

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        correct: npt.NDArray[np.bool_] = self.outcomes == Outcome.CORRECT.place
        return correct

    @cached_property
    def curve(self) -> Curve:
        return self._curve(self.right, np.ones(len(self.right), bool))

    def allowed(self) -> Curve | None:
        """The curve in which each reply that was set aside counts as its content allows; `None`
        where no reply was set aside.
        """
        if not self.set_aside.any():
            return None
        right = self.readings == Recount.MAY_BE_RIGHT
        left_out = self.set_aside & ~right
        if left_out.all():
            return self._curve(left_out, left_out)  # nothing shows that it does not see
        return self._curve(self.right | right, ~left_out)

    def at_best(self) -> Curve:
        """The curve where every reply that is not plainly wrong counts as right; where some were
        misread, none is plainly wrong.
        """
        not_wrong = (self.readings != Recount.AS_JUDGED) | self.misread.any()
        return self._curve(self.right | not_wrong, np.ones(len(self.right), bool))

    @cached_property
    def misread(self) -> npt.NDArray[np.bool_]:
        """See `right_inside`."""
        return misread({"outcome": self.outcomes, "reading": self.readings})

    @cached_property
    def set_aside(self) -> npt.NDArray[np.bool_]:
        """Samples that did not fail by sight, or need not have."""
        is_other = np.isin(self.readings, (Recount.MAY_BE_RIGHT, Recount.LEFT_OUT))
        return is_other | self._unread_as_before()

    def _curve(self, right: Column, kept: Column) -> Curve:
        return curve(
            self.lengths[kept],
            self.indexes[kept],
            right[kept],
            lines=self.lines,
            places=self.places[kept],
            chances=None if self.chances is None else self.chances[kept],
            own_rows=self.own_rows,
        )

    def _unread_as_before(self) -> npt.NDArray[np.bool_]:
        """The unread samples without the right answer, if the shortest lines have some too: up to
        the first line that has more of them than the shorter ones. A model that no longer sees
        often says nothing readable, and these are failures of sight. Where next to no answer was
        wrong, nothing shows that it does not see, and all of them are set aside.
        """
        unread: npt.NDArray[np.bool_] = self.readings == Recount.UNREAD
        wrong = ~self.right & (self.readings == Recount.AS_JUDGED)
        if wrong.sum() < _WRONG * unread.sum():
            return unread
        found = np.zeros(len(unread), bool)
        before = asked_before = 0
        for place in sorted(set(self.places.tolist()), key=lambda place: self.lines[place]):
            here = self.places == place
            count, asked = int(unread[here].sum()), int(here.sum())
            if asked_before >= _FIRST:
                share = (before + 1) / (asked_before + 2)
                if not before or 1 - at_most(count - 1, asked, share) < _RISEN:
                    break
            found |= here & unread
            before, asked_before = before + count, asked_before + asked
        return found


def scored_length(samples: ScoredSamples, threshold: float) -> EffectiveLength:
    """The effective length of a condition, as far as it is known, and what limits it."""
    strict = effective_length(samples.curve, threshold)
    if samples.has_same_rows:
        strict = replace(strict, rows=len(np.unique(samples.indexes)))
    if strict.limit.by == LENGTHS:
        if not samples.unanswered:
            return strict
        count = samples.unanswered
        return _bounded(
            strict, samples, threshold, Limit(Cause.ERROR, count, None, {Cause.ERROR: count})
        )
    if (allowed := samples.allowed()) is None:
        return strict
    length = fit(allowed, threshold).median
    if samples.misread.any():
        return _bounded(strict, samples, threshold, _limit(samples, Bound(">", length.length)))
    limit = _limit(samples, length)
    if limit.is_ranked or not _is_moved(strict, length, limit):
        return strict
    return _bounded(strict, samples, threshold, limit)


def _bounded(
    strict: EffectiveLength, samples: ScoredSamples, threshold: float, limit: Limit
) -> EffectiveLength:
    """The bounds that are left where something else than sight limits a length."""
    low = strict.length_ci[0]
    high = effective_length(samples.at_best(), threshold).length_ci[1]
    known = None if low.sign == "<" else Bound(">", low.length)
    return replace(strict, length=known, length_ci=(low, high), limit=limit)


def _limit(samples: ScoredSamples, allowed: Bound) -> Limit:
    """What makes replies fail up to the length `allowed`, which other readings allow."""
    most = math.inf if allowed.sign == ">" else allowed.length
    failing = ~samples.right & (samples.lengths <= most)
    outcomes = list(Outcome)
    counts = Counter(
        outcomes[place].about.cause for place in samples.outcomes[failing & samples.set_aside]
    )
    counts[Cause.FORM] += counts.pop(Cause.SIGHT, 0)  # they were read as wrong, and may be right
    causes = {cause: count for cause, count in counts.most_common() if cause and count}
    if not causes:
        return Limit()
    first, count = next(iter(causes.items()))
    by = first.value if count >= _MOST_OF * sum(causes.values()) else MIXED
    up_to = int(most) if most < samples.lengths.max() else None
    limit = Limit(
        by, int(failing.sum()), up_to, causes, misread=int((failing & samples.misread).sum())
    )
    return replace(limit, remedies=(OF_MISREAD,) if limit.is_misread else ())


def _is_moved(strict: EffectiveLength, allowed: Bound, limit: Limit) -> bool:
    """Whether the length that other readings allow lies beyond the interval; or, where most replies
    failed for another cause than sight, far beyond the length, or that is not known.
    """
    high = strict.length_ci[1]
    if high.sign != ">" and (allowed.sign == ">" or allowed.length > high.length):
        return True
    is_most = 2 * sum(limit.causes.values()) > limit.failing
    is_far = strict.length is None or allowed.length > _FAR * strict.fit.median.length
    return is_most and is_far
