"""The progress of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from eyechart.harness.journal.record import Record
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.run_request import RunRequest

_FEWEST = 8
"""Number of replies from which on the remaining time is shown."""


@dataclass(slots=True)
class Pace:
    """How long replies take, by the length of the rows.

    The short rows of each index are asked first and answered sooner, so the mean of the first
    replies is too low for the rest. A line is fitted to all replies by least squares.
    """

    symbols: int = 0
    """Sum over all rows that were pending."""
    count: int = 0
    seconds: float = 0.0
    """Sum over all replies, also those that were under way at the same time."""
    _lengths: int = 0
    _squares: int = 0
    _products: float = 0.0

    def note(self, length: int, latency_s: float) -> None:
        """A reply to a row of `length` symbols came after `latency_s`."""
        self.count += 1
        self.seconds += latency_s
        self._lengths += length
        self._squares += length * length
        self._products += length * latency_s

    def work_left(self, samples: int) -> float:
        """How much longer the pending samples take than the answered ones, as a factor. Longer rows
        are assumed to take at least as long.
        """
        spread = self.count * self._squares - self._lengths**2
        covaried = self.count * self._products - self._lengths * self.seconds
        slope = max(0.0, covaried / spread) if spread else 0.0
        base = (self.seconds - slope * self._lengths) / self.count
        left = base * samples + slope * max(0, self.symbols - self._lengths)
        return max(0.0, left) / max(self.seconds, 1e-9)


@dataclass(slots=True)
class Progress:
    """The progress of a run; a display reads it while the run goes on."""

    total: int = 0
    """Samples that were pending; grows with each wave of an adaptive run."""
    answered: int = 0
    failed: int = 0
    """Samples that got no reply."""
    failed_in_a_row: int = 0
    last_failure: str = ""
    """Why the latest attempt or sample failed."""
    sent: Mapping[str, object] | None = None
    """The parameters of the latest request, see `Reply.sent`."""
    retries: int = 0
    """Attempts that were repeated."""
    retried: int = 0
    """Samples that were tried again."""
    waited_s: float = 0.0
    """How many seconds the run sent nothing, because all open samples waited to be tried again."""
    unknown_words: set[str] = field(default_factory=set)
    """Words for why a reply ended that are not known, of which the user was told."""
    connections: int = 0
    """Requests that may be in flight now."""
    budget: Budget = field(default_factory=Budget)
    judged: int = 0
    correct: int = 0
    """Correct among the judged samples; both stay 0 if the run has no judge."""
    known: str = ""
    """What an adaptive run knew before its present wave; empty in other runs."""
    is_adaptive: bool = False
    """Whether the replies decide how much is asked, so that the total is not known."""
    pace: Pace = field(default_factory=Pace)
    started_s: float = field(default_factory=time.monotonic)

    def take(self, record: Record, write: Callable[[Record], None]) -> None:
        """The result of a sample came: `write` writes it, and then it is counted."""
        write(record)
        if record.is_error:
            self.failed += 1
            self.failed_in_a_row += 1
            self.last_failure = "" if record.failure is None else record.failure.message
        else:
            self.answered += 1
            self.failed_in_a_row = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started_s

    @property
    def left_s(self) -> float | None:
        """Seconds to the end; `None` if they cannot be known, or not yet."""
        if self.is_adaptive or self.pace.count < _FEWEST:
            return None
        return self.elapsed_s * self.pace.work_left(self.total - self.done)

    @property
    def done(self) -> int:
        return self.answered + self.failed


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A run of a command that was begun, and how far it came."""

    request: RunRequest
    progress: Progress
