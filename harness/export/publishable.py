"""A run that others may read: what was asked, when it was answered, what is missing.

All of it is a function of the run's folder, so that the same run is published the same way twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import pandas as pd

from harness import errors
from harness.analysis.leaderboard import is_control
from harness.analysis.reach import conditions
from harness.analysis.tables import NOT_SCORED, UNANSWERED, Run, read_run
from harness.journal import journal
from harness.spec import Condition, condition_label


@dataclass(frozen=True)
class Publishable:
    """One run, judged."""

    run: Run
    began_s: float
    """When its first answer came, in seconds since 1970."""
    answered_s: float
    """When its last answer came; running the same command again does not move it."""

    @property
    def settings_hash(self) -> str:
        """What tells runs of one model on one task version apart; the end of their folders' names.

        See `journal.run_folder`.
        """
        manifest = self.run.manifest
        made_by = orjson.dumps([manifest.task_digest, manifest.settings])
        return hashlib.sha256(made_by).hexdigest()[:8]

    @property
    def unscored(self) -> int:
        """Samples without a reply."""
        return int(self.run.cells[list(NOT_SCORED)].sum().sum())

    @property
    def missing(self) -> str:
        """`12 of 60 samples have no reply (3 error, 9 not_run)`; empty where none is missing."""
        if not self.unscored:
            return ""
        asked = sum(cell.samples for cell in self.run.manifest.cells)
        return f"{self.unscored:,} of {asked:,} samples have no reply ({counted(self, NOT_SCORED)})"

    @cached_property
    def parts(self) -> list[Part]:
        """Its conditions, in the order of the task file."""
        cells = self.run.manifest.cells
        labels = [condition_label(cell.condition) for cell in cells]
        found = []
        for label, condition in conditions(self.run).items():
            mine = self.run.cells[[one == label for one in labels]]
            found.append(Part(label, condition, mine, is_control(self.run, mine.index)))
        return found


@dataclass(frozen=True)
class Part:
    """One condition of a run."""

    label: str
    condition: Condition
    cells: pd.DataFrame
    """Its rows of `Run.cells`, by length."""
    control: bool = False
    """Whether a model that sees nothing is right; see `leaderboard.is_control`."""

    @property
    def scored(self) -> pd.DataFrame:
        """Those with a scored sample: what accuracies, areas and effective lengths are of."""
        return self.cells[self.cells["n"] > 0]

    @property
    def lengths(self) -> list[int]:
        """Lengths with a scored sample."""
        return [int(length) for length in self.scored["length"]]


def publishable(folder: Path, warn: journal.Warn) -> Publishable:
    """The run in `folder`.

    Raises:
        JournalError: there is no run, or nothing of it was scored.
    """
    run = read_run(folder, warn)
    times = [at for at in map(_time, journal.read_records(folder)) if at is not None]
    if not int(run.cells["n"].sum()):
        raise errors.JournalError(f"{folder} has no scored sample: there is nothing to publish")
    try:
        begun = datetime.fromisoformat(run.manifest.created).timestamp()
    except ValueError:
        begun = 0.0
    return Publishable(run, min(times, default=begun), max(times, default=begun))


def _time(record: Mapping[str, Any]) -> float | None:
    at = record.get("at")
    return float(at) if isinstance(at, int | float) else None


def counted(found: Publishable | Part, outcomes: Iterable[str] = UNANSWERED) -> str:
    """`41 unparsed, 22 truncated`: the outcomes that occurred."""
    cells = found.cells if isinstance(found, Part) else found.run.cells
    counts = {name: int(cells[name].sum()) for name in outcomes}
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
