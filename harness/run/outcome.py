"""The result of one run of a command."""

from __future__ import annotations

from dataclasses import dataclass

from eyechart.harness.run.progress import Progress
from eyechart.harness.run.run_request import RunRequest


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A run that was begun, and how far it came."""

    request: RunRequest
    progress: Progress
