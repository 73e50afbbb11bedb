"""Batch APIs: the requests to one model as lines of a file, and the vendor's service for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from eyechart.providers.base import Reply, Request, storable


class BatchForm(Protocol):
    """Requests to one model, and its replies, as lines of batch files; sends nothing."""

    @property
    def url(self) -> str:
        """Path of each request: `/v1/chat/completions`."""
        ...

    @property
    def caution(self) -> str | None:
        """A warning for users of such a file; `None` if there is none."""
        ...

    def body(self, request: Request) -> Mapping[str, object]:
        """The body that `complete` would send for `request`, with the model."""
        ...

    def reply(self, line: Mapping[str, object]) -> Reply:
        """The reply on a line of replies or errors; raises a `ProviderError` and nothing else."""
        ...


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of one batch at the vendor."""

    id: str
    status: str
    """`validating`, `in_progress`, `finalizing`, `cancelling`; after its end `completed`, `failed`
    (no request was processed), `expired` or `cancelled`."""
    total: int = 0
    completed: int = 0
    failed: int = 0
    """Numbers of requests: all, completed, failed."""
    output_file: str | None = None
    error_file: str | None = None
    """The vendor's names of the files with replies and errors."""
    problems: tuple[str, ...] = ()
    """Reasons of a failure, one line each."""

    def __post_init__(self) -> None:
        """Replaces lone surrogates in the texts, as in a `Reply`."""
        object.__setattr__(self, "status", storable(self.status))
        object.__setattr__(self, "problems", tuple(map(storable, self.problems)))


class BatchService(Protocol):
    """A vendor's Batch API. Every method raises a `ProviderError` and nothing else."""

    @property
    def address(self) -> str:
        """Address of the service, without keys."""
        ...

    async def facts(self) -> Mapping[str, object]:
        """The facts of the model, equal to those of `Provider.facts`."""
        ...

    async def upload(self, file: Path) -> str:
        """Uploads a file of requests; returns the vendor's name for it."""
        ...

    async def create(self, file: str, url: str, token: str) -> BatchState:
        """Submits an uploaded file. The batch is marked with `token`, so that `find` finds it."""
        ...

    async def find(self, token: str, since_s: float) -> BatchState | None:
        """The batch marked with `token`, created at or after `since_s` (seconds since 1970)."""
        ...

    async def state(self, batch: str) -> BatchState:
        """The state of a batch; raises `UnknownModelError` if there is none with this id."""
        ...

    async def fetch(self, file: str, to: Path) -> None:
        """Downloads a file atomically; raises `UnknownModelError` if it does not exist."""
        ...

    async def aclose(self) -> None:
        """Closes the connections."""
        ...
