"""Pairs of replies to two rows, and whether the answers have the order of the targets.

Only the order of answers is used, so an answer may be far off, or absurd. Where two answers are
equal or one is missing, half a pair is right: so many are right by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.limits import ScoredSamples
from eyechart.harness.score.outcomes import ANSWERED, OUTCOMES

Places = npt.NDArray[np.int64]
RATIOS = (1.12, 1.29)
"""Ratios of the targets of rows that differ by about a fifth: their mean is 1.2."""
_APART = 1.2
"""The target of a condition with a control, whose targets are 1."""
_MOST_ROWS, _MOST_REPLIES = 100, 4000
"""Rows of a line that are compared, and replies in all: the work grows with their square."""
_ANSWERED = [OUTCOMES.index(outcome) for outcome in ANSWERED]


@dataclass(frozen=True, eq=False)
class Replies:
    """N replies with a target above 0; arrays of shape (N,)."""

    rows: Places
    """Which replies are to one row of symbols: numbers from 0."""
    lines: Places
    """Numbers of the lines of the condition, from 0, in the order of their lengths."""
    lengths: Floats
    targets: Floats
    answers: Floats
    """NaN where none was read."""
    numbers: Places
    """The numbers of these lines in `ScoredSamples.lines`: shape (L,)."""
    edges: Floats
    """Lengths between neighbouring lines: shape (L - 1,)."""
    is_control: bool = False
    """Whether the targets are those of a control and of the condition that it belongs to, and the
    answers are margins of one option; pairs are then those of one line."""

    @classmethod
    def of(cls, samples: ScoredSamples, *, without_set_aside: bool = False) -> Replies | None:
        """The replies of the first rows of each line; `None` where there are none, or where answers
        are no counts. `without_set_aside` leaves out those that did not fail by sight.
        """
        if not samples.counts or samples.numbers is None:
            return None
        targets = samples.numbers.targets
        lines = sorted(set(samples.places.tolist()), key=lambda place: samples.lines[place])
        most = min(_MOST_ROWS, max(1, _MOST_REPLIES // len(lines)))
        kept = (targets > 0) & (samples.indexes < most)
        if without_set_aside:
            kept &= ~samples.set_aside
        if not kept.any():
            return None
        numbers = np.array([place for place in lines if (samples.places[kept] == place).any()])
        of_line = np.empty(numbers.max() + 1, np.int64)
        of_line[numbers] = np.arange(len(numbers))
        its_line = of_line[samples.places[kept]]
        rows = samples.indexes[kept].astype(np.int64)
        if samples.own_rows:
            rows = rows * len(numbers) + its_line
        answered = np.isin(samples.outcomes[kept], _ANSWERED)
        return cls(
            rows=np.unique(rows, return_inverse=True)[1],
            lines=its_line,
            lengths=samples.lengths[kept].astype(float),
            targets=targets[kept],
            answers=np.where(answered, samples.numbers.answers[kept], np.nan),
            numbers=numbers,
            edges=_edges(samples, numbers),
        )

    @classmethod
    def of_control(cls, samples: ScoredSamples, control: ScoredSamples) -> Replies | None:
        """The margins of the odd option, where it stands in the row and in its `control`; `None`
        where the two are not choices between the same two options.
        """
        both = samples, control
        if samples.choices is None or control.choices is None:
            return None
        offered = {int(one) for each in both if each.choices for one in each.choices.offered}
        if len(offered) > 1 or 0 in offered:
            return None
        of_line = {control.lines[place]: place for place in set(control.places.tolist())}
        found = [place for place in set(samples.places.tolist()) if samples.lines[place] in of_line]
        numbers = np.array(sorted(found, key=samples.lines.__getitem__), np.int64)
        if not len(numbers):
            return None
        most = min(_MOST_ROWS, max(1, _MOST_REPLIES // len(numbers) // 2))
        parts: list[tuple[Places, Places, Floats, Floats, Floats]] = []
        for is_control, each in enumerate(both):
            assert each.choices is not None
            its = {of_line[samples.lines[place]] if is_control else place for place in numbers}
            kept = np.isin(each.places, list(its)) & (each.indexes < most)
            lines = np.array([samples.lines[place] for place in numbers], object)
            line_of = {line: number for number, line in enumerate(lines)}
            its_line = np.array([line_of[each.lines[place]] for place in each.places[kept]], int)
            rows = each.indexes[kept].astype(np.int64)
            if each.own_rows:
                rows = rows * len(numbers) + its_line
            margins = each.choices.margins[kept]
            parts.append(
                (
                    2 * rows + is_control,
                    its_line,
                    each.lengths[kept].astype(float),
                    np.full(len(rows), 1.0 if is_control else _APART),
                    -margins if is_control else margins,
                )
            )
        rows, lines, lengths, targets, margins = map(np.concatenate, zip(*parts, strict=True))
        return cls(
            rows=np.unique(rows, return_inverse=True)[1],
            lines=lines,
            lengths=lengths,
            targets=targets,
            answers=margins,
            numbers=numbers,
            edges=_edges(samples, numbers),
            is_control=True,
        )

    @cached_property
    def is_fixed(self) -> npt.NDArray[np.bool_]:
        """Lines whose rows have one length and several targets: there a longer row must not tell
        that its target is larger. Shape (L,).
        """
        if self.is_control:
            return np.ones(len(self.numbers), bool)
        fixed = []
        for line in range(len(self.numbers)):
            here = self.lines == line
            several = len(np.unique(self.targets[here])) > 1
            fixed.append(several and len(np.unique(self.lengths[here])) == 1)
        return np.array(fixed, bool)

    @property
    def are_by_length(self) -> bool:
        """Whether of two rows the longer one always has the larger target, and equal ones none."""
        order = np.lexsort((self.targets, self.lengths))
        longer = np.diff(self.lengths[order]) > 0
        return bool((longer == (np.diff(self.targets[order]) > 0)).all())

    def pairs(self) -> Pairs:
        """All pairs of replies to different rows whose targets differ by about a fifth; of lines
        that are fixed only those within one line.
        """
        order = np.argsort(self.targets, kind="stable")
        ascending = self.targets[order]
        begin = np.searchsorted(ascending, ascending * RATIOS[0])
        end = np.searchsorted(ascending, ascending * RATIOS[1], side="right")
        counts = end - begin
        first = np.repeat(np.arange(len(order)), counts)
        before = np.repeat(counts.cumsum() - counts - begin, counts)
        smaller, larger = order[first], order[np.arange(len(first)) - before]
        one_line = self.lines[smaller] == self.lines[larger]
        fixed = self.is_fixed[self.lines]
        kept = (self.rows[smaller] != self.rows[larger]) & (
            one_line | ~(fixed[smaller] | fixed[larger])
        )
        return self._pairs(smaller[kept], larger[kept])

    def _pairs(self, smaller: Places, larger: Places) -> Pairs:
        places = np.sqrt(self.lengths[smaller] * self.lengths[larger])
        return Pairs(
            self.rows[smaller],
            self.rows[larger],
            ordered(self.answers[smaller], self.answers[larger]),
            np.log(self.targets[larger] / self.targets[smaller]),
            places,
            np.searchsorted(self.edges, places),
        )

    def pairs_within(self, line: int, most: float) -> Pairs:
        """The pairs within one line whose targets differ by a ratio of at most `most`."""
        here = np.flatnonzero(self.lines == line)
        here = here[np.argsort(self.targets[here], kind="stable")]
        smaller, larger = here[np.array(np.triu_indices(len(here), 1))]
        ratios = self.targets[larger] / self.targets[smaller]
        kept = (ratios > 1) & (ratios <= most) & (self.rows[smaller] != self.rows[larger])
        return self._pairs(smaller[kept], larger[kept])


def _edges(samples: ScoredSamples, numbers: Places) -> Floats:
    highs, lows = (
        np.array([getattr(samples.lines[place], end) for place in numbers], float)
        for end in ("high", "low")
    )
    return np.maximum.accumulate(np.sqrt((highs[:-1] + 0.5) * (lows[1:] - 0.5)))


@dataclass(frozen=True, eq=False)
class Pairs:
    """P pairs of replies; arrays of shape (P,)."""

    smaller: Places
    """Row with the smaller target."""
    larger: Places
    right: Floats
    """1 where the answers have the order of the targets, 0 where they have the other one, and one
    half where they are equal or one is missing."""
    apart: Floats
    """Logarithm of the ratio of both targets."""
    places: Floats
    """The geometric mean of the lengths of the two rows, for each pair."""
    lines: Places
    """The line at this length."""

    def __len__(self) -> int:
        return len(self.right)

    def up_to(self, line: int) -> Pairs:
        """The pairs at this line and at shorter ones."""
        kept = self.lines <= line
        return Pairs(*(getattr(self, one.name)[kept] for one in fields(self)))


def ordered(smaller: Floats, larger: Floats) -> Floats:
    """See `Pairs.right`, for the answers to the row with the smaller and with the larger target."""
    half = np.isnan(smaller) | np.isnan(larger) | (smaller == larger)
    return np.where(half, 0.5, (larger > smaller).astype(float))
