"""Writes a journal of a run; a lock allows one writer at a time.

A journal only grows. Each record is one line, written with a single unbuffered write, so
`kill -9` loses no written record. A power cut loses at most the records of the last second: a
thread syncs the file to the disk once a second, and closing the run syncs it too. The next writer
removes an incomplete last line. An unreadable line loses only its own sample. If another program
deletes, replaces or cuts the file meanwhile, the next write raises an error, and saves what can be
saved.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import orjson
from filelock import FileLock, Timeout

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import replace_file, sync_folder, writing
from eyechart.harness.journal.record import SAMPLES, Record, Warn, encode, journals
from eyechart.providers.naming import named
from eyechart.providers.secrets import watch_environment

_LOCK, _WRITER = ".lock", ".writer.json"
"""Ends of the names of the two files beside a journal: its lock, and who holds it."""
SYNC_S = 1.0
"""Seconds between two syncs to the disk."""

_SAVED = "samples-saved-{}.jsonl"
"""Name of the journal with the records of a command whose own was replaced; it contains the process
id."""
_NEW_FOLDERS = 5
"""Most folders that a new run creates: its own, and four above it."""


class Journal:
    """The writer of a journal in a run's folder. Use as a context manager."""

    def __init__(self, folder: Path, warn: Warn, name: str = SAMPLES) -> None:
        """`name`: see `record.journal_name`."""
        self.folder = folder
        self._warn = warn
        self._path = folder / name
        self._lock = _lock(self._path)
        self._writer = self._path.with_suffix(_WRITER)
        self._file = -1
        self._inode = self._size = 0
        self._unsynced = False
        self._sync_error: OSError | None = None
        self._sync_lock = threading.Lock()
        self._closing = threading.Event()
        self._sync_thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Takes the lock and removes an incomplete last line; raises `JournalError` if another
        process holds the lock, or the folder cannot be written.
        """
        watch_environment()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            writer = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
            replace_file(self._writer, orjson.dumps(writer))
            self._repair()
            is_new = not self._path.exists()
            self._open(self._path)
            for folder in (self.folder, *self.folder.parents)[:_NEW_FOLDERS] if is_new else ():
                sync_folder(folder)
        except Timeout:
            raise JournalError(_held(self._path)) from None
        except JournalError:
            self._lock.release()
            raise
        except OSError as error:
            self._lock.release()
            raise JournalError(f"cannot write to {self.folder}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        if self._sync_thread is not None:
            self._sync_thread.join()
        try:
            if self._file >= 0:
                self.sync()
        finally:
            self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        with contextlib.suppress(OSError):
            self._writer.unlink(missing_ok=True)
        self._lock.release()

    def append(self, record: Record) -> None:
        """Writes one record. When this returns it survives a crash of this process, and after about
        one second a power cut.

        Raises:
            JournalError: this record or an earlier one cannot be written, or another program
                changed the file; in that case this record is written nevertheless.
        """
        if self._sync_error is not None:
            self.sync()
        change = self._other_change()
        line = encode(record) + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise JournalError(f"cannot write {self._path}: {error.strerror}") from error
        self._size += len(line)
        self._unsynced = True
        if self._sync_thread is None:
            self._sync_thread = threading.Thread(target=self._sync_regularly, daemon=True)
            self._sync_thread.start()
        if change:
            raise JournalError(change)

    def _other_change(self) -> str:
        """What another program did to the file since the last write, with a remedy; empty if
        nothing.

        Records that can be saved are saved, and the next write goes to that file.
        """
        path = self._path
        try:
            now = os.stat(path)  # noqa: PTH116  Path.stat takes longer, and this is every write's
            if now.st_ino == self._inode and now.st_size == self._size:
                return ""
            opened = os.fstat(self._file)
        except (FileNotFoundError, NotADirectoryError):
            self._save(path)
            return (
                f"{path} was deleted or moved during the run; it is there again with all its "
                "records, and the same command goes on"
            )
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror}") from error
        if not os.path.samestat(opened, now):
            self._save(path.with_name(_SAVED.format(os.getpid())))
            return (
                f"another file replaced {path} during the run; the run's records are in "
                f"{self._path.name} beside it, which is read too, and the same command goes on"
            )
        before, self._size = self._size, opened.st_size
        if opened.st_size >= before:
            return ""
        self._end_line()
        return (
            f"{path} was cut from {before:,} to {opened.st_size:,} bytes during the run; the same "
            "command asks the lost samples again"
        )

    def _save(self, path: Path) -> None:
        """Copies all records to a new file at `path`, which the next writes use."""
        with writing(path), self._sync_lock:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._file, "rb", closefd=False) as old, path.open("xb") as new:
                old.seek(0)
                shutil.copyfileobj(old, new)
            os.close(self._file)
            self._open(path)

    def _end_line(self) -> None:
        """Ends an incomplete last line, so that the next record has a line of its own."""
        if self._size:
            os.lseek(self._file, -1, os.SEEK_END)
            if os.read(self._file, 1) != b"\n":
                self._size += os.write(self._file, b"\n")

    def sync(self) -> None:
        """Writes all records to the disk before it returns; raises `JournalError` if they cannot be
        written.
        """
        self._sync()
        if self._sync_error is not None:
            error = self._sync_error
            raise JournalError(f"cannot write {self._path}: {error.strerror}") from error

    def _sync_regularly(self) -> None:
        while not self._closing.wait(SYNC_S):
            self._sync()

    def _sync(self) -> None:
        with self._sync_lock:
            if not self._unsynced:
                return
            self._unsynced = False  # before the call: records written meanwhile need another sync
            try:
                os.fsync(self._file)
            except OSError as error:
                self._sync_error = error

    def _open(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o644)
        opened = os.fstat(self._file)
        self._path, self._inode, self._size = path, opened.st_ino, opened.st_size

    def _repair(self) -> None:
        path = self._path
        if not path.exists() or path.stat().st_size == 0:
            return
        with path.open("rb+") as file:
            end = file.seek(0, os.SEEK_END)
            tail = b""
            offset = end
            while offset > 0 and b"\n" not in tail:
                step = min(65536, offset)
                offset = file.seek(offset - step)
                tail = file.read(step) + tail
            last_line = tail.rpartition(b"\n")[2]
            if not last_line:
                return
            try:
                orjson.loads(last_line)
            except orjson.JSONDecodeError:
                file.truncate(end - len(last_line))
                self._warn(f"{path}: removed an incomplete last line; its sample is asked again")
            else:
                file.seek(0, os.SEEK_END)
                file.write(b"\n")


def refuse_if_written(folder: Path) -> None:
    """Raises `JournalError` if a process writes a shard of the run in `folder`: what it is asking
    would be asked twice.
    """
    for journal in journals(folder):
        if journal.name != SAMPLES and journal.with_suffix(_LOCK).exists():
            try:
                with _lock(journal):
                    pass
            except Timeout:
                raise JournalError(_held(journal)) from None


def _lock(journal: Path) -> FileLock:
    return FileLock(journal.with_suffix(_LOCK), timeout=0)


def _held(journal: Path) -> str:
    try:
        writer = orjson.loads(journal.with_suffix(_WRITER).read_bytes())
        who = f"process {writer['pid']} on {writer['host']} since {writer['since']}"
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        who = "another process"
    return f"{journal} is being written by {who}; wait for it or use another {named('out')}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def set_aside(out: Path, folder: Path) -> Path:
    """Moves the run in `folder` to `<out>/replaced/`; returns its new folder; raises `JournalError`
    if another process writes to it, or it cannot be moved.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    target = out / "replaced" / folder.relative_to(out / "runs")
    target = target.with_name(f"{target.name}-{stamp}")
    locked = folder / SAMPLES
    try:
        with ExitStack() as locks:
            for locked in {folder / SAMPLES, *journals(folder)}:
                locks.enter_context(_lock(locked))
            target.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(target)
    except Timeout:
        raise JournalError(_held(locked)) from None
    except OSError as error:
        raise JournalError(f"cannot move {folder} to {target}: {error.strerror}") from error
    return target
