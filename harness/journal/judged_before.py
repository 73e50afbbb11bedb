"""The outcomes that the answers of a run had when it was judged last: `verdicts.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import TypeAlias

import orjson

from eyechart.harness.errors import JournalError
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec import Cell

VERDICTS = "verdicts.json"
SCORED = {outcome.about.letter: outcome for outcome in Outcome if outcome.about.scored}
"""Letter in `verdicts.json` -> an outcome of a reply."""
CellName: TypeAlias = tuple[str, tuple[int, ...], int]
"""A condition's label, the numbers of a line, and the draws of each sample."""


def name_of(cell: Cell) -> CellName:
    """The name of a cell in `verdicts.json`."""
    return cell.condition.label, astuple(cell.line), cell.draws


def judged_before(folder: Path) -> tuple[str, Mapping[CellName, str]]:
    """The Eyechart version that judged the run last, and for each cell a letter for each draw of
    its samples. Both are empty where a run was never judged, or its verdicts cannot be read.
    """
    try:
        verdicts = orjson.loads((folder / VERDICTS).read_bytes())
        return str(verdicts["eyechart"]), {
            (cell["condition"], tuple(cell["line"]), int(cell["draws"])): str(cell["outcomes"])
            for cell in verdicts["cells"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return "", {}


def check_journal(folder: Path, cells: Iterable[tuple[Cell, Callable[[int], object]]]) -> None:
    """Raises `JournalError` if the journal lacks replies that were judged before. Each cell comes
    with what says whether there is a record of a draw of its samples, by place in the letters.
    """
    _, before = judged_before(folder)
    lost = sum(
        letter in SCORED and not has(place)
        for cell, has in cells
        for place, letter in enumerate(before.get(name_of(cell), "")[: cell.samples * cell.draws])
    )
    if lost:
        raise JournalError(
            f"{folder}: samples.jsonl lacks {lost:,} replies that it had when {VERDICTS} was "
            f"written; restore it, or delete {VERDICTS} to go on without them"
        )
