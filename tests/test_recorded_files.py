"""Files of recorded replies in all their forms, and what is said of those that are in none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from eyechart.harness.errors import JournalError
from eyechart.harness.satellites.recorded.files import read_rows

ROWS = [{"reply": "3", "n": "3"}, {"reply": "a, b; c", "n": "4"}]
JSON = [json.dumps(row) for row in ROWS]
TABLE = 'reply,n\n3,3\n"a, b; c",4\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", TABLE.encode()),
        ("a.csv", TABLE.encode("utf-8-sig")),
        ("a.csv", TABLE.replace('",', '"##').replace("y,", "y##").replace("3,", "3##").encode()),
        ("a.tsv", b"reply\tn\r\n3\t3\r\na, b; c\t4\r\n"),
        ("a.txt", b'reply;n\n3;3\n"a, b; c";4\n'),
        ("a.csv", gzip.compress(TABLE.encode(), mtime=0)),
        ("a.csv.gz", TABLE.encode()),
        ("a.log", f"\n{JSON[0]}\n{JSON[1]}".encode()),
        ("a.json", f" [{JSON[0]},\n {JSON[1]}]".encode("utf-8-sig")),
        ("a.json.gz", gzip.compress("\n".join(JSON).encode(), mtime=0)),
    ],
)
def test_a_form_is_known_by_its_content(tmp_path: Path, name: str, content: bytes) -> None:
    """The delimiter, the compression and the mark at the beginning too; the name is a hint."""
    path = tmp_path / name
    path.write_bytes(content.replace(b"##", b"|"))
    assert [row.row for row in read_rows(path)] == ROWS


@pytest.mark.parametrize(
    ("name", "content", "number", "why"),
    [
        ("a.csv", b"", 1, "no rows"),
        ("a.csv", b"reply,n\n", 1, "no rows"),
        ("a.jsonl", b"\n", 1, "no rows"),
        ("a.csv", "reply,n\ncafé,3\n".encode("latin-1"), 2, "not UTF-8; convert"),
        ("a.jsonl", '{"reply": "café"}\n'.encode("latin-1"), 1, "not UTF-8; convert"),
        ("a.csv", b"reply,n\n3\n", 2, "1 cell where the header has 2"),
        ("a.json", b"[3]", 1, "no JSON object"),
        ("a.jsonl", b'{"reply": "3', 1, "the last line is cut off"),
        (
            "a.csv.gz",
            gzip.compress(TABLE.encode(), mtime=0)[:-9],
            1,
            "break off; get the file anew",
        ),
    ],
)
def test_a_row_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes, number: int, why: str
) -> None:
    """Is named by its line, with what helps; the rows before it stay."""
    path = tmp_path / name
    path.write_bytes(content)
    *before, row = read_rows(path)
    assert all(one.row is not None for one in before)
    assert (row.number, row.row) == (number, None)
    assert why in row.why


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TABLE.encode("utf-16"), "is UTF-16, .*iconv -f UTF-16"),
        (b"PK\x03\x04", "Excel file, .*save it as CSV"),
        (b"PAR1", "Parquet file, .*JSON Lines"),
    ],
)
def test_a_file_of_another_kind(tmp_path: Path, content: bytes, words: str) -> None:
    """Is named once, with what helps."""
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=words):
        list(read_rows(path))
