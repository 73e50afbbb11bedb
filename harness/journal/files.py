"""Replaces files atomically, and syncs them to the disk on request."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import sys
from pathlib import Path

from harness.errors import JournalError


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Replaces the file at `path` atomically and keeps its permissions.

    With `durable` the file is on the disk when this returns.

    Raises:
        JournalError: the file cannot be written; the old one is unchanged.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        _remove_partials(path)
        partial.write_bytes(content)
        if path.exists():
            partial.chmod(stat.S_IMODE(path.stat().st_mode))
        if durable:
            sync_file(partial)
        partial.replace(path)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


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
    """Removes partial files beside `path`, left by processes that were killed while writing it."""
    for partial in path.parent.glob(f"{glob.escape(path.name)}.*.tmp"):
        writer = partial.name.removeprefix(f"{path.name}.").removesuffix(".tmp")
        if writer.isdecimal() and not _is_running(int(writer)):
            with contextlib.suppress(OSError):  # the file of another user
                partial.unlink()


def _is_running(process: int) -> bool:
    """Whether the process with this id runs on this machine; true where that is unknown."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
