"""A run to be published: its judged samples, the times of its answers, what is missing.

Everything is a function of the run's folder, so that publishing a run twice gives the same files.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.record import Warn
from eyechart.harness.score.outcomes import NOT_SCORED
from eyechart.harness.settings.judging import JudgeSettings


@dataclass(frozen=True)
class Publishable:
    """One judged run that has at least one scored sample."""

    run: JudgedRun
    first_answer_s: float
    """Time of the first answer, in seconds since 1970."""
    last_answer_s: float
    """Time of the last answer; running the same command again does not change it."""

    @property
    def settings_hash(self) -> str:
        """Distinguishes the runs of one model on one task version; ends the names of their folders,
        see `journal.manifest.run_folder`.
        """
        manifest = self.run.manifest
        identity = orjson.dumps([manifest.task_digest, manifest.settings.given()])
        return hashlib.sha256(identity).hexdigest()[:8]

    @property
    def missing_text(self) -> str:
        """`12 of 60 samples have no reply (3 error, 9 not_run)`; empty where none is missing."""
        if not self.run.missing:
            return ""
        asked = sum(cell.samples for cell in self.run.manifest.cells)
        counts = {name: int(self.run.cells[name].sum()) for name in NOT_SCORED}
        kinds = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        return f"{self.run.missing:,} of {asked:,} samples have no reply ({kinds})"


def read_publishable(folder: Path, warn: Warn, judging: JudgeSettings) -> Publishable:
    """The run in `folder`.

    Raises:
        JournalError: there is no run, or no sample of it was scored.
    """
    run = read_run(folder, warn, judging)
    if not int(run.cells["n"].sum()):
        raise JournalError(f"{folder} has no scored sample: there is nothing to publish")
    try:
        begun = datetime.fromisoformat(run.manifest.created).timestamp()
    except ValueError:
        begun = 0.0
    return Publishable(run, *(run.times or (begun, begun)))
