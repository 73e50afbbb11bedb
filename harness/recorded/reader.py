"""The rows of the files that an import names, read one by one as replies."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.journal.manifest import run_folder
from harness.recorded.fields import (
    Columns,
    Origins,
    RecordedReply,
    Row,
    RowError,
    cell_text,
    recorded_reply,
    value_at,
)
from harness.recorded.files import read_rows
from harness.recorded.forms import fields_of, is_request, prompt_of_request
from harness.recorded.row import FileRow
from harness.spec import Settings
from harness.task.catalogue import Task
from providers.base import BatchForm


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on a row: that a column has a value, or that it has another one."""

    column: str
    value: str
    is_equal: bool = True

    def holds(self, row: Row) -> bool:
        """Whether it holds for a row; raises `RowError` if the row lacks the column."""
        return (cell_text(value_at(row, self.column)) == self.value) == self.is_equal


@dataclass(frozen=True)
class ImportRequest:
    """What `bench import` of recorded replies asks for."""

    files: Sequence[Path]
    task: Task
    model: str
    out: Path
    columns: Columns
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Axis -> its value for all rows, of those axes that no column has."""
    where: Sequence[Where] = ()
    """Which rows are taken: those for which all of these hold."""
    by: str = ""
    at: str = ""
    command: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the run: that of a run which is asked with the settings by default."""
        task = self.task
        return run_folder(self.out, self.model, task.spec, task.name, Settings())


@dataclass(slots=True)
class Imported:
    """What became of the rows."""

    new: int = 0
    known: int = 0
    """Rows that an earlier import, or an earlier row, has brought."""
    others: int = 0
    """Rows that `where` leaves out."""
    problems: list[str] = field(default_factory=list)
    """`file:line: why` of each row that cannot be used."""


class Reader:
    """The replies of the files, with the problems of the rows that have none."""

    def __init__(self, request: ImportRequest, batch_form: Callable[[], BatchForm]) -> None:
        self._request = request
        self._batch_form = batch_form
        self.imported = Imported()

    def replies(self) -> Generator[tuple[str, RecordedReply], None, None]:
        """Each reply with its place, `file:line`."""
        prompts = self._prompts()
        columns, marks = self._request.columns, Origins()
        for path in self._request.files:
            for file_row in read_rows(path):
                place = f"{path}:{file_row.number}"
                try:
                    row = _row_of(file_row)
                    if is_request(row):
                        continue
                    if not all(one.holds(row) for one in self._request.where):
                        self.imported.others += 1
                        continue
                    values = columns.values(row, fields_of(row, self._batch_form, prompts))
                    yield place, recorded_reply(values, columns.axes, marks.mark(values))
                except RowError as error:
                    self.imported.problems.append(f"{place}: {error}")

    def _prompts(self) -> dict[str, str]:
        """Prompt of each request among the rows, by its custom_id."""
        rows = (
            file_row.row
            for path in self._request.files
            if path.suffix.lower() not in (".eval", ".csv")
            for file_row in read_rows(path)
            if file_row.row is not None and is_request(file_row.row)
        )
        prompts = ((str(row["custom_id"]), prompt_of_request(row)) for row in rows)
        return {custom_id: prompt for custom_id, prompt in prompts if prompt is not None}


def _row_of(file_row: FileRow) -> Row:
    if file_row.row is None:
        raise RowError(file_row.why)
    return file_row.row
