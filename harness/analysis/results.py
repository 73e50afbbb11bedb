"""What judging a run leaves in its folder, and what judging it again changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import orjson

from harness.analysis.judged_run import JudgedRun, counted_records
from harness.analysis.judging import verdict_of
from harness.analysis.stats import Threshold
from harness.analysis.tables import diagnosis_table, effective_length_table, to_csv
from harness.columns import OUTCOMES
from harness.journal.files import replace_file
from harness.spec import CellKey

TABLE, EFFECTIVE_LENGTHS = "table.csv", "effective_length.csv"
DIAGNOSES, VERDICTS = "diagnosis.csv", "verdicts.json"
_LETTERS = {
    "correct": "c",
    "incorrect": "i",
    "unparsed": "u",
    "refused": "r",
    "truncated": "t",
    "overflow": "o",
    "error": "e",
}
"""Outcome -> its letter in `verdicts.json`; a dot is a sample without a record."""
_NAMES = {letter: outcome for outcome, letter in _LETTERS.items()}
_NO_RECORD = "."
_SHOWN = 10
_MOST_TEXT = 60


@dataclass(frozen=True, slots=True)
class Change:
    """A sample whose outcome is not what it was."""

    id: str
    before: str
    now: str
    why: str

    def __str__(self) -> str:
        return f"{self.id}: {self.before} is now {self.now} ({self.why})"


def write_results(run: JudgedRun, threshold: Threshold = Threshold()) -> Path:
    """Writes all that follows from a run into its folder; the path of `table.csv`."""
    to_csv(effective_length_table(run, threshold), run.folder / EFFECTIVE_LENGTHS)
    to_csv(diagnosis_table(run), run.folder / DIAGNOSES)
    said = {
        "eyechart": _own_version(),
        "cells": [
            {"condition": condition.label, "length": length, "outcomes": letters}
            for (condition, length), letters in _letters(run).items()
        ],
    }
    replace_file(run.folder / VERDICTS, orjson.dumps(said, option=orjson.OPT_INDENT_2))
    return to_csv(run.cells, run.folder / TABLE)


def _own_version() -> str:
    try:
        return version("eyechart")
    except PackageNotFoundError:
        return "not installed"


def _letters(run: JudgedRun) -> dict[CellKey, str]:
    """Of every cell a letter a sample, by index."""
    codes = np.array([ord(_LETTERS.get(outcome, _NO_RECORD)) for outcome in OUTCOMES], np.uint8)
    place, index, outcome = (run.samples[name].to_numpy() for name in ("cell", "index", "outcome"))
    letters = {}
    for at, cell in enumerate(run.manifest.cells):
        mine = place == at
        of_cell = np.full(cell.samples, ord(_NO_RECORD), np.uint8)
        of_cell[index[mine]] = codes[outcome[mine]]
        letters[cell.key] = of_cell.tobytes().decode()
    return letters


def changes(run: JudgedRun) -> tuple[str, list[Change]]:
    """Which version judged the run before, and the samples that it judged otherwise.

    Samples that had no answer then are not among them. A run that was never judged, or whose
    verdicts cannot be read, has no changes.
    """
    try:
        read = orjson.loads((run.folder / VERDICTS).read_bytes())
        judged_by = str(read["eyechart"])
        before = {(cell["condition"], cell["length"]): cell["outcomes"] for cell in read["cells"]}
    except (OSError, ValueError, KeyError, TypeError):
        return "", []
    moved: dict[tuple[int, int], str] = {}
    for cell, ((condition, length), now) in enumerate(_letters(run).items()):
        then = before.get((condition.label, length), "")
        if then != now:
            for index, (old, new) in enumerate(zip(then, now, strict=False)):
                if old != new and old not in (_NO_RECORD, _LETTERS["error"]) and old in _NAMES:
                    moved[cell, index] = old
    return judged_by, list(_explained(run, moved)) if moved else []


def _explained(run: JudgedRun, moved: dict[tuple[int, int], str]) -> Iterator[Change]:
    """The changes of samples, given by cell and index with the letter of the outcome before."""
    cell_and_index = run.samples[["cell", "index"]].itertuples(name=None)
    letters = {
        place: moved[cell, index] for place, cell, index in cell_and_index if (cell, index) in moved
    }
    for place, record in counted_records(run, letters.keys()).items():
        verdict = verdict_of(record, run.spec.answer)
        why = verdict.why or f"reads {_short(verdict.answer)}, target {_short(record.target)}"
        yield Change(record.id, _NAMES[letters[place]], verdict.outcome, why)


def _short(value: object) -> str:
    said = repr(value)
    half = _MOST_TEXT // 2
    return said if len(said) <= _MOST_TEXT else f"{said[:half]} … {said[-half:]}"


def said_of_changes(run: JudgedRun) -> list[str]:
    """Lines for the user: how many samples changed from what to what, and some of them."""
    judged_by, changed = changes(run)
    if not changed:
        return []
    kinds = Counter((change.before, change.now) for change in changed)
    counts = ", ".join(f"{count:,} {was} now {now}" for (was, now), count in kinds.most_common())
    lines = [
        f"{len(changed):,} samples are judged otherwise than by eyechart {judged_by}: {counts}",
        *(f"  {change}" for change in changed[:_SHOWN]),
    ]
    if len(changed) > _SHOWN:
        lines.append(f"  … and {len(changed) - _SHOWN:,} more")
    return lines
