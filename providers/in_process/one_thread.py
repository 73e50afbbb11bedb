"""A queue of requests that one thread answers in batches.

For models in this process: each request is added to a list; one thread takes all waiting requests
at once and returns each reply to the event loop of its request.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

from eyechart.providers.base import (
    BadRequestError,
    ProviderError,
    Reply,
    Request,
    SetupError,
    StopRunError,
)

_MOST_AT_ONCE = 2048
"""Most requests taken at once: enough to fill batches, few enough to keep their prompts."""
_STRAGGLERS_S = 0.005
"""An idle thread waits this long for more requests, and again while more arrive."""
_MOST_WAITS = 10


def check_limit(request: Request) -> None:
    """Raises `BadRequestError` if the reply may have no token."""
    if request.max_tokens < 1:
        raise BadRequestError(f"max_tokens is {request.max_tokens!r}; it must be at least 1")


class QueuedRequest:
    """One request in the queue."""

    __slots__ = ("_future", "_loop", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Reply] = self._loop.create_future()

    async def reply(self) -> Reply:
        return await self._future

    @property
    def cancelled(self) -> bool:
        return self._future.cancelled()

    def settle(self, outcome: Reply | ProviderError) -> None:
        """Sets the outcome, from any thread. Only the first counts; a closed loop is ignored."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, outcome)

    def _settle(self, outcome: Reply | ProviderError) -> None:
        if self._future.done():
            return
        if isinstance(outcome, Reply):
            self._future.set_result(outcome)
        else:
            self._future.set_exception(outcome)


class OneThread:
    """The queue and its thread, which starts with the first request.

    `answer` settles the jobs that it is given. If it raises, each job that is not settled gets an
    error of its own, since one for all would collect all their tracebacks: a `SetupError` as it is,
    and `failed(exception)` for others. `what` is answering, in the error of requests that are left.
    With `enough` jobs waiting the thread starts without waiting for more.
    """

    def __init__(
        self,
        what: str,
        answer: Callable[[list[QueuedRequest]], None],
        failed: Callable[[BaseException], ProviderError],
        *,
        enough: Callable[[], int] = lambda: _MOST_AT_ONCE,
    ) -> None:
        self._what = what
        self._answer = answer
        self._failed = failed
        self._enough = enough
        self._waiting: list[QueuedRequest] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.closed = False

    async def reply(self, request: Request) -> Reply:
        """The reply; raises the error that the job was settled with."""
        job = QueuedRequest(request)
        with self._changed:
            if self.closed:
                raise self.closed_error()
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._what, daemon=True)
                self._thread.start()
            self._changed.notify()
        return await job.reply()

    async def aclose(self, patience_s: float | None = None) -> None:
        """Refuses new requests and fails waiting ones. Waits for the end of the thread, for at most
        `patience_s` seconds.
        """
        with self._changed:
            self.closed = True
            self._changed.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, patience_s)

    def _serve(self) -> None:
        while jobs := self._take():
            try:
                self._answer(jobs)
            except BaseException as exc:  # noqa: BLE001  every request needs an outcome
                for job in jobs:
                    job.settle(self.closed_error() if self.closed else self._error(exc))
        with self._changed:
            left, self._waiting = self._waiting, []
        for job in left:
            job.settle(self.closed_error())

    def closed_error(self) -> StopRunError:
        """The error of a request without a reply when all is closed."""
        return StopRunError(f"{self._what} was closed before it answered; open it again")

    def _error(self, cause: BaseException) -> ProviderError:
        return SetupError(str(cause)) if isinstance(cause, SetupError) else self._failed(cause)

    def _take(self) -> list[QueuedRequest]:
        """Waits for requests and takes them; empty once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.closed)
        known = 0
        for _ in range(_MOST_WAITS):
            if self.closed or known == len(self._waiting) or len(self._waiting) >= self._enough():
                break
            known = len(self._waiting)
            time.sleep(_STRAGGLERS_S)
        with self._changed:
            if self.closed:
                return []
            taken, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
            return taken
