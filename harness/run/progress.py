"""What a run has done so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from harness.plan.cost import Budget


@dataclass(slots=True)
class Progress:
    """What a run has done so far; a display reads it while the run goes on."""

    total: int = 0
    """Samples that were pending; grows with each wave of an adaptive run."""
    answered: int = 0
    failed: int = 0
    """Samples that stayed without a reply."""
    failed_in_a_row: int = 0
    last_failure: str = ""
    """Why the latest attempt or sample failed."""
    retries: int = 0
    """Attempts that were repeated."""
    retried: int = 0
    """Samples that were tried again."""
    waited_s: float = 0.0
    """Time in which no request was in flight and samples waited to be tried again."""
    connections: int = 0
    """Requests that may be in flight now."""
    budget: Budget = field(default_factory=Budget)
    judged: int = 0
    correct: int = 0
    """Of the judged samples; both stay 0 where the run has no judge."""
    known: str = ""
    """What an adaptive run knows before its present wave; empty in other runs."""
    started_s: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started_s

    @property
    def done(self) -> int:
        """Samples that were answered or failed."""
        return self.answered + self.failed
