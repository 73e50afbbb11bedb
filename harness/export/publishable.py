"""A run that others may read: what was asked, when it was answered, what is missing.

All of it is a function of the run's folder, so that the same run is published the same way twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson
import pandas as pd

from harness.analysis.judged_run import NOT_SCORED, UNANSWERED, JudgedRun, read_run
from harness.errors import JournalError
from harness.journal.record import Warn


@dataclass(frozen=True)
class Publishable:
    """One run, judged."""

    run: JudgedRun
    began_s: float
    """When its first answer came, in seconds since 1970."""
    answered_s: float
    """When its last answer came; running the same command again does not move it."""

    @property
    def settings_hash(self) -> str:
        """What tells runs of one model on one task version apart; the end of their folders' names.

        See `journal.manifest.run_folder`.
        """
        manifest = self.run.manifest
        made_by = orjson.dumps([manifest.task_digest, manifest.settings])
        return hashlib.sha256(made_by).hexdigest()[:8]

    @property
    def missing(self) -> str:
        """`12 of 60 samples have no reply (3 error, 9 not_run)`; empty where none is missing."""
        if not self.run.missing:
            return ""
        asked = sum(cell.samples for cell in self.run.manifest.cells)
        kinds = counted(self.run.cells, NOT_SCORED)
        return f"{self.run.missing:,} of {asked:,} samples have no reply ({kinds})"


def publishable(folder: Path, warn: Warn) -> Publishable:
    """The run in `folder`.

    Raises:
        JournalError: there is no run, or nothing of it was scored.
    """
    run = read_run(folder, warn)
    if not int(run.cells["n"].sum()):
        raise JournalError(f"{folder} has no scored sample: there is nothing to publish")
    try:
        begun = datetime.fromisoformat(run.manifest.created).timestamp()
    except ValueError:
        begun = 0.0
    return Publishable(run, *(run.times or (begun, begun)))


def counted(cells: pd.DataFrame, outcomes: Iterable[str] = UNANSWERED) -> str:
    """`41 unparsed, 22 truncated`: the outcomes that occurred in these rows of `table.csv`."""
    counts = {name: int(cells[name].sum()) for name in outcomes}
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
