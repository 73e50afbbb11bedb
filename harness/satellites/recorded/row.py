"""One row of a recorded file."""

from __future__ import annotations

from dataclasses import dataclass

from eyechart.harness.journal.files import MAX_LINE
from eyechart.harness.satellites.recorded.fields import Row

MAX_DOCUMENT = 8 * MAX_LINE
"""Bytes of what is read at once besides lines: a JSON array, or a member of a log of Inspect."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row of a file."""

    number: int
    """Its line in the file, from 1; of a CSV file the line on which it ends; of an Inspect log or a
    JSON array, the number of the sample or object."""
    row: Row | None
    """The row; `None` if it cannot be read."""
    why: str = ""
    """Why the row cannot be read."""
