"""What judging a run leaves in its folder, and what judging it again changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from harness.analysis.diagnosis import diagnosis_table
from harness.analysis.reach import reach_table
from harness.analysis.stats import Threshold
from harness.analysis.tables import OUTCOMES, Run, to_csv, write_csv
from harness.journal import journal
from harness.journal.journal import CellKey
from harness.score.verdict import judge_record
from harness.spec import condition_label

REACH, DIAGNOSIS, VERDICTS = "reach.csv", "diagnosis.csv", "verdicts.json"
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


def write_results(run: Run, threshold: Threshold = Threshold()) -> Path:
    """Writes all that follows from a run into its folder; the path of `table.csv`."""
    to_csv(reach_table(run, threshold), run.folder / REACH)
    to_csv(diagnosis_table(run), run.folder / DIAGNOSIS)
    said = {
        "eyechart": _own_version(),
        "cells": [
            {"condition": label, "length": length, "outcomes": letters}
            for (label, length), letters in _letters(run).items()
        ],
    }
    journal.replace_file(run.folder / VERDICTS, orjson.dumps(said, option=orjson.OPT_INDENT_2))
    return write_csv(run)


def _own_version() -> str:
    try:
        return version("eyechart")
    except PackageNotFoundError:
        return "not installed"


def _letters(run: Run) -> dict[CellKey, str]:
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


def changes(run: Run) -> tuple[str, list[Change]]:
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
    moved: dict[tuple[CellKey, int], str] = {}
    for key, now in _letters(run).items():
        then = before.get(key, "")
        if then != now:
            for index, (old, new) in enumerate(zip(then, now, strict=False)):
                if old != new and old not in (_NO_RECORD, _LETTERS["error"]) and old in _NAMES:
                    moved[key, index] = old
    return judged_by, list(_explained(run, moved)) if moved else []


def _explained(run: Run, moved: dict[tuple[CellKey, int], str]) -> Iterator[Change]:
    answer = run.manifest.task_spec().answer
    records: dict[tuple[CellKey, int], dict[str, Any]] = {}
    for record in journal.read_records(run.folder):
        place = (condition_label(record["condition"]), record["length"]), record["index"]
        if (answer.type == "integer") != isinstance(record["target"], int):
            continue
        if place in moved and ("failure" not in record or place not in records):
            records[place] = record
    for place, record in records.items():
        verdict = judge_record(record, answer)
        why = verdict.why or f"reads {_short(verdict.answer)}, target {_short(record['target'])}"
        yield Change(record["id"], _NAMES[moved[place]], verdict.outcome, why)


def _short(value: object) -> str:
    said = repr(value)
    half = _MOST_TEXT // 2
    return said if len(said) <= _MOST_TEXT else f"{said[:half]} … {said[-half:]}"


def said_of_changes(run: Run) -> list[str]:
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
