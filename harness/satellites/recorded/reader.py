"""Reads the rows of the files of an import one by one, as replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from eyechart.harness.journal.manifest import run_folder
from eyechart.harness.satellites.recorded.fields import (
    Columns,
    FileRow,
    RecordedReply,
    Row,
    RowError,
    RowMark,
    cell_text,
    recorded_reply,
    value_at,
    values_hash,
)
from eyechart.harness.satellites.recorded.files import read_rows
from eyechart.harness.satellites.recorded.forms import fields_of, is_request, prompt_of_request
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import Task
from eyechart.providers.batches import BatchForm


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on a row: a column has this value, or has another one."""

    column: str
    value: str
    is_equal: bool = True

    def holds(self, row: Row) -> bool:
        """Whether the condition holds for a row; raises `RowError` if the row lacks the column."""
        return (cell_text(value_at(row, self.column)) == self.value) == self.is_equal


@dataclass(frozen=True)
class ImportRequest:
    """The request of `bench import` for recorded replies."""

    files: Sequence[Path]
    task: Task
    model: str
    out: Path
    columns: Columns
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Axis -> its value for all rows, for axes without a column."""
    where: Sequence[Where] = ()
    """Conditions that rows must meet to be taken."""
    by: str = ""
    at: str = ""
    command: str = ""
    draw: int = 1
    """The draw that the rows are, from 1, where one prompt has several replies."""

    @property
    def folder(self) -> Path:
        """The folder of the run: that of a run asked with the default settings."""
        task = self.task
        return run_folder(self.out, self.model, task.spec, task.name, Settings())


@dataclass(frozen=True, slots=True)
class Place:
    """A row of a file."""

    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that cannot be used."""

    place: Place
    why: str


@dataclass(slots=True)
class Imported:
    """The result of an import."""

    new: int = 0
    known: int = 0
    """Rows that an earlier import has taken."""
    others: int = 0
    """Rows that `where` leaves out."""
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Place] = field(default_factory=list)
    """Rows with an error whose reply is left out."""
    is_unproven: bool = False
    """Whether a row names its item by number, and has neither a target nor a prompt to check."""
    gaps: int = 0
    """Numbers below the largest `index` of a line for which the run has no row."""


class Reader:
    """The replies in the files, and the problems of rows without one."""

    def __init__(
        self, request: ImportRequest, files: Sequence[Path], batch_form: Callable[[], BatchForm]
    ) -> None:
        self._request = request
        self._files = files
        self._batch_form = batch_form
        self._prompts: dict[str, str] | None = None
        self.only_model: str | None = None
        """The one model whose rows are imported, if the files have rows of several models."""

    def texts(self, column: str) -> list[str]:
        """The different texts in a column of the wanted rows, in their order; without empty ones,
        and without rows that lack the column.
        """
        found: dict[str, None] = {}
        for file in range(len(self._files)):
            for _, row, _ in self._rows(file):
                with suppress(RowError):
                    if all(one.holds(row) for one in self._request.where):
                        found[cell_text(value_at(row, column))] = None
        return [text for text in found if text]

    def hashes(self, file: int) -> Iterator[str]:
        """The hashes of all rows of a file, by its place in the import."""
        return (short for _, _, short in self._rows(file))

    def replies(
        self, imported: Imported, only: int | None = None
    ) -> Generator[tuple[Place, RecordedReply], None, None]:
        """Each reply of all files, or of one, with its place; counts the other rows."""
        columns, fixed = self._request.columns, dict(self._request.fixed)
        prompts = self._asked()
        for file in range(len(self._files)) if only is None else (only,):
            for file_row, row, short in self._rows(file, imported):
                try:
                    if not all(one.holds(row) for one in self._request.where):
                        imported.others += 1
                        continue
                    values = columns.values(row, fields_of(row, self._batch_form, prompts))
                    mark = RowMark(file, short, values_hash({**values, "": fixed}))
                    reply = recorded_reply(values, columns.axes, mark)
                    if self.only_model is not None and reply.model not in (None, self.only_model):
                        imported.others += 1
                        continue
                except RowError as error:
                    place = Place(self._files[file], file_row.number)
                    imported.problems.append(Problem(place, str(error)))
                    continue
                place = Place(self._files[file], file_row.number)
                if reply.is_left_out:
                    imported.left_out.append(place)
                yield place, reply

    def _rows(
        self, file: int, imported: Imported | None = None
    ) -> Iterator[tuple[FileRow, Row, str]]:
        """Each row that can be read, with a hash of its own; requests of batches are no rows."""
        path = self._files[file]
        seen: Counter[str] = Counter()
        for file_row in read_rows(path):
            if file_row.row is None:
                if imported is not None:
                    place = Place(path, file_row.number)
                    imported.problems.append(Problem(place, file_row.why))
            elif not is_request(file_row.row):
                short = values_hash(file_row.row)
                seen[short] += 1
                more = f"-{seen[short]}" if seen[short] > 1 else ""
                yield file_row, file_row.row, f"{short}{more}"

    def _asked(self) -> Mapping[str, str]:
        """Prompt of each request among the rows, by its custom_id."""
        if self._prompts is None:
            rows = (
                file_row.row
                for path in self._files
                if not {".eval", ".csv", ".tsv"} & {suffix.lower() for suffix in path.suffixes}
                for file_row in read_rows(path)
                if file_row.row is not None and is_request(file_row.row)
            )
            prompts = ((str(row["custom_id"]), prompt_of_request(row)) for row in rows)
            self._prompts = {name: prompt for name, prompt in prompts if prompt is not None}
        return self._prompts
