"""Files that are replaced whole or not at all, and brought to the disk where that is asked for."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import sys
from pathlib import Path

from harness.errors import JournalError


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Writes `path` whole or not at all, with the permissions that it has; `durable`, it is on the
    disk when this returns.
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
    """Brings what a file holds to the disk; raises `OSError` where that fails."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Brings the names of the files in `folder` to the disk, where the system can do that."""
    try:
        place = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(place)
    except OSError:  # some network file systems sync no folders
        pass
    finally:
        os.close(place)


def _remove_partials(path: Path) -> None:
    """Removes what processes that were killed while they wrote `path` left beside it."""
    for partial in path.parent.glob(f"{glob.escape(path.name)}.*.tmp"):
        writer = partial.name.removeprefix(f"{path.name}.").removesuffix(".tmp")
        if writer.isdecimal() and not _is_running(int(writer)):
            with contextlib.suppress(OSError):  # somebody else's
                partial.unlink()


def _is_running(process: int) -> bool:
    """Whether there is such a process on this machine; where that cannot be asked, yes."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
