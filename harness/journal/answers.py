"""Which samples of a run have an answer, and to which prompt."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import open_regular
from eyechart.harness.journal.line_finder import LineFinder
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.journal.record import Record, Warn, chosen_records, is_chosen, read_records
from eyechart.harness.settings.shard import WHOLE, Shard
from eyechart.harness.spec import MAX_SAMPLES, Cell, CellKey, Condition, Line, Sample, exact_json
from eyechart.harness.spec.answer import Target
from eyechart.providers.naming import turned_on

_DIFFERENT = 1
"""The mark of a sample that was answered to different prompts; no prompt has it."""


class AnswerIndex:
    """The samples that have an answer, draw by draw, each with a 64-bit hash of its prompt and
    target.
    """

    def __init__(self, finder: LineFinder) -> None:
        self._finder = finder
        self._hashes: dict[tuple[Condition, Line, int], array[int]] = {}
        """Condition, line and draw -> the hash of each sample, by its index."""

    @cached_property
    def unsent(self) -> AnswerIndex:
        """Samples that were not sent, because their prompt is longer than the context window."""
        return AnswerIndex(self._finder)

    @cached_property
    def failed(self) -> AnswerIndex:
        """Samples whose request failed, with the mark of the latest error message. Some may
        have an answer as well.
        """
        return AnswerIndex(self._finder)

    @cached_property
    def begun(self) -> dict[str, Record]:
        """Id -> the record of a sample whose last request failed after answered turns."""
        return {}

    def go_on(self, sample: Sample) -> Sample:
        """The sample with the turns that are answered already."""
        before = self.begun.get(sample.id)
        if before is None or before.prompt_hash != sample.prompt_hash:
            return sample
        return replace(sample, said=(before.turns or ())[: len(sample.messages) - 1])

    def note(self, sample: Sample) -> None:
        """Adds `sample` as answered."""
        mark = _mark(sample.prompt_hash, sample.target)
        self.add(sample.condition, sample.length, sample.index, mark, sample.draw)

    def cell_key(self, sample: Sample) -> CellKey:
        """The key of a planned cell that contains `sample`, or the key of its exact length."""
        lines = self._finder.find(sample.length, sample.index)
        return sample.condition, lines[0] if lines else Line.exact(sample.length)

    def has(self, key: CellKey, index: int, draw: int = 1) -> bool:
        """Whether the sample is in the index, with any prompt."""
        return self.mark(key, index, draw) != 0

    def mark(self, key: CellKey, index: int, draw: int = 1) -> int:
        """The mark of the sample; 0 if it is not in the index."""
        hashes = self._hashes.get((*key, draw), ())
        return hashes[index] if index < len(hashes) else 0

    def add(self, condition: Condition, length: int, index: int, mark: int, draw: int = 1) -> None:
        """Adds a sample to each planned cell that contains it, or to that of its exact length."""
        lines = self._finder.find(length, index) or (Line.exact(length),)
        self._add(condition, lines, index, mark, draw)

    def add_record(self, record: Record, mark: int) -> None:
        self._add(record.condition, self._lines_of(record), record.index, mark, record.draw)

    def note_record(self, record: Record) -> None:
        """Adds the sample of the record as answered. If the journals have answers to different
        prompts of it, it gets a mark that no sample has.
        """
        mark = _mark(record.prompt_hash, record.target)
        keys = ((record.condition, line) for line in self._lines_of(record))
        before = {self.mark(key, record.index, record.draw) for key in keys}
        self.add_record(record, mark if before <= {0, mark} else _DIFFERENT)

    def has_record(self, record: Record) -> bool:
        keys = ((record.condition, line) for line in self._lines_of(record))
        return any(self.has(key, record.index, record.draw) for key in keys)

    def _lines_of(self, record: Record) -> Sequence[Line]:
        return self._finder.of(record) or (Line.exact(record.length),)

    def _add(
        self, condition: Condition, lines: Sequence[Line], index: int, mark: int, draw: int
    ) -> None:
        for line in lines:
            hashes = self._hashes.get((condition, line, draw))
            if hashes is None:
                hashes = self._hashes[condition, line, draw] = array("Q")
            if index >= len(hashes):
                hashes.extend([0] * (index + 1 - len(hashes)))
            hashes[index] = mark

    def __bool__(self) -> bool:
        """Whether the index has any sample."""
        return any(map(any, self._hashes.values()))

    def recorded(self, cell: Cell) -> Cell:
        """The part of a cell up to the last of its samples that has an answer, or is known not to
        fit the window; without samples if none has.
        """
        sizes = {
            draw: max(self.extent(cell, draw), self.unsent.extent(cell, draw))
            for draw in range(1, cell.draws + 1)
        }
        draws = max((draw for draw, size in sizes.items() if size), default=1)
        return Cell(*cell.key, max(sizes.values()), draws)

    def extent(self, cell: Cell, draw: int) -> int:
        """How many of a cell's samples there are up to the last one in the index."""
        marks = self._hashes.get((*cell.key, draw), ())[: cell.samples]
        return next((size for size in range(len(marks), 0, -1) if marks[size - 1]), 0)

    def count_in(self, cell: Cell, shard: Shard = WHOLE) -> int:
        """Number of draws of a cell's samples, in a shard, that have an answer."""
        rows = slice(shard.number - 1, cell.samples, shard.of)
        return sum(
            sum(map(bool, self._hashes.get((*cell.key, draw), ())[rows]))
            for draw in range(1, cell.draws + 1)
        )

    def done_in(self, cell: Cell) -> int:
        """The same with those that are known not to fit the window."""
        return sum(
            self.has(cell.key, index, draw) or self.unsent.has(cell.key, index, draw)
            for draw in range(1, cell.draws + 1)
            for index in range(cell.samples)
        )

    def first(self, key: CellKey) -> int | None:
        """The lowest index of a cell whose first draw has an answer."""
        hashes = self._hashes.get((*key, 1), ())
        return next((index for index, mark in enumerate(hashes) if mark), None)

    def covers(self, sample: Sample, key: CellKey) -> bool:
        """Whether `sample` was answered; raises `JournalError` if it was answered to another prompt
        or target, so the task has changed.
        """
        hashes = self._hashes.get((*key, sample.draw))
        if hashes is None or sample.index >= len(hashes) or not hashes[sample.index]:
            return False
        if hashes[sample.index] != _mark(sample.prompt_hash, sample.target):
            raise JournalError(
                f"{sample.id}: the journal's answer was to another prompt or target, so the task "
                "changed but not its version, or a journal of other data was copied there; raise "
                f"the version, remove that journal, or start over with {turned_on('fresh')}"
            )
        return True


def _mark(prompt_hash: str, target: Target) -> int:
    """A 64-bit hash of prompt and target, never 0."""
    return text_mark(f"{prompt_hash}|{target!r}")


def text_mark(text: str) -> int:
    """A 64-bit hash of a text, never 0 or 1."""
    digest = hashlib.sha256(text.encode(errors="replace")).digest()
    return max(int.from_bytes(digest[:8]), 2)


def answered(folder: Path, warn: Warn, lines: Iterable[Line], start: int) -> AnswerIndex:
    """The index of the run in `folder`: samples with a record that is not an error.

    These are not asked again. `warn` is called with a message for each unreadable line.
    `lines` are those of the cells that will be asked; `start`: see `Line.length_of`.
    """
    index = AnswerIndex(LineFinder(lines, start))
    records = chosen_records(folder, warn) if _is_chosen(folder) else read_records(folder, warn)
    for record in records:
        if record is None or record.index >= MAX_SAMPLES:
            continue
        failure = record.failure
        if failure is not None and failure.kind == "error":
            index.failed.add_record(record, text_mark(failure.message))
            if record.turns:
                index.begun[record.id] = record
            continue
        (index.unsent if record.is_unsent else index).note_record(record)
    return index


def _is_chosen(folder: Path) -> bool:
    """Whether a run is read by likelihood; false where its manifest cannot be read."""
    try:
        with open_regular(folder / MANIFEST) as file:
            settings = exact_json.loads(file.read())["settings"]
        return bool(is_chosen(settings))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False
