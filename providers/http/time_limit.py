"""A limit of time for each of many requests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


class TimeLimit:
    """Ends requests that take longer than `limit_s` seconds, all with one timer of the event loop.

    With a timer for each, as aiohttp sets it, a short request takes a tenth more CPU time.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._ends_s: dict[_Limited, float] = {}
        """The requests under way, each with the loop's time at which it is ended; the earliest
        first."""
        self._timer: asyncio.TimerHandle | None = None

    def started(self) -> _Limited:
        """A context for a request of the current task, which begins now; the context raises
        `TimeoutError` where it takes longer than the limit.
        """
        task = asyncio.current_task()
        assert task is not None
        return _Limited(self, task, task.cancelling())

    def begin(self, request: _Limited) -> None:
        ends_s = asyncio.get_running_loop().time() + self.limit_s
        self._ends_s[request] = ends_s
        if self._timer is None:
            self._wake_at(ends_s)

    def end(self, request: _Limited) -> None:
        self._ends_s.pop(request, None)

    def _wake_at(self, ends_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(ends_s, self._end_late)

    def _end_late(self) -> None:
        """Ends the requests whose time is over, and waits for the next one's end."""
        self._timer = None
        now_s = asyncio.get_running_loop().time()
        while self._ends_s:
            request, ends_s = next(iter(self._ends_s.items()))
            if ends_s > now_s:
                self._wake_at(ends_s)
                return
            del self._ends_s[request]
            request.cancel()


@dataclass(eq=False, slots=True)
class _Limited:
    """One request. It ends as in an `asyncio.Timeout`, whose two coroutines take more time."""

    limit: TimeLimit
    task: asyncio.Task[object]
    cancellations: int
    """Those that its task had before."""
    is_late: bool = False

    def __enter__(self) -> None:
        self.limit.begin(self)

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.limit.end(self)
        if self.is_late:
            is_only = self.task.uncancel() <= self.cancellations
            if is_only and isinstance(error, asyncio.CancelledError):
                raise TimeoutError from error

    def cancel(self) -> None:
        self.is_late = True
        self.task.cancel()
