"""What `verdicts.json` says of a run: how its replies were judged last, and how many there were."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import open_regular
from eyechart.harness.journal.record import journals

VERDICTS = "verdicts.json"
LINES = "journal_lines"
"""Key of the number of lines that the journals had."""
CellName: TypeAlias = tuple[str, tuple[int, ...], int]
"""A condition's label, the numbers of a line, and the draws of each sample."""
_CHUNK = 1 << 16


def judged_before(folder: Path) -> tuple[str, Mapping[CellName, str]]:
    """The Eyechart version that judged the run last, and for each cell a letter for each draw of
    its samples. Both are empty where a run was never judged, or its verdicts cannot be read.
    """
    try:
        verdicts = _read(folder)
        return str(verdicts["eyechart"]), {
            (cell["condition"], tuple(cell["line"]), int(cell["draws"])): str(cell["outcomes"])
            for cell in verdicts["cells"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return "", {}


def check_journal(folder: Path) -> None:
    """Raises `JournalError` if the journals have fewer lines than when they were judged last: lines
    are only ever added to them, so replies were lost.
    """
    try:
        before = int(_read(folder)[LINES])
    except (OSError, ValueError, KeyError, TypeError):
        return
    now = line_count(folder)
    if now < before:
        raise JournalError(
            f"{folder}: its journals have {now:,} lines, and had {before:,} when {VERDICTS} was "
            f"written; restore them, or delete {VERDICTS} to go on without the lost replies"
        )


def line_count(folder: Path) -> int:
    """How many complete lines the journals have, as far as they can be read."""
    count = 0
    for path in journals(folder):
        with suppress(OSError), open_regular(path) as file:
            count += sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(_CHUNK), b""))
    return count


def _read(folder: Path) -> Any:
    return orjson.loads((folder / VERDICTS).read_bytes())
