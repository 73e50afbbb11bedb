"""The rows of the files of an import, read once and kept in a temporary file."""

from __future__ import annotations

import pickle
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import NamedTuple, Self

from eyechart.harness.errors import UsageError
from eyechart.harness.satellites.recorded.fields import (
    Row,
    RowError,
    cell_text,
    value_at,
    values_hash,
)
from eyechart.harness.satellites.recorded.files import read_rows
from eyechart.harness.satellites.recorded.forms import (
    is_request,
    one_reply_each,
    prompt_of_request,
)
from eyechart.harness.satellites.recorded.sources import GivenFile
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.secrets import A_KEY, holds_key

_IN_MEMORY = 64 << 20
"""Bytes of rows that are kept in memory; more go to the disk."""
_DRAW_NAMES = (
    *("attempt", "draw", "epoch", "iteration", "repeat", "repetition", "replica", "rollout", "run"),
    *("seed", "trial", "try"),
)
"""Names that others give to a column of draws."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition on a row: a column has this value, or has another one."""

    column: str
    value: str
    is_equal: bool = True

    def holds(self, row: Row) -> bool:
        """Whether the condition holds for a row. A column that the row lacks has no value: it is
        an error where the condition names one.
        """
        try:
            found = cell_text(value_at(row, self.column))
        except RowError:
            if self.value:
                raise
            found = ""
        return (found == self.value) == self.is_equal


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row of a file."""

    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that cannot be used."""

    place: RowPlace
    why: str


class KeptRow(NamedTuple):
    """A row that could be read."""

    file: int
    """Place of its file in the import, from 0."""
    number: int
    mark: str
    """Hash of its content, and its number among equal rows of the file."""
    row: Row
    is_wanted: bool
    """Whether the conditions hold for it."""
    why: str
    """Why the conditions cannot be checked; else empty."""

    def check(self) -> None:
        """Raises `RowError` if the conditions cannot be checked."""
        if self.why:
            raise RowError(self.why)


class RecordedRows:
    """The rows of all files; requests of batches are no rows.

    A column may name the model of each row. Then the rows of a model are read without those of the
    others, so that many models cost no more than one. Use as a context manager.
    """

    def __init__(
        self, files: Sequence[GivenFile], where: Sequence[RowFilter] = (), column: str = ""
    ) -> None:
        """Reads the files.

        Raises:
            JournalError: a file cannot be read.
            UsageError: no row has a column that a condition names.
        """
        self.files = files
        self._where, self._column = where, column
        self.problems: list[RowProblem] = []
        """Rows that cannot be read, or name no model where each row has one."""
        self.prompts: dict[str, str] = {}
        """Prompt of each request of a batch, by its custom_id."""
        self._columns: set[str] = set()
        self._at: dict[str, array[int]] = {}
        """Model, "" without a column of models -> places of its rows in the temporary file."""
        self._kept = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed by `__exit__`
        try:
            for place in range(len(files)):
                self._read(place)
            self._check_columns()
        except BaseException:
            self._kept.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    @property
    def models(self) -> list[str]:
        """The models that the column names, sorted."""
        return sorted(self._at)

    @property
    def draw_column(self) -> str:
        """The column that by its name numbers the replies to a prompt; `COLUMN` if none does."""
        columns = sorted(self._columns)
        return next((name for name in columns if name.lower() in _DRAW_NAMES), "COLUMN")

    def of(self, model: str, file: int | None = None) -> Iterator[KeptRow]:
        """The rows of a model in their order, of all files or of one; without a column of models
        those of all.
        """
        for at in self._at.get(model if self._column else "", ()):
            self._kept.seek(at)
            kept: KeptRow = pickle.load(self._kept)  # noqa: S301  written by this object
            if file in (None, kept.file):
                yield kept

    def _read(self, file: int) -> None:
        path, seen = self.files[file].path, Counter[str]()
        for file_row in read_rows(path):
            if file_row.row is None:
                self.problems.append(RowProblem(RowPlace(path, file_row.number), file_row.why))
                continue
            if is_request(file_row.row):
                if (prompt := prompt_of_request(file_row.row)) is not None:
                    self.prompts[str(file_row.row["custom_id"])] = prompt
                continue
            for row in one_reply_each(file_row.row):
                self._columns.update(map(str, row))
                short = values_hash(row)
                seen[short] += 1
                more = f"-{seen[short]}" if seen[short] > 1 else ""
                self._keep(file, file_row.number, f"{short}{more}", row)

    def _keep(self, file: int, number: int, mark: str, row: Row) -> None:
        is_wanted, why, model = True, "", ""
        try:
            is_wanted = all(one.holds(row) for one in self._where)
        except RowError as error:
            why = str(error)
        if self._column and is_wanted and not (model := self._model(row)):
            self.problems.append(
                RowProblem(RowPlace(self.files[file].path, number), self._nameless)
            )
            return
        if model not in self._at and holds_key(model):
            place = RowPlace(self.files[file].path, number)
            raise UsageError(f"{place}: the model in the column {self._column!r} {A_KEY}")
        self._kept.seek(0, 2)
        self._at.setdefault(model, array("Q")).append(self._kept.tell())
        pickle.dump(KeptRow(file, number, mark, row, is_wanted, why), self._kept)

    def _model(self, row: Row) -> str:
        try:
            name = cell_text(value_at(row, self._column))
        except RowError:
            return ""
        return name if name.strip() else ""

    @property
    def _nameless(self) -> str:
        return (
            f"the row names no model in the column {self._column!r}; if the model of such rows is "
            f"known, import them with --model NAME --where {self._column}="
        )

    def _check_columns(self) -> None:
        """Raises `UsageError` for a column of a condition of which nothing is in any row."""
        for one in self._where:
            if self._columns and not {one.column, one.column.partition(".")[0]} & self._columns:
                raise UsageError(
                    f"--where names the column {one.column!r}, which no row has; "
                    f"{did_you_mean(one.column, sorted(self._columns))}"
                )
