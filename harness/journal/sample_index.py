"""Chooses one record for each sample of a merged run, among the records of all its parts."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from eyechart.harness.journal.line_finder import LineFinder
from eyechart.harness.journal.record import Record
from eyechart.harness.spec import MAX_SAMPLES, CellKey, Line

_NOTHING, _ERROR, _UNSENT, _ANSWER = range(4)
"""States of a sample, the best last. `_UNSENT`: its prompt is known not to fit the window."""
_KINDS = 3
_DIFFERENT, _REPLACED = 4, 8
"""Marks of a sample: another part has a different reply; another part has a failed request."""
_STATES = 16
_LINE_BITS = 40


class OtherPromptError(Exception):
    """Two parts have answers to different prompts, or with different targets."""

    def __init__(self, identifier: str, part: int) -> None:
        """`part` is the part whose answer came first."""
        super().__init__(identifier)
        self.identifier = identifier
        self.part = part


class _Cell:
    """The samples of one cell by index, 25 bytes each."""

    __slots__ = ("at", "place", "prompt", "reply", "state")

    def __init__(self) -> None:
        self.place = array("Q")
        """Part and line of the chosen record."""
        self.at = array("d")
        self.prompt = array("I")
        self.reply = array("I")
        self.state = bytearray()

    def grow(self, size: int) -> None:
        more = size - len(self.state)
        for of in (self.place, self.at, self.prompt, self.reply):
            of.frombytes(bytes(of.itemsize * more))
        self.state += bytes(more)


@dataclass(frozen=True, slots=True)
class Chosen:
    """How many samples a merged run has, and which parts they come from."""

    samples: int
    """Samples with a record."""
    different: int
    """Samples with different replies in several parts."""
    replaced: int
    """Samples with an answer in one part and a failed request in another."""


class SampleIndex:
    """The chosen record of each sample.

    A reply comes before a failed request. Of several replies in different parts the first in time
    is chosen, so the order of the parts does not matter; of several in one part the last, as
    everywhere. Of failed requests the last is chosen.
    """

    def __init__(self, finder: LineFinder) -> None:
        self._finder = finder
        self._cells: dict[tuple[CellKey, int], _Cell] = {}
        """By cell and draw."""

    def note(self, part: int, line: int, record: Record) -> None:
        """Chooses between this record and the one chosen so far; `part` and `line` are its numbers;
        raises `OtherPromptError` if both are answers, to different prompts.
        """
        index = record.index
        if index >= MAX_SAMPLES:
            return
        lines = self._finder.of(record)
        cell_key = record.condition, lines[0] if lines else Line.exact(record.length)
        key = cell_key, record.draw
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = _Cell()
        if index >= len(cell.state):
            cell.grow(max(index + 1, min(MAX_SAMPLES, len(cell.state) * 5 // 4)))
        kind = _kind(record)
        state = cell.state[index]
        before = state & _KINDS
        at = math.inf if record.at is None else record.at
        prompt = zlib.crc32(f"{record.prompt_hash}|{record.target!r}".encode(errors="replace"))
        reply = zlib.crc32(f"{record.reply}|{record.refusal}".encode(errors="replace"))
        if before == _NOTHING:
            takes = True
        elif (chosen := cell.place[index] >> _LINE_BITS) == part:
            takes = kind != _ERROR or before == _ERROR
        else:
            if min(kind, before) > _ERROR and prompt != cell.prompt[index]:
                raise OtherPromptError(record.id, chosen)
            if kind == before == _ANSWER:
                state |= 0 if reply == cell.reply[index] else _DIFFERENT
            elif (kind == _ERROR) != (before == _ERROR):
                state |= _REPLACED
            takes = kind > before or (
                kind == before and (at > cell.at[index] if kind == _ERROR else at < cell.at[index])
            )
        if takes:
            cell.place[index] = part << _LINE_BITS | line
            cell.at[index], cell.prompt[index], cell.reply[index] = at, prompt, reply
            state = state & ~_KINDS | kind
        cell.state[index] = state

    def places(self) -> Iterator[tuple[int, int]]:
        """The part and the line of each chosen record."""
        lines = (1 << _LINE_BITS) - 1
        for cell in self._cells.values():
            for place in filter(None, cell.place):
                yield place >> _LINE_BITS, place & lines

    @property
    def chosen(self) -> Chosen:
        counts = [0] * _STATES
        for cell in self._cells.values():
            for state in range(1, _STATES):
                counts[state] += cell.state.count(state)

        def with_mark(mark: int) -> int:
            return sum(count for state, count in enumerate(counts) if state & mark)

        return Chosen(
            samples=sum(counts), different=with_mark(_DIFFERENT), replaced=with_mark(_REPLACED)
        )


def _kind(record: Record) -> int:
    return _ERROR if record.is_error else _UNSENT if record.is_unsent else _ANSWER
