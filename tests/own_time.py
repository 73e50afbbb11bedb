"""An event loop with a time of its own: tests that sleep do not wait, whatever the load."""

from __future__ import annotations

import asyncio
from typing import Any


class OwnTimeLoop(asyncio.SelectorEventLoop):
    """A loop that goes on to its next timer as soon as nothing else can happen.

    What threads and sockets do takes no time in it: it is for tests whose providers are coroutines.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__()
        self._selector: Any
        self._select = self._selector.select
        self._selector.select = self._next

    def _next(self, timeout: float | None = None) -> Any:
        events = self._select(None if timeout is None else 0)
        if timeout and not events:
            self._now_s += timeout
        return events

    def time(self) -> float:
        return self._now_s
