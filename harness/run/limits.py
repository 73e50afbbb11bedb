"""How hard and how long a run tries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RayOptions:
    """Which cluster of Ray asks, and how much of it."""

    address: str | None = None
    """`HOST:PORT` of a cluster, `auto` for the one of this machine; `None` starts one here."""
    workers: int | None = None
    """Engines or workers; `None` takes as many as the cluster has room for."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How many requests are sent at once, how often they are repeated, and when a run stops."""

    max_connections: int = 64
    """Requests in flight at once, at most."""
    first_connections: int | None = None
    """Requests in flight at the beginning; `None` leaves it to the limiter."""
    rpm: float | None = None
    """Requests a minute, at most."""
    tpm: float | None = None
    """Tokens a minute, of prompts and replies, at most."""
    max_attempts: int = 6
    """Attempts at one sample; those that the server answers with a rate limit do not count."""
    max_rate_limited: int = 100
    """Attempts at one sample that the server may answer with a rate limit (429)."""
    max_elapsed_s: float = 900.0
    """Time for one sample, waits included. A server that asks for a longer pause ends the run."""
    initial_backoff_s: float = 1.0
    """Wait before the second attempt; it doubles before each further one."""
    max_backoff_s: float = 60.0
    """The longest of these waits; a server that asks for a longer one gets it."""
    connect_timeout_s: float = 10.0
    """The run stops where no connection can be made for so long and the server never answered."""
    outage_timeout_s: float = 120.0
    """The same where it answered before. Meanwhile attempts to connect do not count."""
    drain_timeout_s: float = 30.0
    """Requests that are in flight when the run stops get this long to finish."""
    interrupt_drain_s: float = 10.0
    """The same where the user interrupts the run."""
    stall_timeout_s: float = 1200.0
    """The run stops after this long without any answer, where attempts fail meanwhile."""
    max_consecutive_failures: int = 20
    """The run stops after so many samples in a row without a reply."""
