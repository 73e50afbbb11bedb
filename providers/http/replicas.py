"""Chooses among several servers of one model: the least busy, but one server for each prefix."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from eyechart.providers.base import (
    BadReplyError,
    BrokenConnectionError,
    OverloadedError,
    RateLimitError,
    ReplyTimeoutError,
    ServerFaultError,
    SetupError,
    TransientError,
)
from eyechart.providers.secrets import redact_address

Server = TypeVar("Server")
_REMEMBERED = 4096
"""Most prefixes whose server is remembered; a run sends requests of one prefix close together."""
REST_S = 10.0
"""A failed server gets no requests for this long, if others are up."""
_FAULTS = 3
"""Consecutive faults after which a server counts as failed."""


@dataclass(eq=False, slots=True)
class _Replica(Generic[Server]):
    server: Server
    in_flight: int = 0
    back_at_s: float = 0.0
    faults: int = 0
    """Faults since its last answer."""


@dataclass(eq=False, slots=True)
class _Use(Generic[Server]):
    """Context of one request; a generator would take as much time as reading the reply."""

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
    """The servers, with their requests in flight."""

    def __init__(
        self, servers: Sequence[Server], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._replicas = [_Replica(server) for server in servers]
        self._clock = clock
        self._chosen: OrderedDict[str, _Replica[Server]] = OrderedDict()

    def __iter__(self) -> Iterator[Server]:
        return (replica.server for replica in self._replicas)

    def use(self, prefix: str) -> _Use[Server]:
        """A context with a server for a request of `prefix`; avoids failed servers for a while.

        Requests of one prefix go to one server, which has their common beginning in its cache,
        until one of them fails.
        """
        return _Use(self, prefix, self._pick(prefix))

    def failed(self, replica: _Replica[Server], prefix: str, error: TransientError) -> None:
        """Records that a request of `prefix` failed with `error` on a server."""
        self._chosen.pop(prefix, None)
        replica.faults += isinstance(error, ServerFaultError | BadReplyError)
        down = isinstance(error, BrokenConnectionError | OverloadedError | ReplyTimeoutError)
        if down or replica.faults >= _FAULTS:
            replica.back_at_s = self._clock() + REST_S
        elif isinstance(error, RateLimitError) and error.retry_after_s:
            replica.back_at_s = self._clock() + error.retry_after_s

    def _pick(self, prefix: str) -> _Replica[Server]:
        if len(self._replicas) == 1:
            return self._replicas[0]
        now = self._clock()
        chosen = self._chosen.get(prefix)
        if chosen is None or chosen.back_at_s > now:
            up = [replica for replica in self._replicas if replica.back_at_s <= now]
            chosen = min(up or self._replicas, key=lambda replica: replica.in_flight)
        self._chosen[prefix] = chosen
        self._chosen.move_to_end(prefix)
        if len(self._chosen) > _REMEMBERED:
            self._chosen.popitem(last=False)
        return chosen


def check_replicas(each: Mapping[str, Mapping[str, object]]) -> None:
    """Raises `SetupError` where servers differ in a fact; `each` is address -> facts."""
    for (first_url, first), (url, facts) in pairwise(each.items()):
        for name in {**first, **facts}:
            if facts.get(name) != first.get(name):
                raise SetupError(
                    f"{redact_address(first_url)} and {redact_address(url)} are no replicas: "
                    f"{name} is {first.get(name)!r} and {facts.get(name)!r}"
                )
