"""A copy of the file that a run's items came from: `kept/<hash>-<name>` in the run's folder.

With it a run can be shown with its prompts after its task file has changed or is gone. A generator
is code, and a run may come from a stranger: nothing here executes it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from eyechart.harness.journal.files import replace_file, writing
from eyechart.providers.secrets import mask

KEPT = "kept"
MAX_KEPT_BYTES = 1_000_000
"""Larger files are not kept."""
_DIGITS = 16
"""Digits of the hash in a file's name."""


def content_hash(content: bytes) -> str:
    """SHA-256, as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def keep(folder: Path, source: Path) -> str:
    """Keeps a copy of `source` in the run's `folder`, once. Returns the name of the copy, or "" if
    `source` is larger than `MAX_KEPT_BYTES`, cannot be read or contains a known key.

    Raises:
        JournalError: the copy cannot be written.
    """
    content = _small_file(source)
    if content is None or _has_key(content):
        return ""
    name = f"{content_hash(content)[:_DIGITS]}-{source.name}"
    if _small_file(folder / KEPT / name) != content:
        write_kept(folder, name, content)
    return name


def write_kept(folder: Path, name: str, content: bytes) -> None:
    """Writes a kept file; raises `JournalError` if it cannot be written."""
    copy = folder / KEPT / name
    with writing(copy.parent):
        copy.parent.mkdir(exist_ok=True)
    replace_file(copy, content)


def read_kept(folder: Path, name: str) -> bytes | None:
    """The content of a kept file; `None` if it is missing or was changed."""
    content = _small_file(folder / KEPT / name) if name else None
    if content is None or not name.startswith(f"{content_hash(content)[:_DIGITS]}-"):
        return None
    return content


def is_kept(name: str, source: Path) -> bool:
    """Whether the content of `source` is that of the kept file `name`."""
    content = _small_file(source)
    return content is not None and name.startswith(f"{content_hash(content)[:_DIGITS]}-")


def _has_key(content: bytes) -> bool:
    text = content.decode(errors="replace")
    return mask(text) != text


def _small_file(path: Path) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_KEPT_BYTES:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None
