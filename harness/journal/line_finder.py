"""Finds the lines that contain a sample, from its true length and its index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eyechart.harness.journal.record import Record
from eyechart.harness.spec import Line


class LineFinder:
    """The lines of a run. They may overlap if several commands asked for them."""

    def __init__(self, lines: Iterable[Line], start: int) -> None:
        """`start`: see `Line.length_of`."""
        self._lines = sorted(set(lines))
        self._start = start
        self._by_length: dict[int, tuple[Line, ...]] = {}

    def find(self, length: int, index: int) -> Sequence[Line]:
        """The lines whose sample `index` has this length."""
        candidates = self._by_length.get(length)
        if candidates is None:
            candidates = self._by_length[length] = tuple(
                line for line in self._lines if line.low <= length <= line.high
            )
        if len(candidates) == 1 and candidates[0].is_exact:
            return candidates
        return [line for line in candidates if line.length_of(index, self._start) == length]

    def of(self, record: Record) -> Sequence[Line]:
        """The lines that contain the sample of a record; a recorded reply names its line."""
        if record.line is None:
            return self.find(record.length, record.index)
        return [
            line
            for line in self._lines
            if line.length == record.line and line.low <= record.length <= line.high
        ]
