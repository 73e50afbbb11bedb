"""The rows of a recorded file: JSON Lines, a JSON array or CSV, also compressed by gzip."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import MAX_LINE, bounded_lines, open_regular
from eyechart.harness.satellites.recorded.fields import MAX_DOCUMENT, FileRow
from eyechart.harness.satellites.recorded.inspect_log import read_log
from eyechart.harness.spec import exact_json

_UTF_16 = ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW")
_NOT_READ = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"PK\x03\x04": ("a zip archive or an Excel file", "save it as CSV in UTF-8"),
    b"PAR1": ("a Parquet file", "write its rows as JSON Lines"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "decompress it first"),
    b"BZh": ("compressed by bzip2", "decompress it first"),
    b"\xfd7zX": ("compressed by xz", "decompress it first"),
}
"""First bytes of a file -> its type, and a remedy."""
_NOT_UTF_8 = "not UTF-8; convert the file: iconv -f ISO-8859-1 -t UTF-8 FILE > NEW"
_DELIMITERS = ",;\t|"
_TOO_LONG = (
    f"longer than {MAX_LINE >> 20} MiB, the most that is read of a line or a CSV row; split it, or "
    "leave out columns that import does not need"
)


def read_rows(path: Path) -> Iterator[FileRow]:
    """The rows of `path`, one by one: the samples of a log of Inspect (`.eval`), the objects of a
    JSON array (`.json`), the lines of JSON Lines, or the rows below the header of a CSV file.

    Raises:
        JournalError: the file cannot be read, or has none of these forms.
        UsageError: it is a log of Inspect, and inspect_ai is not installed.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".eval":
        yield from read_log(path)
        return
    row = FileRow(0, None)
    try:
        with _opened(path) as file:
            for row in _reader(path, suffix, file.peek(1).lstrip(BOM_UTF8 + b" \t\r\n")[:1])(file):
                yield row
    except (EOFError, gzip.BadGzipFile, zlib.error):
        yield FileRow(row.number + 1, None, "the compressed data break off; get the file anew")
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror or error}") from error
    else:
        if not row.number:
            yield FileRow(1, None, "the file has no rows")


def _opened(path: Path) -> io.BufferedReader:
    """The content of a file, decompressed where it is compressed by gzip."""
    with open_regular(path) as file:
        first = file.read(4)
    for start, (what, remedy) in _NOT_READ.items():
        if first.startswith(start):
            raise JournalError(f"{path} is {what}, which import does not read; {remedy}")
    if first.startswith(b"\x1f\x8b"):
        return io.BufferedReader(cast("io.RawIOBase", gzip.open(path, "rb")))
    return path.open("rb")


def _reader(path: Path, suffix: str, first: bytes) -> Callable[[BinaryIO], Iterator[FileRow]]:
    """The function that reads a file, by its name and its first character."""
    if suffix == ".json" and first == b"[":
        return partial(_array_rows, path)
    is_json = first in (b"{", b"[") or suffix in (".json", ".jsonl", ".ndjson")
    return _json_rows if is_json and suffix not in (".csv", ".tsv") else partial(_csv_rows, path)


def _array_rows(path: Path, file: BinaryIO) -> Iterator[FileRow]:
    """The objects of a JSON array, numbered from 1."""
    text = file.read(MAX_DOCUMENT + 1)
    if len(text) > MAX_DOCUMENT:
        raise JournalError(
            f"{path} is a JSON array of more than {MAX_DOCUMENT >> 20} MiB, the most that is read; "
            "write its rows as JSON Lines"
        )
    try:
        read = _loads(text.removeprefix(BOM_UTF8))
    except (ValueError, RecursionError):
        file.seek(0)
        yield from _json_rows(file)  # JSON Lines in a file of another name
        return
    if not isinstance(read, list):
        raise JournalError(f"{path} is no JSON array of objects")
    for number, row in enumerate(read, start=1):
        is_row = isinstance(row, dict)
        yield FileRow(number, row if is_row else None, "" if is_row else "no JSON object")


def _json_rows(file: BinaryIO) -> Iterator[FileRow]:
    for number, line in enumerate(bounded_lines(file), start=1):
        if line is None:
            yield FileRow(number, None, _TOO_LONG)
            continue
        text = line.removeprefix(BOM_UTF8) if number == 1 else line
        if not text.strip():
            continue
        try:
            row = _loads(text)
        except (ValueError, RecursionError) as error:
            yield FileRow(number, None, _no_json(text, error))
            continue
        if isinstance(row, dict):
            yield FileRow(number, row)
        else:
            yield FileRow(number, None, "no JSON object")


def _no_json(line: bytes, error: Exception) -> str:
    try:
        line.decode()
    except UnicodeDecodeError:
        return _NOT_UTF_8
    what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    torn = "" if line.endswith(b"\n") else "; the last line is cut off"
    return f"no JSON: {what}{torn}"


def _loads(text: bytes) -> object:
    """The value of a line; orjson refuses lone surrogates, which the standard library reads."""
    try:
        return exact_json.loads(text)
    except json.JSONDecodeError:
        if b"\\u" not in text:
            raise
        return json.loads(text)


class _TooLongError(Exception):
    """A line of a CSV file, or a row of several lines, is too long."""


class _CsvLines:
    """The lines of a CSV file for `csv.reader`; raises `_TooLongError` in place of the line that
    makes a row longer than `MAX_LINE`, and goes on after it.
    """

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text
        self._row = 0
        self.number = 0
        """Lines so far."""

    def begin_row(self) -> None:
        """Starts a row with the next line."""
        self._row = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_LINE + 1 - self._row)
        if not line:
            raise StopIteration
        self.number += 1
        self._row += len(line)
        if self._row <= MAX_LINE:
            return line
        while line and not line.endswith(("\n", "\r")):
            line = self._text.readline(MAX_LINE)
        raise _TooLongError


def _csv_rows(path: Path, file: BinaryIO) -> Iterator[FileRow]:
    csv.field_size_limit(MAX_LINE)  # characters; 131,072 unless told
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        first = text.readline(MAX_LINE)
        text.seek(0)
        delimiter = max(_DELIMITERS, key=first.count)
        lines = _CsvLines(text)
        rows = csv.reader(lines, strict=True, delimiter=delimiter)
        header: list[str] | None = None
        while True:
            begins = lines.number + 1
            lines.begin_row()
            try:
                cells = next(rows, None)
            except _TooLongError:
                yield FileRow(begins, None, _TOO_LONG)
                continue
            except csv.Error as error:
                why = f"no CSV: {error}"
                if lines.number > begins:
                    why += f"; a quote that is opened on line {begins} is not closed"
                yield FileRow(begins, None, why)
                continue
            if cells is None:
                return
            if header is None:
                if twice := [name for name, n in Counter(cells).items() if n > 1 and name]:
                    raise JournalError(
                        f"{path}: its header names {twice[0]!r} twice; rename one of the columns"
                    )
                header = cells
            elif cells:
                yield _csv_row(lines.number, header, cells)


def _csv_row(number: int, header: Sequence[str], cells: Sequence[str]) -> FileRow:
    if any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
        return FileRow(number, None, _NOT_UTF_8)
    if len(cells) != len(header):
        many = f"{len(cells)} cell{'s' * (len(cells) != 1)} where the header has {len(header)}"
        return FileRow(number, None, many)
    return FileRow(number, dict(zip(header, cells, strict=True)))
