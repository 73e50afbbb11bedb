"""A limit of time for each of many requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_Result = TypeVar("_Result")


class TimeLimit:
    """Ends requests that take longer than `limit_s` seconds, all with one timer of the event loop.

    With a timer for each, as aiohttp sets it, a short request takes a tenth more CPU time.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._ends_s: dict[asyncio.Timeout, float] = {}
        """The requests under way, each with the loop's time at which it is ended; the earliest
        first."""
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, request: Awaitable[_Result]) -> _Result:
        """The result of `request`; raises `TimeoutError` where it takes longer than the limit."""
        timeout = asyncio.timeout(None)
        ends_s = asyncio.get_running_loop().time() + self._limit_s
        async with timeout:
            self._ends_s[timeout] = ends_s
            if self._timer is None:
                self._wake_at(ends_s)
            try:
                return await request
            finally:
                self._ends_s.pop(timeout, None)

    def _wake_at(self, ends_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(ends_s, self._end_late)

    def _end_late(self) -> None:
        """Ends the requests whose time is over, and waits for the next one's end."""
        self._timer = None
        now_s = asyncio.get_running_loop().time()
        while self._ends_s:
            timeout, ends_s = next(iter(self._ends_s.items()))
            if ends_s > now_s:
                self._wake_at(ends_s)
                return
            del self._ends_s[timeout]
            timeout.reschedule(now_s)
