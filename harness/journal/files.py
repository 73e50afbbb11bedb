"""Reads files that others made, replaces files atomically, and syncs them to the disk."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from eyechart.harness.errors import JournalError

MAX_LINE = 32 << 20
"""Bytes of the longest line that is read."""
_BEGINNING = 4096
_HOST = quote(socket.gethostname(), safe="")
"""Several machines may write to one disk."""


def open_regular(path: Path) -> BinaryIO:
    """Opens a file for reading. A named pipe, a socket or a device is refused: a reader of it may
    wait, or read, without end.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)  # with O_NONBLOCK a pipe without a writer is opened at once
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))


def bounded_lines(file: BinaryIO) -> Iterator[bytes | None]:
    """The lines of `file`, each with its line break. A line with more than `MAX_LINE` bytes gives
    `None`, and is never in memory as a whole.
    """
    while line := file.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE)
        yield None


def is_another(path: Path, mark: bytes) -> bool:
    """Whether there is a file with content, and without `mark` near its beginning, which every file
    of a kind has: so it is none of that kind, and would be lost.
    """
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
    except OSError:  # there is none, or writing it says what is wrong
        return False
    return bool(beginning.strip()) and mark not in beginning


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises a `JournalError` in place of an `OSError`: `path` cannot be written."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def make_folder_of(path: Path) -> None:
    """Makes the folder of a file that is to be written; raises `JournalError` if it cannot."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Replaces the file at `path` atomically and keeps its permissions.

    With `durable` the file is on the disk when this returns.

    Raises:
        JournalError: the file cannot be written; the old one is unchanged.
    """
    with replacing(path, durable=durable) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A context with a new file, which replaces the one at `path` if the context ends without an
    error, see `replace_file`.
    """
    partial = path.with_name(f"{path.name}.{_HOST}.{os.getpid()}.tmp")
    try:
        with writing(path):
            _remove_partials(path)
            with partial.open("wb") as file:
                yield file
            if path.exists():
                partial.chmod(stat.S_IMODE(path.stat().st_mode))
            if durable:
                sync_file(partial)
            partial.replace(path)
            if durable:
                sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Syncs the content of a file to the disk; raises `OSError` where that fails."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Syncs the names of the files in `folder` to the disk, if the system supports that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders
        return
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems cannot sync folders
        pass
    finally:
        os.close(descriptor)


def _remove_partials(path: Path) -> None:
    """Removes partial files beside `path`, left by processes of this machine that were killed while
    writing it.
    """
    prefix = f"{path.name}.{_HOST}."
    for partial in path.parent.glob(f"{glob.escape(prefix)}*.tmp"):
        writer = partial.name.removeprefix(prefix).removesuffix(".tmp")
        if writer.isdecimal() and not _is_running(int(writer)):
            with contextlib.suppress(OSError):  # the file of another user
                partial.unlink()


def _is_running(process: int) -> bool:
    """Whether the process with this id runs on this machine; true if that is unknown."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
