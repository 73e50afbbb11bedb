"""Several servers of one model: the least busy is asked, and what begins alike stays together."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from providers.base import (
    BadReplyError,
    BrokenConnectionError,
    OverloadedError,
    ReplyTimeoutError,
    ServerFaultError,
    TransientError,
)

Server = TypeVar("Server")
_REMEMBERED = 4096
"""Prefixes whose server is kept in mind; those of a run's neighbours are asked close together."""
REST_S = 10.0
"""How long a server that broke is passed over, while others are up."""
_FAULTS = 3
"""Faults in a row after which it is taken for broken; one may be bad luck."""


@dataclass(eq=False, slots=True)
class _Replica(Generic[Server]):
    server: Server
    in_flight: int = 0
    back_at_s: float = 0.0
    faults: int = 0
    """Since its last answer."""


@dataclass(eq=False, slots=True)
class _Use(Generic[Server]):
    """The time of one request; no generator, which would cost as much as reading the reply."""

    _replicas: Replicas[Server]
    _prefix: str
    _replica: _Replica[Server]

    def __enter__(self) -> Server:
        self._replica.in_flight += 1
        return self._replica.server

    def __exit__(self, _: object, error: BaseException | None, _trace: object) -> None:
        self._replica.in_flight -= 1
        if error is None:
            self._replica.faults = 0
        elif isinstance(error, TransientError):
            self._replicas.failed(self._replica, self._prefix, error)


class Replicas(Generic[Server]):
    """The servers and how busy each is."""

    def __init__(
        self, servers: Sequence[Server], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._replicas = [_Replica(server) for server in servers]
        self._clock = clock
        self._chosen: OrderedDict[str, _Replica[Server]] = OrderedDict()

    def __iter__(self) -> Iterator[Server]:
        return (replica.server for replica in self._replicas)

    def use(self, prefix: str) -> _Use[Server]:
        """A server for a request of `prefix`; one that fails as a whole is passed over for a while.

        A sample's lengths stay on one server, so that their common beginning stays in its cache,
        until it fails one of them.
        """
        return _Use(self, prefix, self._pick(prefix))

    def failed(self, replica: _Replica[Server], prefix: str, error: TransientError) -> None:
        """Takes note of what a server did to a request of `prefix`."""
        self._chosen.pop(prefix, None)
        replica.faults += isinstance(error, ServerFaultError | BadReplyError)
        down = isinstance(error, BrokenConnectionError | OverloadedError | ReplyTimeoutError)
        if down or replica.faults >= _FAULTS:
            replica.back_at_s = self._clock() + REST_S

    def _pick(self, prefix: str) -> _Replica[Server]:
        if len(self._replicas) == 1:
            return self._replicas[0]
        now = self._clock()
        kept = self._chosen.get(prefix)
        if kept is None or kept.back_at_s > now:
            up = [one for one in self._replicas if one.back_at_s <= now] or self._replicas
            kept = min(up, key=lambda one: one.in_flight)
        self._chosen[prefix] = kept
        self._chosen.move_to_end(prefix)
        if len(self._chosen) > _REMEMBERED:
            self._chosen.popitem(last=False)
        return kept
