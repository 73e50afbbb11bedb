"""Which draw of its prompt a recorded reply is."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable
from typing import TypeAlias

from eyechart.harness.satellites.recorded.fields import DRAW, RowError
from eyechart.harness.satellites.recorded.samples import GivenSample
from eyechart.harness.settings.checks import MAX_DRAWS
from eyechart.harness.spec import CellKey, Sample
from eyechart.harness.spec.answer import Target

Given: TypeAlias = tuple[CellKey, int, Target, bytes]
"""What tells a sample without a number from others: line, length, target and prompt."""


def given_of(cell: CellKey, length: int, target: Target, prompt: str | None) -> Given:
    return cell, length, target, hashlib.sha256(repr(prompt).encode()).digest()


class Draws:
    """The values of the column of draws, by sample. Those of a sample are numbered from 1 in their
    order, so that a sample that lacks a draw has no gap.

    All rows are first noted, and then numbered in the same order. Of samples without a number, the
    second row with the same content and the same draw is that of a second sample, and so on.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, dict[str, int]] = {}
        self._seen: Counter[Hashable] = Counter()

    def __bool__(self) -> bool:
        return bool(self._values)

    def note(self, sample: Sample | GivenSample, value: str | None) -> None:
        """Notes a row with the value of its draw."""
        if value is not None:
            self._values.setdefault(self._row(sample, value), {})[value] = 0

    def begin(self) -> None:
        """Ends the noting."""
        self._seen.clear()
        for values in self._values.values():
            order = sorted(values, key=int) if all(map(str.isdecimal, values)) else [*values]
            values.update({value: number for number, value in enumerate(order, start=1)})

    def number(self, sample: Sample | GivenSample, value: str | None) -> tuple[int, int]:
        """The number of the draw, and which of the samples with the same content it is a draw of,
        from 0.

        Raises:
            RowError: the row has no draw, and others have one; or its prompt has too many.
        """
        if not self:
            return 1, 0
        if value is None:
            raise RowError(
                f"the row has no {DRAW}, and other rows have one; give all of them one, or take "
                f"none with --field {DRAW}="
            )
        row = self._row(sample, value)
        if (number := self._values[row][value]) > MAX_DRAWS:
            raise RowError(
                f"the row's prompt has more than {MAX_DRAWS:,} draws, the most that are taken; if "
                f"the column numbers something else, take none with --field {DRAW}="
            )
        return number, row[1]

    def _row(self, sample: Sample | GivenSample, value: str) -> tuple[Hashable, int]:
        if isinstance(sample, Sample):
            return sample.id, 0
        cell = sample.condition, sample.line
        if sample.index is not None:
            return (cell, sample.index), 0
        given = given_of(cell, sample.length, sample.target, sample.prompt)
        self._seen[given, value] += 1
        return given, self._seen[given, value] - 1
