"""How hard and how long a run tries."""

from __future__ import annotations

from dataclasses import dataclass

from eyechart.harness.spec.duration import duration
from eyechart.providers.base import StopRunError, TransientError


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How many requests are sent at once, how often they are repeated, and when a run stops."""

    max_connections: int = 64
    """Most requests in flight."""
    first_connections: int | None = None
    """Requests in flight at the beginning; `None` leaves it to the limiter."""
    rpm: float | None = None
    """Most requests a minute."""
    tpm: float | None = None
    """Most tokens of prompts and replies a minute."""
    max_attempts: int = 6
    """Most attempts at one sample, without those that the server answers with a rate limit."""
    unheard_attempts: int | None = None
    """Most attempts at one sample before anything was answered, if the server is not overloaded;
    the other samples wait for its end meanwhile. `None`: as many as later, and no sample waits."""
    max_rate_limited: int = 100
    """Most attempts at one sample that the server may answer with a rate limit (429)."""
    max_elapsed_s: float = 900.0
    """Seconds for one sample, with waits. If a server asks for a longer pause, the run ends."""
    initial_backoff_s: float = 1.0
    """Seconds before the second attempt. The wait doubles before each further one."""
    max_backoff_s: float = 60.0
    """The longest of these waits. If a server asks for a longer one, it gets that."""
    connect_timeout_s: float = 10.0
    """The run stops if no connection can be made for so long and the server never answered."""
    outage_timeout_s: float = 120.0
    """The run stops if no connection can be made for so long and the server answered before.
    Attempts to connect do not count meanwhile.
    """
    drain_timeout_s: float = 30.0
    """Seconds for requests in flight to finish when the run stops."""
    interrupt_drain_s: float = 10.0
    """Seconds for requests in flight to finish when the user interrupts the run."""
    stall_timeout_s: float = 1200.0
    """The run stops after this many seconds without any answer, if attempts fail meanwhile."""
    max_consecutive_failures: int = 20
    """The run stops after this many samples in a row without a reply."""


def too_long_a_pause(who: str, error: TransientError) -> StopRunError:
    """The error that ends a run because `who` asks for a longer pause than it waits."""
    pause = duration(error.retry_after_s or 0.0)
    return StopRunError(
        f"{who} asks for a pause of {pause}; the same command goes on later ({error})"
    )
