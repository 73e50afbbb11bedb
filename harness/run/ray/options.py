"""Which cluster asks, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RayOptions:
    """A cluster."""

    address: str | None = None
    """`HOST:PORT` of a cluster, `auto` for the one of this machine; `None` starts one here."""
    workers: int | None = None
    """Engines or workers; `None` takes as many as the cluster has room for."""
