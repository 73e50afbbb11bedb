"""Reads lines of untrusted files; a line that is too long is never held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

MAX_LINE = 32 << 20
"""Bytes of the longest line that is read."""


def bounded_lines(file: BinaryIO) -> Iterator[bytes | None]:
    """The lines of `file`, each with its end; `None` for one with more than `MAX_LINE` bytes."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE)
        yield None
