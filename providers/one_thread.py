"""Requests that wait together, answered together by one thread.

For models that live in this process: whoever asks gets a place on a list, one thread takes all that
waits and hands each reply back to the event loop of the one who asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

from providers.base import ProviderError, Reply, Request

_MOST_AT_ONCE = 2048
"""Requests taken in one go: enough to fill batches, few enough to hold their prompts."""
_STRAGGLERS_S = 0.005
"""How long a free thread waits for more requests; again as long as some come meanwhile."""
_MOST_WAITS = 10


class Job:
    """One request on its way through the thread."""

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
        """From any thread; the first outcome counts, and a loop that has closed wants none."""
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
    """The list and the thread, which starts with the first request.

    `answer` settles the jobs it is given; those it leaves because it raised get `error` of that, an
    error of its own for each, since a raised one grows its caller's traceback. The thread does not
    wait for more than `enough`.
    """

    def __init__(
        self,
        name: str,
        answer: Callable[[list[Job]], None],
        error: Callable[[BaseException | None], ProviderError],
        *,
        enough: Callable[[], int] = lambda: _MOST_AT_ONCE,
    ) -> None:
        self._name = name
        self._answer = answer
        self._error = error
        """Of `None`: what those get who ask or wait when it is closed."""
        self._enough = enough
        self._waiting: list[Job] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.closed = False

    async def reply(self, request: Request) -> Reply:
        """The reply, or the error that the job was settled with."""
        job = Job(request)
        with self._changed:
            if self.closed:
                raise self._error(None)
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()
        return await job.reply()

    async def aclose(self, patience_s: float | None = None) -> None:
        """Takes no more; waits until the thread has ended, or so long. Who waits gets an error."""
        with self._changed:
            self.closed = True
            self._changed.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, patience_s)

    def _serve(self) -> None:
        while jobs := self._take():
            try:
                self._answer(jobs)
            except BaseException as exc:  # noqa: BLE001  whatever broke, nobody may wait for ever
                for job in jobs:
                    job.settle(self._error(None if self.closed else exc))
        with self._changed:
            left, self._waiting = self._waiting, []
        for job in left:
            job.settle(self._error(None))

    def _take(self) -> list[Job]:
        """All that waits, once something does; nothing once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.closed)
        seen = 0
        for _ in range(_MOST_WAITS):
            if self.closed or seen == len(self._waiting) or len(self._waiting) >= self._enough():
                break
            seen = len(self._waiting)
            time.sleep(_STRAGGLERS_S)
        with self._changed:
            if self.closed:
                return []
            taken, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
            return taken
