"""The one writer of a run's folder.

`samples.jsonl` only grows, one line a reply, written with a single unbuffered write, so that
`kill -9` at any moment loses nothing that was written. A power cut loses what was written in the
last second: a thread syncs the file to the disk once a second, and it is synced when the run is
closed. A line torn by a crash is cut off when the next writer opens the run; a line that cannot be
read costs its own sample.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import orjson
from filelock import FileLock, Timeout

from harness.errors import JournalError
from harness.journal.answers import Answered, answered
from harness.journal.files import replace_file, sync_folder
from harness.journal.record import SAMPLES, Record, Warn, encode
from providers.secrets import watch_environment

_LOCK, _WRITER = "lock", "writer.json"
SYNC_S = 1.0
"""Seconds between two moments at which all records are on the disk."""

_NEW_FOLDERS = 5
"""The run's own and those above it that may be as new: the group's, model's and provider's, `runs`.
"""


class Journal:
    """The one writer of a run's folder. Use as a context manager."""

    def __init__(self, folder: Path, warn: Warn) -> None:
        self.folder = folder
        self._warn = warn
        self._lock = FileLock(folder / _LOCK, timeout=0)
        self._file = -1
        self._unsynced = False
        self._sync_error: OSError | None = None
        self._one_sync = threading.Lock()
        self._closing = threading.Event()
        self._syncing: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Takes the lock and repairs a torn last line.

        Raises:
            JournalError: somebody else is writing, or the folder cannot be written.
        """
        watch_environment()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            writer = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
            replace_file(self.folder / _WRITER, orjson.dumps(writer))
            self._repair()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            is_new = not (self.folder / SAMPLES).exists()
            self._file = os.open(self.folder / SAMPLES, flags, 0o644)
            for folder in (self.folder, *self.folder.parents)[:_NEW_FOLDERS] if is_new else ():
                sync_folder(folder)
        except Timeout:
            raise JournalError(_held(self.folder)) from None
        except JournalError:
            self._lock.release()
            raise
        except OSError as error:
            self._lock.release()
            raise JournalError(f"cannot write to {self.folder}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        if self._syncing is not None:
            self._syncing.join()
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
            (self.folder / _WRITER).unlink(missing_ok=True)
        self._lock.release()

    def append(self, record: Record) -> None:
        """Writes one record. It is safe from a crash of this process when this returns, and from a
        power cut about a second later.

        Raises:
            JournalError: the disk does not take it, or did not take an earlier one.
        """
        if self._sync_error is not None:
            self.sync()
        line = encode(record) + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise JournalError(f"cannot write {self.folder / SAMPLES}: {error.strerror}") from error
        self._unsynced = True
        if self._syncing is None:
            self._syncing = threading.Thread(target=self._sync_regularly, daemon=True)
            self._syncing.start()

    def sync(self) -> None:
        """Returns when all records are on the disk.

        Raises:
            JournalError: the disk does not take them.
        """
        self._sync()
        if self._sync_error is not None:
            error = self._sync_error
            raise JournalError(f"cannot write {self.folder / SAMPLES}: {error.strerror}") from error

    def _sync_regularly(self) -> None:
        while not self._closing.wait(SYNC_S):
            self._sync()

    def _sync(self) -> None:
        with self._one_sync:
            if not self._unsynced:
                return
            self._unsynced = False  # before the call: what is written meanwhile is for the next one
            try:
                os.fsync(self._file)
            except OSError as error:
                self._sync_error = error

    def answered(self) -> Answered:
        """What needs no asking."""
        return answered(self.folder, self._warn)

    def _repair(self) -> None:
        path = self.folder / SAMPLES
        if not path.exists() or path.stat().st_size == 0:
            return
        with path.open("rb+") as file:
            end = file.seek(0, os.SEEK_END)
            tail = b""
            at = end
            while at > 0 and b"\n" not in tail:
                step = min(65536, at)
                at = file.seek(at - step)
                tail = file.read(step) + tail
            torn = tail.rpartition(b"\n")[2]
            if not torn:
                return
            try:
                orjson.loads(torn)
            except orjson.JSONDecodeError:
                file.truncate(end - len(torn))
                self._warn(f"{path}: cut off a torn last line; its sample is asked again")
            else:
                file.seek(0, os.SEEK_END)
                file.write(b"\n")


def _held(folder: Path) -> str:
    try:
        writer = orjson.loads((folder / _WRITER).read_bytes())
        who = f"process {writer['pid']} on {writer['host']} since {writer['since']}"
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        who = "another process"
    return f"{folder} is being written by {who}; wait for it or use another --out"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def set_aside(out: Path, folder: Path) -> Path:
    """Moves a run out of the way, to `replaced/`; returns where it is now.

    Raises:
        JournalError: somebody is writing to it, or it cannot be moved.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    target = out / "replaced" / folder.relative_to(out / "runs")
    target = target.with_name(f"{target.name}-{stamp}")
    try:
        with FileLock(folder / _LOCK, timeout=0):
            target.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(target)
    except Timeout:
        raise JournalError(_held(folder)) from None
    except OSError as error:
        raise JournalError(f"cannot move {folder} to {target}: {error.strerror}") from error
    return target
