"""Files of strangers that `bench import` is given: each ends with a line of its own, no traceback,
bounded memory, and nothing in `--out` where nothing can be used.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from eyechart.harness.errors import JournalError
from eyechart.harness.journal import files as journal_files
from eyechart.harness.satellites.recorded import files, inspect_log
from eyechart.harness.satellites.recorded.files import read_rows
from tests.conftest import Done, Lab

DEEP = b"[" * 100_000 + b"]" * 100_000
GOOD = b'{"reply": "3", "target": 3, "length": 4}\n'
LM_EVAL = b'{"doc_id": %s, "doc": %s, "resps": %s, "arguments": %s, "target": %s}\n'
FILES: dict[str, bytes | Callable[[], bytes]] = {
    "empty.jsonl": b"",
    "empty.csv": b"",
    "empty.eval": b"",
    "deep.jsonl": DEEP + b"\n",
    "deep_value.jsonl": b'{"reply": ' + DEEP + b"}\n",
    "deep.json": DEEP,
    "nan.jsonl": b'{"reply": NaN, "target": Infinity, "length": -Infinity}\n',
    "huge_number.jsonl": b'{"reply": "3", "target": 1e999, "length": 1' + b"0" * 5000 + b"}\n",
    "wrong_types.jsonl": b'{"reply": [1], "target": {"a": []}, "length": "x"}\n',
    "twice.jsonl": b'{"reply": "3", "reply": [], "target": 3, "length": {}, "length": []}\n',
    "surrogate.jsonl": b'{"reply": "\\ud800", "target": "\\udfff", "length": "\\ud800"}\n',
    "nul.jsonl": b"\0" * 1000 + b"\n",
    "nul.csv": b"reply,target,length\n\0,\0,\0\n",
    "quotes.csv": b'reply,target,length\n"3,3,4\n',
    "columns.csv": lambda: b",".join(b"c%d" % n for n in range(1_000_000)) + b"\n1,2\n",
    "utf16.csv": "reply,target,length\n3,3,4\n".encode("utf-16"),
    "lm_eval.jsonl": LM_EVAL % (b"{}", b"[]", DEEP[:900] + DEEP[-900:], b"[[[]]]", b"NaN")
    + LM_EVAL % (b"1e999", b"null", b'[["3", "4"]]', b'{"gen_args_0": []}', b"{}"),
    "text.eval": b"this is no log",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_stranger(lab: Lab, name: str) -> None:
    """One line says what is wrong and where; nothing is written."""
    if name.endswith(".eval"):
        pytest.importorskip("inspect_ai", reason="no inspect_ai: pip install -e '.[inspect]'")
    path = lab.folder / name
    content = FILES[name]
    path.write_bytes(content() if callable(content) else content)
    done = bench_import(lab, path)
    assert done.code in (1, 2)
    said = done.err.splitlines()
    assert any(str(path) in line for line in said), done
    assert "Traceback" not in done.err
    assert all(len(line) < 1000 for line in said)
    assert not [*lab.out.rglob("*.jsonl")]


def bench_import(lab: Lab, path: Path) -> Done:
    return lab.bench(
        "import", path, "--task", lab.ones, "--model", "m", "--out", lab.out, "--axis",
        "separator=none",
    )  # fmt: skip


def test_a_folder_or_a_pipe(lab: Lab) -> None:
    """Nothing waits for a pipe."""
    pipe = lab.folder / "pipe.jsonl"
    os.mkfifo(pipe)
    bench_import(lab, lab.folder).one_line(2, "is a folder; name the files in it")
    bench_import(lab, pipe).one_line(2, "is a pipe or a device; name a file")


def long_line(path: Path) -> None:
    path.write_bytes(GOOD + b'{"reply": "' + b"a" * 5000 + b'"}\n' + GOOD)


def long_line_packed(path: Path) -> None:
    long_line(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


def long_cell(path: Path) -> None:
    path.write_bytes(b"reply,target,length\n3,3,4\n" + b"a" * 5000 + b",3,4\n3,3,4\n")


def long_row_of_lines(path: Path) -> None:
    row = b'"' + b'\n","\n'.join([b"a" * 100] * 50) + b'"\n'
    path.write_bytes(b"reply,target,length\n3,3,4\n" + row)


@pytest.mark.parametrize(
    ("name", "make", "number"),
    [
        ("a.jsonl", long_line, 2),
        ("a.jsonl.gz", long_line_packed, 2),
        ("a.csv", long_cell, 3),
        ("a.csv", long_row_of_lines, 3),
    ],
)
def test_a_line_that_is_too_long(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    make: Callable[[Path], None],
    number: int,
) -> None:
    """It is named with its number, the bound and what helps; no read takes more than the bound."""
    path = tmp_path / name
    make(path)
    monkeypatch.setattr(journal_files, "MAX_LINE", 1000)
    monkeypatch.setattr(files, "MAX_LINE", 1000)
    rows = [*read_rows(path)]
    refused = next(row for row in rows if row.row is None)
    assert refused.number == number
    assert "longer than 32 MiB, the most that is read of a line or a CSV row; split" in refused.why
    assert rows[0].row is not None
    if make is not long_row_of_lines:
        assert rows[-1].row is not None


class Counted(io.BytesIO):
    """A file that notes the largest read."""

    most = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        read = super().readline(size)
        self.most = max(self.most, len(read))
        return read


def test_no_long_line_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of it is passed over in pieces."""
    monkeypatch.setattr(journal_files, "MAX_LINE", 1000)
    file = Counted(b"a\n" + b"b" * 100_000 + b"\nc\n" + b"d" * 1001)
    assert [*journal_files.bounded_lines(file)] == [b"a\n", None, b"c\n", None]
    assert file.most == 1001


def test_a_json_array_that_is_too_large(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read at once, so it has a bound, and the remedy is named."""
    path = lab.folder / "a.json"
    path.write_bytes(b"[" + GOOD * 100 + b"]")
    monkeypatch.setattr(files, "MAX_DOCUMENT", 1000)
    bench_import(lab, path).one_line(1, str(path), "JSON array", "write its rows as JSON Lines")


def packed(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def lied(path: Path) -> None:
    """Declares a size of 10 bytes for each member, at both places."""
    packed(path, {"header.json": b"{}", "samples/1_epoch_1.json": b"a" * 5000})
    content = bytearray(path.read_bytes())
    for sign, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = content.find(sign)
        while at >= 0:
            content[at + place : at + place + 4] = (10).to_bytes(4, "little")
            at = content.find(sign, at + 4)
    path.write_bytes(content)


def locked(path: Path) -> None:
    """Says of each member that it is encrypted."""
    packed(path, {"header.json": b"{}"})
    content = bytearray(path.read_bytes())
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.find(sign) + place] |= 1
    path.write_bytes(content)


def bomb(path: Path) -> None:
    packed(path, {"header.json": b"{}", "samples/1_epoch_1.json": b"a" * 5000})


def torn(path: Path) -> None:
    bomb(path)
    path.write_bytes(path.read_bytes()[:-30])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (bomb, "'samples/1_epoch_1.json' in it is larger than"),
        (lied, "'samples/1_epoch_1.json' in it is larger than"),
        (locked, "encrypted"),
        (torn, "not a zip file"),
    ],
)
def test_the_members_of_a_log(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    words: str,
) -> None:
    """What is really unpacked counts, not what the archive declares."""
    path = tmp_path / "a.eval"
    make(path)
    monkeypatch.setattr(inspect_log, "MAX_DOCUMENT", 1000)
    with pytest.raises(JournalError, match=words) as refused:
        inspect_log.member_names(path)
    assert str(path) in str(refused.value)


HEADER = {
    "version": 2,
    "status": "success",
    "eval": {
        "created": "2026-04-01T00:00:00+00:00",
        "task": "ones",
        "dataset": {"samples": 10**9, "sample_ids": ["../../x", 1, 2]},
        "model": "m",
        "config": {"epochs": 10**9},
    },
}


@pytest.mark.inspect
@pytest.mark.parametrize(
    "members",
    [
        {},
        {"header.json": b"{}"},
        {"header.json": DEEP},
        {"header.json": b"NaN"},
        {"header.json": json.dumps(HEADER).encode()},
        {
            "header.json": json.dumps(HEADER).encode(),
            "../../x": b"{}",
            "/etc/x": b"{}",
            "samples/../../x_epoch_1.json": b"{}",
            "samples/1_epoch_999999999.json": DEEP,
        },
    ],
)
def test_a_log_of_a_stranger(lab: Lab, members: dict[str, bytes]) -> None:
    """Missing members, names that lead out, and a header with 10^9 samples and epochs."""
    pytest.importorskip("inspect_ai", reason="no inspect_ai: pip install -e '.[inspect]'")
    path = lab.folder / "a.eval"
    packed(path, members)
    done = bench_import(lab, path)
    assert done.code in (1, 2)
    assert "Traceback" not in done.err
    assert all(len(line) < 1000 for line in done.err.splitlines())
    assert not [*lab.out.rglob("*.jsonl")]
