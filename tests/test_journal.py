"""A run's folder: nothing written is lost, and nothing wrong in it costs more than itself."""

from __future__ import annotations

import errno
import io
import multiprocessing
import os
import shutil
import signal
import socket
import stat
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.errors import JournalError
from eyechart.harness.journal import writer
from eyechart.harness.journal.answers import AnswerIndex, answered
from eyechart.harness.journal.files import replace_file
from eyechart.harness.journal.line_finder import LineFinder
from eyechart.harness.journal.manifest import (
    MANIFEST,
    Manifest,
    read_manifest,
    run_folder,
    run_mark,
    write_manifest,
)
from eyechart.harness.journal.record import SAMPLES, Failure, Record, decode, encode, read_records
from eyechart.harness.journal.writer import Journal, set_aside
from eyechart.harness.spec import Cell, Condition, Line, Settings, TaskSpec, exact_json, lines_of
from eyechart.harness.task.catalogue import open_task
from eyechart.harness.task.source import parse
from eyechart.providers.base import Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import DEFAULTS, ONES, PATIENCE_S, right

if TYPE_CHECKING:
    from tests.conftest import Lab


CONDITION = Condition({"separator": "none"})
LINE = Line.exact(3)
KEY = CONDITION, LINE
BAND = {"length": 3, "low": 3, "high": 3}
ASKED = {"condition": dict(CONDITION), "line": BAND, "samples": 1}


class FullDisk(io.FileIO):
    """A file of which half of what is written has room."""

    def write(self, content: Any) -> int:
        super().write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def raw(index: int, **changes: Any) -> dict[str, Any]:
    made = {
        "id": f"lab/ones@1|separator=none|length=3|seed=0|index={index}",
        "condition": dict(CONDITION),
        "length": 3,
        "index": index,
        "target": 2,
        "prompt_hash": f"{index + 1:016x}",
        "reply": "Final answer: 2",
        "finish_reason": "stop",
    }
    return made | changes


def record(index: int, **changes: Any) -> Record:
    """The same as a value."""
    fields = raw(index, **changes)
    fields["condition"] = Condition(fields["condition"])
    if fields.get("failure") is not None:
        fields["failure"] = Failure(**fields["failure"])
    return Record(**fields)


def write(folder: Path, *lines: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / SAMPLES).write_bytes(b"".join(lines))
    return folder


def line(index: int, **changes: Any) -> bytes:
    return orjson.dumps(raw(index, **changes)) + b"\n"


def indices(folder: Path) -> list[int]:
    return [one.index for one in read_records(folder)]


class TestWriting:
    """One line a reply, as it arrives."""

    def test_a_key_that_a_server_says_back_is_not_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In what others filled in; what a run is resumed by stays as it is."""
        secret = "planted-0123456789"  # noqa: S105  planted to be looked for
        monkeypatch.setenv("SOME_API_KEY", secret)
        said = {
            "reply": f'"{secret}"',
            "model": secret,
            "reasoning": f"hm {secret}",
            "refusal": secret,
            "logprobs": (("planted-", -0.1), ("0123456789", -0.2), ("!", -0.3)),
            "failure": {"kind": "error", "type": "X", "message": secret},
            "batch": secret,
        }
        with Journal(tmp_path, print) as book:
            book.append(record(0, id=secret, **said))
            book.append(record(1))
            book.append(record(2, reply=secret))
        first, second, third = read_records(tmp_path)
        assert first == record(
            0,
            id=secret,
            reply='"***"',
            model="***",
            reasoning="hm ***",
            refusal="***",
            logprobs=(("***", -0.1), ("***", -0.2), ("!", -0.3)),
            failure={"kind": "error", "type": "X", "message": "***"},
            batch="***",
        )
        assert (second, third) == (record(1), record(2, reply="***"))

    def test_a_record_is_in_the_file_when_append_returns(self, tmp_path: Path) -> None:
        """Another process sees each line at once, before the journal is closed."""
        with Journal(tmp_path, print) as book:
            for index in range(3):
                book.append(record(index))
                lines = (tmp_path / SAMPLES).read_bytes().split(b"\n")
                assert [orjson.loads(one)["index"] for one in lines[:-1]] == list(range(index + 1))
                assert lines[-1] == b""

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            *((name, "x") for name in ("chars", "attempts", "at", "latency_s", "prompt_tokens")),
            *(("prompt_tokens", value) for value in (-1, 10**13, 10**40, 1.5, True, [1])),
            ("output_tokens", {}),
            ("batch", 7),
            ("dropped_params", "seed"),
            ("logprobs", [["a"]]),
        ],
    )
    def test_a_wrong_detail_costs_itself_and_not_the_answer(
        self, tmp_path: Path, name: str, wrong: object
    ) -> None:
        """The reply was paid for."""
        sound = {"chars": 3, "batch": "b"} | {name: wrong}
        write(tmp_path, exact_json.dumps(raw(0, **sound)) + b"\n")
        (read,) = read_records(tmp_path, pytest.fail)
        assert (read.reply, getattr(read, name)) == ("Final answer: 2", None)
        assert [read.chars, read.batch] == [
            None if name == "chars" else 3,
            None if name == "batch" else "b",
        ]

    def test_a_failure_of_odd_words_is_one(self, tmp_path: Path) -> None:
        """Its kind is what counts."""
        failure = {"kind": "refused", "type": 7, "message": None, "more": [1]}
        write(tmp_path, orjson.dumps(raw(0, reply=None, failure=failure)) + b"\n")
        (read,) = read_records(tmp_path, pytest.fail)
        assert read.failure == Failure("refused")

    def test_records_come_back_as_they_were(self, tmp_path: Path) -> None:
        """What a model said is kept to the character: line breaks, quotes, any script."""
        said = 'two\nlines\r\n\t"quoted" \\ \u2028 \x00 \x1b[31m 円 🦉'
        with Journal(tmp_path, print) as book:
            book.append(record(0, reply=said))
        (read,) = read_records(tmp_path)
        assert read == record(0, reply=said)

    def test_half_a_character_does_not_end_the_run(self, tmp_path: Path) -> None:
        """A lone surrogate, as a cut-off emoji comes out of a server's JSON, is written somehow."""
        with Journal(tmp_path, print) as book:
            book.append(record(0, reply="Final answer: 2 \ud83d"))
            book.append(record(1))
        replies = {one.index: one.reply for one in read_records(tmp_path)}
        assert str(replies[0]).startswith("Final answer: 2 ")
        assert set(replies) == {0, 1}

    def test_a_disk_that_takes_little_at_a_time_gets_it_all(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Short writes are continued."""
        true_write = os.write
        with Journal(tmp_path, print) as book:
            monkeypatch.setattr(os, "write", lambda file, data: true_write(file, data[:7]))
            book.append(record(0))
            monkeypatch.undo()
        assert indices(tmp_path) == [0]

    def test_a_full_disk_is_said_in_a_line_and_costs_one_record(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error names the file; the records before it and, with room again, after it stay."""
        true_write, room = os.write, [40]

        def full(file: int, data: bytes) -> int:
            if not room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return true_write(file, data[: room.pop()])

        with Journal(tmp_path, print) as book:
            book.append(record(0))
            monkeypatch.setattr(os, "write", full)
            with pytest.raises(JournalError, match=r"samples\.jsonl: No space left"):
                book.append(record(1))
            monkeypatch.undo()
            book.append(record(2))
        assert indices(tmp_path) == [0, 2]


def _deleted(path: Path) -> None:
    path.unlink()


def _moved(path: Path) -> None:
    path.rename(path.with_name("moved"))


def _folder_deleted(path: Path) -> None:
    shutil.rmtree(path.parent)


WRITTEN = len(encode(record(0))) + 1
"""Bytes of a record's line in the file."""


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes and replaces no open file")
class TestOtherPrograms:
    """What another program does to the file of a writer stops it at the next write."""

    @pytest.mark.parametrize("change", [_deleted, _moved, _folder_deleted])
    def test_a_file_that_is_gone_is_written_again(
        self, tmp_path: Path, change: Callable[[Path], None]
    ) -> None:
        """With each of its records and the new one; what comes after that is written as usual."""
        folder = tmp_path / "run"
        with Journal(folder, print) as book:
            book.append(record(0))
            book.append(record(1))
            change(folder / SAMPLES)
            with pytest.raises(JournalError) as caught:
                book.append(record(2))
            assert indices(folder) == [0, 1, 2]
            book.append(record(3))
        said = str(caught.value)
        assert said.startswith(f"{folder / SAMPLES} was deleted or moved during the run")
        assert "the same command goes on" in said
        assert indices(folder) == [0, 1, 2, 3]

    def test_a_file_that_replaced_it_stays(self, tmp_path: Path) -> None:
        """Also one that looks longer; the records of the run are in a journal beside it."""
        other = tmp_path / "other"
        other.write_bytes(b"".join(line(index) for index in range(10, 20)))
        with Journal(tmp_path, print) as book:
            book.append(record(0))
            other.replace(tmp_path / SAMPLES)
            with pytest.raises(JournalError, match="another file replaced") as caught:
                book.append(record(1))
            book.append(record(2))
        (saved,) = tmp_path.glob("samples-*.jsonl")
        assert saved.name in str(caught.value)
        assert indices(tmp_path) == [0, 1, 2, *range(10, 20)]
        saved.unlink()
        assert indices(tmp_path) == list(range(10, 20))

    @pytest.mark.parametrize("left", [0, WRITTEN, WRITTEN + 5])
    def test_a_file_that_was_cut_goes_on_from_there(self, tmp_path: Path, left: int) -> None:
        """The record that comes next is not lost in what is left of a line."""
        with Journal(tmp_path, print) as book:
            for index in range(3):
                book.append(record(index))
            size = (tmp_path / SAMPLES).stat().st_size
            os.truncate(tmp_path / SAMPLES, left)
            with pytest.raises(JournalError) as caught:
                book.append(record(3))
            book.append(record(4))
        assert f"was cut from {size:,} to {left:,} bytes" in str(caught.value)
        assert indices(tmp_path) == ([0, 3, 4] if left else [3, 4])

    def test_nothing_that_was_paid_for_is_asked_again(self, lab: Lab) -> None:
        """The run stops at once; the same command asks what was not asked."""
        wanted = lab.wanted()
        asked: list[str] = []

        def script(request: Request) -> str:
            asked.append(request.sample_id)
            if len(asked) == 6:
                (wanted.folder / SAMPLES).unlink()
            return right(request)

        with pytest.raises(JournalError, match="was deleted or moved"):
            lab.run(wanted, ScriptedProvider(script), max_connections=1)
        assert len(asked) == 6
        lab.run(wanted, ScriptedProvider(script))
        assert len(asked) == len(set(asked)) == wanted.plan.size


class TestRepair:
    """What a crash leaves is mended by the next writer."""

    def test_a_last_line_torn_anywhere_is_cut_off(self, tmp_path: Path) -> None:
        """Wherever `kill -9` struck, the whole lines stay and the next record starts afresh."""
        whole, last = line(0) + line(1), line(2)
        for kept in range(len(last)):
            said: list[str] = []
            write(tmp_path, whole, last[:kept])
            with Journal(tmp_path, said.append) as book:
                book.append(record(3))
            complete = kept == len(last) - 1
            assert indices(tmp_path) == ([0, 1, 2, 3] if complete else [0, 1, 3])
            assert len(said) == (0 if kept == 0 or complete else 1)

    def test_a_journal_of_only_a_torn_line_is_emptied(self, tmp_path: Path) -> None:
        """There is nothing before it to keep."""
        said: list[str] = []
        write(tmp_path, line(0)[:50])
        with Journal(tmp_path, said.append):
            assert (tmp_path / SAMPLES).read_bytes() == b""
        assert "incomplete last line" in said[0]

    def test_a_long_torn_line_is_found_whole(self, tmp_path: Path) -> None:
        """The search for its beginning goes further back than one block of the file."""
        write(tmp_path, line(0), line(1, reply="x" * 300_000)[:-20])
        with Journal(tmp_path, print) as book:
            book.append(record(2))
        assert indices(tmp_path) == [0, 2]

    def test_binary_at_the_end_is_cut_off(self, tmp_path: Path) -> None:
        """Blocks of zeros, which some file systems leave after a power cut, count as torn."""
        write(tmp_path, line(0), bytes(4096))
        with Journal(tmp_path, print) as book:
            book.append(record(1))
        assert indices(tmp_path) == [0, 1]

    def test_reading_alone_mends_nothing(self, tmp_path: Path) -> None:
        """A reader leaves a torn line, which somebody may be writing, and says nothing of it."""
        said: list[str] = []
        write(tmp_path, line(0), line(1)[:30])
        before = (tmp_path / SAMPLES).read_bytes()
        assert [one.index for one in read_records(tmp_path, said.append)] == [0]
        assert (tmp_path / SAMPLES).read_bytes() == before
        assert said == []


GARBAGE = {
    "binary": b"\x00\xff\xfe\x80 \x93",
    "half a record": line(1)[:40],
    "text": b"Final answer: 2",
    "a list": b'["id", "condition", "length", "index"]',
    "a number": b"7",
    "a string": b'"id condition length index"',
    "null": b"null",
    "an object": b"{}",
    "deep nesting": b"[" * 5000,
    "not finite": b'{"id": NaN}',
}


class TestCorruptLines:
    """A line that is no record is reported, and costs its own sample."""

    @pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
    def test_a_corrupt_line_is_named_and_passed_over(self, tmp_path: Path, garbage: bytes) -> None:
        """The warning has file and line number; the lines around it are read."""
        said: list[str] = []
        write(tmp_path, line(0), garbage + b"\n", line(2))
        assert [one.index for one in read_records(tmp_path, said.append)] == [0, 2]
        (warning,) = said
        assert f"{tmp_path / SAMPLES}:2:" in warning

    def test_empty_lines_are_nothing(self, tmp_path: Path) -> None:
        """They are passed over without a word."""
        said: list[str] = []
        write(tmp_path, b"\n", line(0), b"\n  \n\r\n", line(1), b"\n")
        assert [one.index for one in read_records(tmp_path, said.append)] == [0, 1]
        assert said == []

    def test_no_journal_has_no_records(self, tmp_path: Path) -> None:
        """A run that was planned and killed before its first reply is read like any other."""
        assert list(read_records(tmp_path)) == []


MISSING = ("id", "condition", "length", "index", "target", "prompt_hash")


def without(name: str) -> Callable[[dict[str, Any]], Any]:
    """Takes `name` out of a record."""
    return lambda good: good.pop(name)


WRONG: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"no {name}": without(name) for name in MISSING},
    "neither reply nor failure": lambda good: good.pop("reply"),
    "index below zero": lambda good: good.update(index=-1),
    "index in quotes": lambda good: good.update(index="0"),
    "index with a fraction": lambda good: good.update(index=0.5),
    "no number as index": lambda good: good.update(index=None),
    "index of a trillion": lambda good: good.update(index=10**12),
    "index beyond 64 bits": lambda good: good.update(index=2.0**80),
    "condition as text": lambda good: good.update(condition="separator=none"),
    "condition as list": lambda good: good.update(condition=["none"]),
    "no condition at all": lambda good: good.update(condition=None),
    "unknown condition": lambda good: good.update(condition={"separator": "dash"}),
    "condition of lists": lambda good: good.update(condition={"separator": ["none"]}),
    "length in quotes": lambda good: good.update(length="3"),
    "length as list": lambda good: good.update(length=[3]),
    "length below zero": lambda good: good.update(length=-3),
    "length of a trillion": lambda good: good.update(length=10**12),
    "target as list": lambda good: good.update(target=[2]),
    "null target": lambda good: good.update(target=None),
    "prompt hash in no hex": lambda good: good.update(prompt_hash="zz"),
    "prompt hash too long": lambda good: good.update(prompt_hash="f" * 40),
    "prompt hash as number": lambda good: good.update(prompt_hash=7),
    "reply as number": lambda good: good.update(reply=5),
    "reply as object": lambda good: good.update(reply={"text": "Final answer: 2"}),
    "failure as text": lambda good: good.update(reply=None, failure="error"),
    "failure as list": lambda good: good.update(reply=None, failure=["error"]),
    "failure of no kind": lambda good: good.update(reply=None, failure={"type": "X"}),
}
"""What may be wrong with a record -> how to spoil a good one so."""


@pytest.mark.parametrize("value", [1, None, True, ["none"], {}])
def test_the_values_of_a_condition_are_texts(value: object) -> None:
    """Else the line is no record, also where no task has such a condition."""
    fields = orjson.loads(line(0))
    assert decode(orjson.dumps(fields)).condition == CONDITION
    with pytest.raises(ValueError, match="condition"):
        decode(orjson.dumps(fields | {"condition": {"separator": value}}))


class TestWrongRecords:
    """JSON that is no record of this run never ends a command."""

    def test_instead_of_a_good_one_costs_its_sample(self, lab: Lab) -> None:
        """Scored, its sample is not run; resumed, it and no other is asked, and all is whole."""
        wanted = lab.wanted()
        first = lab.asked(wanted)[0]
        cells = read_run(wanted.folder).cells
        good, *rest = (wanted.folder / SAMPLES).read_bytes().splitlines(keepends=True)
        sound = shutil.copytree(wanted.folder, lab.folder / "sound")
        for name, spoil in WRONG.items():
            shutil.rmtree(wanted.folder)
            shutil.copytree(sound, wanted.folder)
            read = orjson.loads(good)
            assert read["id"] == first
            spoil(read)
            write(wanted.folder, orjson.dumps(read) + b"\n", *rest)
            scored = lab.bench("score", wanted.folder)
            assert scored.code == 1, name
            assert counted(wanted.folder) == {"correct": 15, "not_run": 1}, name
            assert lab.asked(wanted) == [first], name
            again = read_run(wanted.folder)
            assert again.missing == 0, name
            assert again.cells.equals(cells), name

    def test_besides_the_good_ones_they_change_nothing(self, lab: Lab) -> None:
        """Appended to a whole run they override no answer, and nothing is asked."""
        wanted = lab.wanted()
        lab.asked(wanted)
        lab.bench("score", wanted.folder)
        table = (wanted.folder / TABLE).read_bytes()
        lines = (wanted.folder / SAMPLES).read_bytes().splitlines(keepends=True)
        wrong = []
        for spoil in WRONG.values():
            read = orjson.loads(lines[0]) | {"reply": "Final answer: 99"}
            spoil(read)
            wrong.append(orjson.dumps(read) + b"\n")
        write(wanted.folder, *lines, *wrong)
        assert lab.bench("score", wanted.folder).code == 0
        assert (wanted.folder / TABLE).read_bytes() == table
        assert lab.asked(wanted) == []


def counted(folder: Path) -> dict[str, int]:
    """Outcome -> number of samples, from `table.csv`; without the zeros."""
    head, *rows = (row.split(",") for row in (folder / TABLE).read_text().splitlines())
    names = head[head.index("correct") : head.index("accuracy")]
    sums = {name: sum(int(row[head.index(name)]) for row in rows) for name in names}
    return {name: count for name, count in sums.items() if count}


def test_a_target_of_the_wrong_type_crashes_nothing(lab: Lab) -> None:
    """Only the task knows that it should be a number; whoever judges it says so or lets it be."""
    wanted = lab.wanted()
    lab.asked(wanted)
    first, *rest = (wanted.folder / SAMPLES).read_bytes().splitlines(keepends=True)
    wrong = orjson.dumps(orjson.loads(first) | {"target": "two"}) + b"\n"
    write(wanted.folder, wrong, *rest)
    lab.bench("score", wanted.folder)
    counts = counted(wanted.folder)
    assert counts["correct"] == 15
    assert sum(counts.values()) == 16


def test_harmless_oddities_of_a_record_are_borne(lab: Lab) -> None:
    """Unknown keys and odd values of what only informs neither crash nor cost the answer."""
    wanted = lab.wanted()
    lab.asked(wanted)
    lines = (wanted.folder / SAMPLES).read_bytes().splitlines(keepends=True)
    odd = {"new": [1], "prompt_tokens": "many", "output_tokens": None, "latency_s": "x", "at": None}
    write(wanted.folder, orjson.dumps(orjson.loads(lines[0]) | odd) + b"\n", *lines[1:])
    assert lab.bench("score", wanted.folder).code == 0
    assert counted(wanted.folder) == {"correct": 16}
    assert lab.asked(wanted) == []


def _hold(folder: Path, held: Any) -> None:
    with Journal(folder, print):
        held.set()
        signal.pause()


class TestOneWriter:
    """Only one process writes a run."""

    def test_a_second_writer_is_told_who_holds_it(self, tmp_path: Path) -> None:
        """The refusal has the first one's process id, machine and time, and a remedy."""
        with Journal(tmp_path, print), pytest.raises(JournalError) as refused:
            Journal(tmp_path, print).__enter__()
        said = str(refused.value)
        assert f"process {os.getpid()} on {os.uname().nodename} since 2" in said
        assert "use another out" in said
        assert "\n" not in said

    @pytest.mark.parametrize("content", [None, b"", b"[]", b"{}", b"\xff"])
    def test_who_holds_it_may_be_unknown(self, tmp_path: Path, content: bytes | None) -> None:
        """A writer's note that is missing or broken does not break the refusal."""
        with Journal(tmp_path, print):
            note = tmp_path / "samples.writer.json"
            note.unlink()
            if content is not None:
                note.write_bytes(content)
            with pytest.raises(JournalError, match="is being written by another process"):
                Journal(tmp_path, print).__enter__()

    def test_the_lock_is_free_afterwards(self, tmp_path: Path) -> None:
        """Also after an error inside."""
        with pytest.raises(KeyError), Journal(tmp_path, print):
            raise KeyError
        with Journal(tmp_path, print) as book:
            book.append(record(0))
        assert indices(tmp_path) == [0]

    def test_a_killed_writer_holds_nothing(self, tmp_path: Path) -> None:
        """The lock dies with its process; the note it leaves does not matter."""
        context = multiprocessing.get_context("fork")
        held = context.Event()
        holder = context.Process(target=_hold, args=(tmp_path, held))
        holder.start()
        assert held.wait(30)
        with pytest.raises(JournalError, match=f"process {holder.pid} "):
            Journal(tmp_path, print).__enter__()
        holder.kill()
        holder.join()
        with Journal(tmp_path, print) as book:
            book.append(record(0))
        assert indices(tmp_path) == [0]

    def test_readers_need_no_lock(self, tmp_path: Path) -> None:
        """A run can be looked at while it grows."""
        with Journal(tmp_path, print) as book:
            book.append(record(0))
            assert indices(tmp_path) == [0]


class TestUnusableFolders:
    """A folder that cannot be written is one clear error."""

    def test_a_file_in_the_place_of_the_folder(self, tmp_path: Path) -> None:
        """The error names the folder."""
        place = tmp_path / "run"
        place.write_text("here first")
        with pytest.raises(JournalError, match=f"cannot write to {place}"):
            Journal(place, print).__enter__()
        assert place.read_text() == "here first"

    def test_a_file_in_the_place_of_a_parent(self, tmp_path: Path) -> None:
        """Likewise further up."""
        (tmp_path / "results").write_text("")
        with pytest.raises(JournalError, match="cannot write to"):
            Journal(tmp_path / "results" / "runs" / "x", print).__enter__()

    @pytest.mark.parametrize("name", ["samples.jsonl", "samples.lock", "samples.writer.json"])
    def test_a_folder_in_the_place_of_a_file(self, tmp_path: Path, name: str) -> None:
        """The error is a line, and the lock is given back."""
        (tmp_path / name).mkdir()
        with pytest.raises(JournalError, match=str(tmp_path)):
            Journal(tmp_path, print).__enter__()
        (tmp_path / name).rmdir()
        with Journal(tmp_path, print):
            pass

    def test_the_disk_is_full_from_the_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first note that cannot be written is an error in one line."""
        monkeypatch.setattr(Path, "open", lambda path, mode="r": FullDisk(path, mode))
        with pytest.raises(JournalError, match="No space left"):
            Journal(tmp_path, print).__enter__()


class TestReplacing:
    """A file that is written whole or not at all."""

    def test_what_killed_writers_left_goes(self, tmp_path: Path) -> None:
        """Of this file and of processes that are no more; nothing else beside it."""
        child = multiprocessing.get_context("fork").Process(target=os._exit, args=(0,))
        child.start()
        child.join()
        here = socket.gethostname()
        left = [f"a[1].csv.{here}.{pid}.tmp" for pid in (child.pid, 10**30)]
        kept = [
            f"a[1].csv.{here}.{os.getppid()}.tmp",  # it may be at it
            f"a[1].csv.elsewhere.{child.pid}.tmp",
            f"other.csv.{here}.{child.pid}.tmp",
            f"a[1].csv.{here}.mine.tmp",
            f"a[1].csv.{here}.{child.pid}.bak",
        ]
        for name in (*left, *kept):
            (tmp_path / name).write_text("half")
        replace_file(tmp_path / "a[1].csv", b"whole")
        assert {path.name for path in tmp_path.iterdir()} == {"a[1].csv", *kept}
        assert (tmp_path / "a[1].csv").read_bytes() == b"whole"

    def test_permissions_stay(self, tmp_path: Path) -> None:
        """Those of a file that was there; a new one has the usual ones."""
        path = tmp_path / "a.csv"
        replace_file(path, b"1")
        usual = path.stat().st_mode & 0o777
        path.chmod(0o600)
        replace_file(path, b"2")
        assert path.stat().st_mode & 0o777 == 0o600 != usual


class TestAnswered:
    """What needs no asking."""

    def test_errors_are_asked_again_and_other_failures_not(self, tmp_path: Path) -> None:
        """A prompt that was too long or refused is an answer; an error is none."""
        failures = [
            {"reply": None, "failure": {"kind": kind, "type": "X", "message": "m"}}
            for kind in ("error", "overflow", "refused")
        ]
        lines = [line(place, **failure) for place, failure in enumerate(failures)]
        write(tmp_path, *lines, line(3))
        index = answered(tmp_path, print, [LINE], 0)
        assert index.count_in(Cell(*KEY, 4)) == 3
        assert index.count_in(Cell(*KEY, 1)) == 0

    def test_an_answer_stays_one_after_a_later_error(self, tmp_path: Path) -> None:
        """Whichever came first, the sample is not asked again."""
        error = {"reply": None, "failure": {"kind": "error"}}
        write(tmp_path, line(0), line(0, **error), line(1, **error), line(1))
        assert answered(tmp_path, print, [LINE], 0).count_in(Cell(*KEY, 9)) == 2

    def test_counts_end_where_the_cell_ends(self) -> None:
        """Answers beyond the samples asked for do not count, nor those of other cells."""
        index = AnswerIndex(LineFinder([LINE], 0))
        for place in (0, 2, 7):
            index.add(CONDITION, 3, place, 1)
        assert [index.count_in(Cell(*KEY, samples)) for samples in (0, 1, 3, 7, 8, 99)] == [
            *(0, 1, 2, 2, 3, 3)
        ]
        assert index.count_in(Cell(Condition({"separator": "comma"}), LINE, 9)) == 0

    def test_each_draw_has_an_answer_of_its_own(self, tmp_path: Path) -> None:
        """A further draw of an answered sample is still to be asked."""
        write(tmp_path, line(0), line(0, draw=3), line(1, draw=2), line(2, draw=0))
        index = answered(tmp_path, print, [LINE], 0)
        counts = [index.count_in(Cell(*KEY, 3, draws=draws)) for draws in (1, 2, 3)]
        assert counts == [1, 2, 3]
        cells = [Cell(*KEY, samples, draws) for samples, draws in ((9, 1), (9, 9), (1, 9))]
        found = [Cell(*KEY, 1, 1), Cell(*KEY, 2, 3), Cell(*KEY, 1, 3)]
        assert list(map(index.recorded, cells)) == found

    def test_a_record_is_in_every_cell_that_has_its_sample(self) -> None:
        """Exact lines and bands of several commands may overlap; a sample of no line is known by
        its length.
        """
        band, exact, wide = Line(50, 41, 61), Line.exact(50), Line(60, 30, 90)
        finder = LineFinder([band, exact, wide, band], 7)
        assert not finder.find(29, 0)
        for index in range(300):
            true_length = band.length_of(index, 7)
            in_wide = wide.length_of(index, 7) == true_length
            expected = [exact] * (true_length == 50) + [band] + [wide] * in_wide
            assert sorted(finder.find(true_length, index)) == sorted(expected)
            assert band not in finder.find(true_length - 1, index)
        answered = AnswerIndex(finder)
        index = next(index for index in range(300) if band.length_of(index, 7) == 50)
        answered.add(CONDITION, 50, index, 9)
        answered.add(CONDITION, 5000, 3, 8)
        assert answered.mark((CONDITION, band), index) == 9
        assert answered.mark((CONDITION, exact), index) == 9
        assert answered.mark((CONDITION, Line.exact(5000)), 3) == 8
        assert answered.count_in(Cell(CONDITION, band, 300)) == 1

    def test_many_answers_of_bands_take_little_memory(self) -> None:
        """Eight bytes each, as those of exact lengths; their true lengths need no arrays."""
        lines = lines_of([100, 200, 300], "bands")
        answered = AnswerIndex(LineFinder(lines, 5))
        tracemalloc.start()
        try:
            for index in range(10_000):
                for one in lines:
                    answered.add(CONDITION, one.length_of(index, 5), index, 2**63 + index)
            size = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert [answered.count_in(Cell(CONDITION, one, 99_999)) for one in lines] == [10_000] * 3
        assert size < 30_000 * 12


MANIFESTS = {
    "empty": b"",
    "truncated": b'{"model": "x", "task": "lab/on',
    "binary": b"\x00\xff\xfe",
    "null": b"null",
    "a list": b"[]",
    "a number": b"3",
    "an empty object": b"{}",
    "cells as number": b'{"cells": 3}',
    "cells of numbers": b'{"cells": [3]}',
}


class TestManifest:
    """What made a run."""

    def test_it_has_no_key(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever a server says of itself."""
        secret = "planted-0123456789"  # noqa: S105  planted to be looked for
        monkeypatch.setenv("SOME_API_KEY", secret)
        with Journal(tmp_path, print):
            manifest = self.manifest()
            manifest.server = {"root": [secret], secret: 1}
            manifest.answered_by = [f"m {secret}"]
            manifest.commands = [f"bench run --x '{secret}'"]
            write_manifest(tmp_path, manifest)
        kept = read_manifest(tmp_path)
        assert kept.server == {"root": ["***"], "***": 1}
        assert kept.answered_by == ["m ***"]
        assert kept.commands == ["bench run --x '***'"]

    def manifest(self) -> Manifest:
        spec = TaskSpec.model_validate(parse(ONES).data)
        digest, fields, settings = spec.digest(), spec.model_dump(mode="json"), Settings()
        mark = run_mark("m", "lab/ones", digest, settings)
        return Manifest("m", "lab/ones", 1, digest, fields, settings, run=mark)

    def test_it_comes_back_as_it_was(self, tmp_path: Path) -> None:
        """With its lines and samples."""
        manifest = self.manifest()
        manifest.cells = [Cell(CONDITION, Line.exact(3), 4), Cell(CONDITION, Line(5, 4, 7), 4, 2)]
        write_manifest(tmp_path, manifest)
        assert read_manifest(tmp_path) == manifest
        assert read_manifest(tmp_path).cells[-1].line == Line(5, 4, 7)
        assert {path.name for path in tmp_path.iterdir()} == {MANIFEST, "manifest.lock"}

    def test_two_writers_lose_nothing_of_each_other(self, tmp_path: Path) -> None:
        """Each knows only its own commands, models and addresses."""
        one, other = self.manifest(), self.manifest()
        one.commands, one.answered_by = ["bench run --shard 1/2"], ["m-1"]
        other.commands, other.answered_by = ["bench run --shard 2/2"], ["m-2"]
        other.accepted, other.counted = ["http://b"], {"-": "3:1:5"}
        for manifest in (one, other, one):
            write_manifest(tmp_path, manifest)
        both = read_manifest(tmp_path)
        assert sorted(both.commands) == ["bench run --shard 1/2", "bench run --shard 2/2"]
        assert sorted(both.answered_by) == ["m-1", "m-2"]
        assert (both.accepted, both.counted) == (["http://b"], {"-": "3:1:5"})

    def test_a_plan_is_what_was_asked_last_and_what_is_answered(self) -> None:
        """Each cell with its most samples and draws."""
        manifest, band = self.manifest(), Line(5, 4, 7)
        manifest.plan_cells([Cell(CONDITION, Line.exact(3), 400), Cell(CONDITION, band, 9)], [], ())
        recorded = [Cell(CONDITION, Line.exact(3), 6, 2)]
        manifest.plan_cells([Cell(CONDITION, Line.exact(3), 4)], recorded, ())
        assert manifest.cells == recorded
        manifest.plan_cells([Cell(CONDITION, Line.exact(3), 8, 1)], recorded, ())
        assert manifest.cells == [Cell(CONDITION, Line.exact(3), 8, 2)]

    def test_waves_are_said_of_conditions(self, tmp_path: Path) -> None:
        """A plan of one condition changes nothing of another one; a full plan ends the waves."""
        manifest = self.manifest()
        comma = Condition({"separator": "comma"})
        full = [Cell(comma, Line.exact(length), 4) for length in (3, 5)]
        chosen = [Cell(CONDITION, Line.exact(length), 2) for length in (3, 5)]
        manifest.plan_cells(full, [], ())
        manifest.plan_cells(chosen, full, [CONDITION])
        assert (manifest.adaptive, manifest.cells) == ([CONDITION], [*full, *chosen])
        manifest.plan_cells(full[:1], [*full, *chosen], ())
        assert manifest.adaptive == [CONDITION]
        write_manifest(tmp_path, manifest)
        kept = read_manifest(tmp_path)
        assert (kept.adaptive, kept.cells) == (manifest.adaptive, manifest.cells)
        manifest.plan_cells(chosen, full, ())
        assert not manifest.adaptive
        text = (tmp_path / MANIFEST).read_text()
        (tmp_path / MANIFEST).write_text(text.replace('"separator": "none"', '"separator": "no"'))
        with pytest.raises(JournalError, match="unknown condition 'separator=no'"):
            read_manifest(tmp_path)

    @pytest.mark.parametrize("content", MANIFESTS.values(), ids=MANIFESTS.keys())
    def test_a_broken_one_is_one_line_with_a_remedy(self, tmp_path: Path, content: bytes) -> None:
        """It names the file, and what helps a command that reads, or one that asks more."""
        (tmp_path / MANIFEST).write_bytes(content)
        remedies = {False: "move the folder away", True: "start over with fresh=True"}
        for to_continue, remedy in remedies.items():
            with pytest.raises(JournalError) as refused:
                read_manifest(tmp_path, to_continue=to_continue)
            said = str(refused.value)
            assert f"{tmp_path / MANIFEST} cannot be read" in said
            assert said.endswith(f"; restore the file, or {remedy}")
            assert "\n" not in said
            assert "infile" not in said

    @pytest.mark.parametrize(
        ("name", "value", "where"),
        [
            ("server", None, "server: must be a mapping, not null"),
            ("settings", {}, "settings: missing key 'seed'"),
            (
                "settings",
                {**asdict(Settings()), "seed": "0"},
                "settings.seed: must be a whole number",
            ),
            ("model", 5, "model: must be text"),
            ("model", "", "model: must not be empty"),
            ("task_version", 1.5, "task_version: must be a whole number, not 1.5"),
            ("commands", [None], "commands.0: must be text"),
            ("answered_by", "gpt", "answered_by: must be a list, not 'gpt'"),
            ("software", [], "software: must be a mapping, not []"),
            ("adaptive", "yes", "adaptive: must be a list"),
            ("updated", "yesterday", "updated: must be a time, as 2026-01-31T12:00:00+00:00, not"),
            ("given", {"x": 1}, "given: 'x' is no setting that a manifest keeps"),
            ("kept", "../x", "kept: must have the form in which a run writes it, not '../x'"),
            ("counted", {"-": "x"}, "counted.-: must have the form in which a run writes it"),
            ("spec", {}, "spec: missing key 'version'"),
            ("spec", {"axes": {"x": 1}}, "spec.axes.x: must be a mapping, not 1"),
            ("surprise", 1, "the file: unknown key 'surprise'"),
            ("recorded", {"files": [{"surprise": 1}]}, "recorded.files.0: unknown key 'surprise'"),
            ("recorded", {}, "settings.api: must be null if the run is recorded"),
            ("task_version", 2, "task_version: is not the version in 'spec'"),
            ("task_digest", "x", "spec: is not what the run was made with"),
            ("task", "lab/twos", "model, task, task_digest and settings are not those of"),
            ("model", "../../x", "model, task, task_digest and settings are not those of"),
            ("cells", [ASKED | {"line": BAND | {"length": 0}}], "cells.0.line"),
            ("cells", [ASKED | {"line": BAND | {"length": "3"}}], "cells.0.line.length: must be a"),
            ("cells", [ASKED | {"line": BAND | {"low": 4}}], "cells.0.line: 'length' is not"),
            ("cells", [ASKED | {"line": BAND | {"high": 2}}], "cells.0.line: 'length' is not"),
            ("cells", [ASKED | {"condition": {}}], "cells: unknown condition '-'"),
            ("cells", [ASKED | {"samples": 1e20}], "cells.0.samples: must be a whole number"),
        ],
    )
    def test_a_field_of_the_wrong_type_is_named(
        self, tmp_path: Path, name: str, value: object, where: str
    ) -> None:
        """With the file, in one line."""
        write_manifest(tmp_path, self.manifest())
        path = tmp_path / MANIFEST
        path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), name: value}))
        with pytest.raises(JournalError) as refused:
            read_manifest(tmp_path)
        said = str(refused.value)
        assert f"{path} cannot be read ({where}" in said
        assert "\n" not in said

    @pytest.mark.parametrize("place", [".", "nowhere", "file"])
    def test_no_run_is_said_so(self, tmp_path: Path, place: str) -> None:
        """An empty folder, no folder, and a file are no runs."""
        (tmp_path / "file").write_text("")
        with pytest.raises(JournalError, match="no run in"):
            read_manifest(tmp_path / place)

    def test_a_reader_never_sees_half_of_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where writing fails, the old one stays."""
        manifest = self.manifest()
        write_manifest(tmp_path, manifest)
        monkeypatch.setattr(Path, "open", lambda path, mode="r": FullDisk(path, mode))
        manifest.model = "another"
        with pytest.raises((JournalError, OSError), match="No space left"):
            write_manifest(tmp_path, manifest)
        monkeypatch.undo()
        assert read_manifest(tmp_path).model == "m"


class TestFolders:
    """Where runs live."""

    @pytest.mark.parametrize("task", ["/x", "../../x", "a/../../../../x"])
    def test_no_run_lies_outside(self, tmp_path: Path, task: str) -> None:
        """Whatever the task is called."""
        spec = TaskSpec.model_validate(parse(ONES).data)
        with pytest.raises(JournalError, match="rename its file"):
            run_folder(tmp_path, "m", spec, task, DEFAULTS)

    def folder(self, lab: Lab, model: str = "scripted/x", settings: Settings = DEFAULTS) -> Path:
        spec = open_task("lab/ones", lab.ones, trial=False).spec
        return run_folder(lab.out, model, spec, "lab/ones", settings)

    def test_a_run_is_found_by_model_task_version_and_settings(self, lab: Lab) -> None:
        """The path is `runs/<model>/<task>@<version>-<hash>`, always the same."""
        folder = self.folder(lab)
        assert folder.parent == lab.out / "runs" / "scripted" / "x" / "lab"
        assert folder.name.startswith("ones@1-")
        assert folder == self.folder(lab)

    def test_other_settings_are_another_run(self, lab: Lab) -> None:
        """Seed, temperature and budget each make a folder of their own."""
        every = [
            *(Settings(), Settings(seed=1), Settings(temperature=0.5)),
            *(Settings(max_tokens=9), Settings(max_tokens=10)),
        ]
        assert len({self.folder(lab, settings=one) for one in every}) == len(every)

    @pytest.mark.parametrize(
        "change", [("samples: 4", "samples: 9"), ("[3, 5]", "[7]"), ("Ones", "More ones")]
    )
    def test_what_to_run_by_default_is_no_part_of_it(
        self, lab: Lab, change: tuple[str, str]
    ) -> None:
        """Other default lengths, samples or a better title continue the same run."""
        before = self.folder(lab)
        lab.ones.write_text(lab.ones.read_text().replace(*change))
        assert self.folder(lab) == before

    @pytest.mark.parametrize("change", [("version: 1", "version: 2"), ("How many", "Count the")])
    def test_another_task_is_another_run(self, lab: Lab, change: tuple[str, str]) -> None:
        """A raised version or another prompt starts afresh."""
        before = self.folder(lab)
        lab.ones.write_text(lab.ones.read_text().replace(*change))
        assert self.folder(lab) != before

    @pytest.mark.parametrize(
        "model", ["scripted/../../../up", "a//b", "/etc/x", "a/./b", "a/...", "a/b:c?*"]
    )
    def test_no_model_name_leaves_the_folder_of_runs(self, lab: Lab, model: str) -> None:
        """Dots and slashes of a name are tamed, and different names keep different folders."""
        folder = self.folder(lab, model)
        assert folder.resolve().is_relative_to((lab.out / "runs").resolve())
        assert folder != self.folder(lab, model.replace("/", "%2F"))

    def test_an_old_run_is_set_aside_whole(self, lab: Lab) -> None:
        """It keeps its place under `replaced`, and twice in a row nothing is overwritten."""
        places = []
        for index in range(2):
            folder = write_run(self.folder(lab), index)
            places.append(set_aside(lab.out, folder))
            assert not folder.exists()
        assert [indices(place) for place in places] == [[0], [1]]
        for place in places:
            assert place.parent == lab.out / "replaced" / "scripted" / "x" / "lab"


def write_run(folder: Path, index: int) -> Path:
    folder.mkdir(parents=True)
    return write(folder, line(index))


class TestDurability:
    """What survives a power cut."""

    @pytest.fixture
    def synced(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Sizes of the journal at the moments when it was brought to the disk."""
        sizes: list[int] = []
        true_sync = os.fsync

        def sync(file: int) -> None:
            true_sync(file)
            if stat.S_ISREG(os.fstat(file).st_mode):
                sizes.append(os.fstat(file).st_size)

        monkeypatch.setattr(os, "fsync", sync)
        return sizes

    def test_records_are_on_the_disk_soon_after_they_are_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: list[int]
    ) -> None:
        """While the run goes on, at the interval, and once for all records of an interval."""
        monkeypatch.setattr(writer, "SYNC_S", 0.05)
        with Journal(tmp_path, print) as book:
            for _ in range(100):
                book.append(record(0))
            size = (tmp_path / SAMPLES).stat().st_size
            end_s = time.monotonic() + PATIENCE_S
            while size not in synced:
                assert time.monotonic() < end_s
                time.sleep(0.005)
            assert len(synced) < 20

    def test_all_is_on_the_disk_when_the_run_is_closed(
        self, tmp_path: Path, synced: list[int]
    ) -> None:
        """Also what was written a moment ago."""
        with Journal(tmp_path, print) as book:
            book.append(record(0))
            assert not synced
        assert synced == [(tmp_path / SAMPLES).stat().st_size]

    def test_a_disk_that_fails_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing more is written to it, it is said again at the end, and the folder is free."""

        def fail(_file: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        book = Journal(tmp_path, print)
        book.__enter__()
        book.append(record(0))
        monkeypatch.setattr(os, "fsync", fail)
        for call in (book.sync, partial(book.append, record(1)), book.__exit__):
            with pytest.raises(JournalError, match="Input/output error"):
                call()
        monkeypatch.undo()
        with Journal(tmp_path, print):
            assert indices(tmp_path) == [0]

    def test_the_manifest_is_on_the_disk_before_it_has_its_name(
        self, tmp_path: Path, synced: list[int]
    ) -> None:
        """A power cut leaves the old one or the new one."""
        write_manifest(tmp_path, TestManifest().manifest())
        assert synced == [(tmp_path / MANIFEST).stat().st_size]

    def test_the_name_of_a_durable_file_is_on_the_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The folder is synced after the file has its name; of other files nothing is synced."""
        path = tmp_path / "file"
        synced: list[tuple[int, bool]] = []
        true_sync = os.fsync

        def sync(file: int) -> None:
            true_sync(file)
            synced.append((os.fstat(file).st_ino, path.exists()))

        monkeypatch.setattr(os, "fsync", sync)
        replace_file(path, b"durable", durable=True)
        assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]
        synced.clear()
        replace_file(path, b"not durable")
        assert synced == []


class TestLongIntegers:
    """No integer becomes a float."""

    @pytest.mark.parametrize("digits", [15, 19, 20, 40, 400, 4000])
    def test_a_target_comes_back_as_it_was(self, tmp_path: Path, digits: int) -> None:
        """Of any length, and with either sign."""
        for sign in (1, -1):
            target = sign * (10**digits - 7)
            with Journal(tmp_path, print) as book:
                book.append(record(0, target=target))
            *_, read = read_records(tmp_path, pytest.fail)
            assert read.target == target
