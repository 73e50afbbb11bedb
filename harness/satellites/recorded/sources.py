"""Finds whether a file was imported before: the same file, one that has grown since, or a new one.

Rows without a number of their own are identified by their file and their content. Two files may
have equal rows that are different replies, so rows of different files are never taken for the same.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import open_regular
from eyechart.harness.journal.record import Record, Warn
from eyechart.harness.journal.recorded import RecordedFile, RecordedFiles
from eyechart.harness.satellites.recorded.fields import RowMark
from eyechart.providers.naming import named

_CHUNK = 1 << 20


@dataclass(frozen=True)
class GivenFile:
    """A file that an import names."""

    path: Path
    sha256: str
    size: int
    _beginnings: dict[int, str] = field(default_factory=dict)
    """Number of bytes -> hash of that many bytes at the beginning."""

    def begins_with(self, file: RecordedFile | GivenFile) -> bool:
        """Whether the file begins with the whole of another file.

        Raises:
            JournalError: the file cannot be read.
        """
        if not 0 < file.size <= self.size:
            return False
        if file.size not in self._beginnings:
            self._beginnings[file.size] = _hashed(self.path, file.size)[0]
        return self._beginnings[file.size] == file.sha256


def given_files(paths: Iterable[Path], warn: Warn) -> list[GivenFile]:
    """The files of an import, without those that are the beginning of another one.

    Raises:
        JournalError: a file cannot be read.
    """
    given = []
    for path in {path.resolve(): path for path in paths}.values():
        sha256, size = _hashed(path)
        given.append(GivenFile(path, sha256, size, {size: sha256}))
    kept: list[GivenFile] = []
    for file in sorted(given, key=lambda file: -file.size):  # the sort is stable
        whole = next((other for other in kept if other.begins_with(file)), None)
        if whole is None:
            kept.append(file)
        else:
            is_same = whole.size == file.size
            warn(
                f"{file.path} is {'the same as' if is_same else 'the beginning of'} {whole.path}, "
                "so its rows are taken once; rows that are other replies need a number each: "
                "--field index=COLUMN"
            )
    return [file for file in given if file in kept]


def _hashed(path: Path, most: int = sys.maxsize) -> tuple[str, int]:
    """SHA-256 and number of the bytes of a file, of at most so many."""
    digest, read = hashlib.sha256(), 0
    try:
        with open_regular(path) as file:
            while chunk := file.read(min(_CHUNK, most - read)):
                digest.update(chunk)
                read += len(chunk)
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error
    return digest.hexdigest(), read


class Sources:
    """The files of a run, and the rows that were taken from each."""

    def __init__(self, recorded: RecordedFiles) -> None:
        self.recorded = recorded
        self._rows: dict[int, dict[str, str]] = {file.source: {} for file in recorded.files}
        """Source -> mark of a row's content -> mark of what was taken from it."""
        self._numbers: list[int] = []
        """Source of each file of the import."""

    def note(self, record: Record) -> None:
        """Notes a record of the run's journal."""
        parts = (record.origin or "").split("/")
        if len(parts) == 3 and parts[0].isdecimal():  # noqa: PLR2004  the parts that `origin` joins
            self._rows.setdefault(int(parts[0]), {})[parts[1]] = parts[2]

    def origin(self, mark: RowMark) -> str:
        """The mark of a row in the run."""
        return f"{self._numbers[mark.file]}/{mark.row}/{mark.values}"

    def are_here(self, origin: str | None) -> bool:
        """Whether the row of an `origin` is one of the files of this import."""
        return (origin or "").partition("/")[0] in map(str, self._numbers)

    def known(self, mark: RowMark) -> str | None:
        """The mark of what was taken from a row; `None` if the run does not have the row."""
        return self._rows[self._numbers[mark.file]].get(mark.row)

    def find(self, files: Sequence[GivenFile], rows_of: Callable[[int], Iterable[str]]) -> None:
        """Finds the source of each file; `rows_of` gives the marks of the rows of a file."""
        by_hash = {file.sha256: file.source for file in self.recorded.files}
        found = [by_hash.get(file.sha256) for file in files]
        for place, file in enumerate(files):
            if found[place] is None:
                free = [number for number in self._rows if number not in found]
                found[place] = self._earlier(file, free, partial(rows_of, place))
        for number in found:
            source = max(self._rows, default=-1) + 1 if number is None else number
            self._rows.setdefault(source, {})
            self._numbers.append(source)

    def _earlier(
        self, file: GivenFile, free: Sequence[int], rows_of: Callable[[], Iterable[str]]
    ) -> int | None:
        """The source that has grown to this file, which has all of its rows."""
        versions = [one for one in self.recorded.files if one.source in free]
        grown = [one.source for one in versions if file.begins_with(one)]
        renewed = [one.source for one in versions if one.name == file.path.name]
        if not grown and not renewed:
            return None
        rows = set(rows_of())
        both = (*grown, *renewed)
        return next((source for source in both if self._rows[source].keys() <= rows), None)

    def refuse_doubtful(
        self, files: Sequence[GivenFile], unnumbered: Callable[[int], Iterable[RowMark]]
    ) -> None:
        """Refuses a file whose rows may be those of an earlier file, or other replies.

        `unnumbered` gives the rows of a file that do not say which samples they are.

        Raises:
            JournalError: there is such a file.
        """
        before = {one.source for one in self.recorded.files}
        others = [one for one in self.recorded.latest if one.source not in self._numbers]
        if not others:
            return
        for place, file in enumerate(files):
            marks = [mark for mark in unnumbered(place) if self.known(mark) is None]
            if self._numbers[place] not in before:
                _refuse_changed(file, others, len(marks))
            for other in others:
                equal = sum(mark.row in self._rows[other.source] for mark in marks)
                if equal:
                    rows = "1 row equals a row" if equal == 1 else f"{equal:,} rows equal rows"
                    raise JournalError(
                        f"{file.path}: {rows} of {other.name}, which was imported before, and "
                        "it is not known whether they are the same replies; if they are others, "
                        "import both files in one command, or number the rows with --field "
                        "index=COLUMN"
                    )

    def name(self, files: Sequence[GivenFile], by: str, at: str, warn: Warn) -> bool:
        """Adds new and grown files to `recorded`; returns whether anything changed."""
        before = list(self.recorded.files)
        for file, source in zip(files, self._numbers, strict=True):
            versions = [one for one in self.recorded.files if one.source == source]
            said = versions[-1] if versions else None
            new_by, new_at = by or (said.by if said else ""), at or (said.at if said else "")
            if said and said.by and new_by != said.by:
                warn(f"{file.path}: it was recorded by {said.by!r} before, now by {new_by!r}")
            if said and said.at and new_at != said.at:
                warn(f"{file.path}: it was recorded in {said.at} before, now in {new_at}")
            named = RecordedFile(file.path.name, file.sha256, file.size, source, new_by, new_at)
            if file.sha256 not in [one.sha256 for one in versions]:
                self.recorded.files.append(named)
            elif by or at:
                self.recorded.files[:] = [
                    replace(one, by=new_by, at=new_at) if one.source == source else one
                    for one in self.recorded.files
                ]
        return self.recorded.files != before


def _refuse_changed(file: GivenFile, others: Iterable[RecordedFile], unnumbered: int) -> None:
    if unnumbered and any(one.name == file.path.name for one in others):
        raise JournalError(
            f"{file.path} lacks rows that {file.path.name} had in an earlier import; if it holds "
            "other replies, give it another name; if it was corrected, start over with another "
            f"{named('out')}"
        )
