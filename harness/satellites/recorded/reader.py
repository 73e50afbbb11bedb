"""Reads the rows of an import as replies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eyechart.harness.journal.manifest import run_folder
from eyechart.harness.satellites.recorded.fields import (
    Columns,
    RecordedReply,
    RowError,
    RowMark,
    recorded_reply,
    values_hash,
)
from eyechart.harness.satellites.recorded.forms import fields_of
from eyechart.harness.satellites.recorded.rows import RecordedRows, RowFilter, RowPlace, RowProblem
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import Task
from eyechart.providers.batches import BatchForm


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
    where: Sequence[RowFilter] = ()
    """Conditions that rows must meet to be taken."""
    by: str = ""
    at: str = ""
    command: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the run: that of a run asked with the default settings."""
        task = self.task
        return run_folder(self.out, self.model, task.spec, task.name, Settings())


@dataclass(slots=True)
class ImportResult:
    """The result of an import."""

    new: int = 0
    known: int = 0
    """Rows that an earlier import has taken."""
    repeated: list[RowPlace] = field(default_factory=list)
    """Rows whose sample has its reply from another row of these files."""
    draw_column: str = "COLUMN"
    """The column that may number the replies to a prompt."""
    others: int = 0
    """Rows that `where` leaves out, or of other models."""
    problems: list[RowProblem] = field(default_factory=list)
    left_out: list[RowPlace] = field(default_factory=list)
    """Rows with an error whose reply is left out."""
    nameless: int = 0
    """Rows with a reply that name no model, where others do."""
    is_unproven: bool = False
    """Whether a row names its item by number, and has neither a target nor a prompt to check."""
    gaps: int = 0
    """Numbers below the largest `index` of a line for which the run has no row."""


class Reader:
    """The replies in the rows of one model, and the problems of rows without one."""

    def __init__(
        self, request: ImportRequest, rows: RecordedRows, batch_form: Callable[[], BatchForm]
    ) -> None:
        self._request = request
        self._rows = rows
        self._batch_form = batch_form
        self.only_model: str | None = None
        """The one model whose rows are imported, if the rows name several models."""

    def marks(self, file: int) -> Iterator[str]:
        """The marks of all rows of a file, by its place in the import."""
        return (kept.mark for kept in self._rows.of(self._request.model, file))

    def replies(
        self, imported: ImportResult, only: int | None = None
    ) -> Iterator[tuple[RowPlace, RecordedReply]]:
        """Each reply of all files, or of one, with its place; counts the other rows."""
        columns, fixed = self._request.columns, dict(self._request.fixed)
        imported.problems += self._rows.problems
        for kept in self._rows.of(self._request.model, only):
            place = RowPlace(self._rows.files[kept.file].path, kept.number)
            try:
                kept.check()
                if not kept.is_wanted:
                    imported.others += 1
                    continue
                form = fields_of(kept.row, self._batch_form, self._rows.prompts)
                values = columns.values(kept.row, form)
                mark = RowMark(kept.file, kept.mark, values_hash({**values, "": fixed}))
                reply = recorded_reply(values, columns.axes, mark)
                if self.only_model is not None and reply.model != self.only_model:
                    self._check_model(reply)
                    imported.others += 1
                    continue
            except RowError as error:
                imported.problems.append(RowProblem(place, str(error)))
                continue
            if reply.is_left_out:
                imported.left_out.append(place)
            yield place, reply

    def _check_model(self, reply: RecordedReply) -> None:
        """Raises `RowError` for a row that names no model, where others name several."""
        if reply.model is None:
            raise RowError(
                "the row names no model, and other rows name several; if the model of such rows is "
                "known, import them with --model NAME --where "
                f"{self._request.columns.of('model')}="
            )
