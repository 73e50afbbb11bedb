"""Several servers of one model: the least busy is asked, and what begins alike stays together."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from providers.base import BrokenConnectionError, OverloadedError

Server = TypeVar("Server")
_REMEMBERED = 4096
"""Prefixes whose server is kept in mind; those of a run's neighbours are asked close together."""
REST_S = 10.0
"""How long a server that broke is passed over, while others are up."""


@dataclass(eq=False, slots=True)
class _Replica(Generic[Server]):
    server: Server
    in_flight: int = 0
    back_at_s: float = 0.0


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

    @contextmanager
    def use(self, prefix: str) -> Iterator[Server]:
        """A server for a request of `prefix`; one that fails as a whole is passed over for a while.

        A sample's lengths stay on one server, so that their common beginning stays in its cache.
        """
        replica = self._pick(prefix)
        replica.in_flight += 1
        try:
            yield replica.server
        except (BrokenConnectionError, OverloadedError):
            replica.back_at_s = self._clock() + REST_S
            raise
        finally:
            replica.in_flight -= 1

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
