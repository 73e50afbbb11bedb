"""Writes the tables and verdicts of a run into its folder, and reports verdicts that changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from eyechart.harness.analysis.samples.judged_run import JudgedRun, each_counted
from eyechart.harness.analysis.samples.judged_samples import slots
from eyechart.harness.analysis.samples.verdicts import reason
from eyechart.harness.analysis.tables.tables import (
    cells_table,
    diagnosis_table,
    effective_length_table,
    to_csv,
)
from eyechart.harness.journal.files import replace_file
from eyechart.harness.journal.judged_before import LINES, VERDICTS, judged_before, line_count
from eyechart.harness.journal.record import journals
from eyechart.harness.journal.software import software
from eyechart.harness.score.outcomes import Outcome

TABLE, EFFECTIVE_LENGTHS = "table.csv", "effective_length.csv"
DIAGNOSES = "diagnosis.csv"
_SCORED = {outcome.about.letter: outcome for outcome in Outcome if outcome.about.scored}
_CODES = np.array([ord(outcome.about.letter) for outcome in Outcome], np.uint8)
"""The letters of all outcomes in `verdicts.json`, as bytes."""
_SHOWN = 10


class OutcomeChange(NamedTuple):
    """A sample whose outcome has changed."""

    id: str
    before: str
    now: str
    why: str

    def __str__(self) -> str:
        return f"{self.id}: {self.before} is now {self.now} ({self.why})"


def has_results(run: JudgedRun) -> bool:
    """Whether the tables of `run` are there, and not older than its replies."""
    table = run.folder / TABLE  # the last that is written
    last = max(path.stat().st_mtime_ns for path in journals(run.folder))
    return table.is_file() and table.stat().st_mtime_ns >= last


def write_results(run: JudgedRun) -> Path:
    """Writes the tables and verdicts of `run` into its folder; returns the path of `table.csv`.

    Raises:
        JournalError: a file cannot be written.
    """
    to_csv(effective_length_table(run), run.folder / EFFECTIVE_LENGTHS)
    to_csv(diagnosis_table(run), run.folder / DIAGNOSES)
    verdicts = {
        "eyechart": software()["eyechart"],
        LINES: line_count(run.folder),
        "cells": [
            {
                "condition": cell.condition.label,
                "line": astuple(cell.line),
                "draws": cell.draws,
                "outcomes": letters,
            }
            for cell, letters in zip(run.manifest.cells, _letters(run), strict=True)
        ],
    }
    replace_file(run.folder / VERDICTS, orjson.dumps(verdicts, option=orjson.OPT_INDENT_2))
    return to_csv(cells_table(run), run.folder / TABLE)


def _letters(run: JudgedRun) -> list[str]:
    """For each cell a letter for each draw of its samples, see `slots`."""
    planned = run.manifest.cells
    cells, codes = run.samples["cell"].to_numpy(), _CODES[run.samples["outcome"].to_numpy()]
    places = slots(run.samples, np.array([cell.draws for cell in planned], np.int64)[cells])
    letters = []
    for cell_place, cell in enumerate(planned):
        cell_codes = np.full(cell.samples * cell.draws, _CODES[Outcome.NOT_RUN.place], np.uint8)
        its_own = cells == cell_place
        cell_codes[places[its_own]] = codes[its_own]
        letters.append(cell_codes.tobytes().decode())
    return letters


def changes(run: JudgedRun) -> tuple[str, list[OutcomeChange]]:
    """The Eyechart version that judged the run last, and the samples whose outcome has changed
    since.

    Samples that had no answer then are left out. A run that was never judged, or whose verdicts
    cannot be read, has no changes.
    """
    judged_by, before = judged_before(run.folder)
    changed: dict[tuple[int, int], str] = {}
    cells = zip(run.manifest.cells, _letters(run), strict=True)
    for place, (cell, letters_now) in enumerate(cells):
        key = cell.condition.label, astuple(cell.line), cell.draws
        for slot, (old, new) in enumerate(zip(before.get(key, ""), letters_now, strict=False)):
            if old != new and old in _SCORED:
                changed[place, slot] = old
    return judged_by, list(_explained(run, changed)) if changed else []


def _explained(run: JudgedRun, changed: dict[tuple[int, int], str]) -> Iterator[OutcomeChange]:
    """The changes of samples; `changed` is (cell, slot) -> letter of the outcome before."""
    cells = run.samples["cell"].to_numpy()
    draws = np.array([cell.draws for cell in run.manifest.cells])[cells]
    letters_before = {
        place: changed[key]
        for place, key in enumerate(zip(cells.tolist(), slots(run.samples, draws), strict=True))
        if key in changed
    }
    for place, record in each_counted(run, letters_before.keys()):
        verdict = run.judge.verdict(record)
        why = reason(verdict, record.target)
        yield OutcomeChange(record.id, _SCORED[letters_before[place]], verdict.outcome, why)


def change_lines(run: JudgedRun) -> list[str]:
    """Lines for the user: the numbers of changes by kind, and the first few changes."""
    judged_by, changed = changes(run)
    if not changed:
        return []
    kinds = Counter((change.before, change.now) for change in changed)
    counts = ", ".join(f"{count:,} {was} now {now}" for (was, now), count in kinds.most_common())
    lines = [
        f"{len(changed):,} samples are judged differently than by eyechart {judged_by}: {counts}",
        *(f"  {change}" for change in changed[:_SHOWN]),
    ]
    if len(changed) > _SHOWN:
        lines.append(f"  … and {len(changed) - _SHOWN:,} more")
    return lines
