"""The rows of a recorded file: JSON Lines or CSV, both also compressed as .gz."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from harness import exact_json
from harness.errors import JournalError
from harness.recorded.inspect_log import read_log
from harness.recorded.row import FileRow

_MOST_CELL = 1 << 30
"""Characters of a cell of a CSV file; the standard library allows 131,072 unless told."""


def read_rows(path: Path) -> Iterator[FileRow]:
    """The rows of `path`, one by one; its suffix says what it is: `.eval` is a log of Inspect,
    `.csv` is CSV with a header, all else is JSON Lines.

    Raises:
        JournalError: the file cannot be read.
        UsageError: it is a log of Inspect, and inspect_ai is not installed.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".eval"]:
        yield from read_log(path)
        return
    reader = _csv_rows if ".csv" in suffixes[-2:] else _json_rows
    try:
        with _opened(path, is_compressed=suffixes[-1:] == [".gz"]) as file:
            yield from reader(file)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise JournalError(f"cannot read {path}: {reason}") from error


@contextmanager
def _opened(path: Path, *, is_compressed: bool) -> Iterator[BinaryIO]:
    open_file: Callable[..., BinaryIO] = (
        cast("Callable[..., BinaryIO]", gzip.open) if is_compressed else Path.open
    )
    with open_file(path, "rb") as file:
        yield file


def _json_rows(file: BinaryIO) -> Iterator[FileRow]:
    for number, line in enumerate(file, start=1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not text.strip():
            continue
        try:
            row = _loads(text)
        except (ValueError, RecursionError) as error:
            what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            torn = "" if line.endswith(b"\n") else "; the last line is cut off"
            yield FileRow(number, None, f"no JSON: {what}{torn}")
            continue
        if isinstance(row, dict):
            yield FileRow(number, row)
        else:
            yield FileRow(number, None, "no JSON object")


def _loads(text: bytes) -> object:
    """The value of a line; orjson refuses lone surrogates, which the standard library reads."""
    try:
        return exact_json.loads(text)
    except json.JSONDecodeError:
        if b"\\u" not in text:
            raise
        return json.loads(text)


def _csv_rows(file: BinaryIO) -> Iterator[FileRow]:
    csv.field_size_limit(_MOST_CELL)
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        rows = csv.reader(text, strict=True)
        header: list[str] | None = None
        while True:
            try:
                cells = next(rows, None)
            except csv.Error as error:
                yield FileRow(rows.line_num, None, f"no CSV: {error}")
                continue
            if cells is None:
                return
            if header is None:
                header = cells
            elif cells:
                yield _csv_row(rows.line_num, header, cells)


def _csv_row(number: int, header: Sequence[str], cells: Sequence[str]) -> FileRow:
    if any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
        return FileRow(number, None, "not UTF-8")
    if len(cells) != len(header):
        many = f"{len(cells)} cells where the header has {len(header)}"
        return FileRow(number, None, many)
    return FileRow(number, dict(zip(header, cells, strict=True)))
