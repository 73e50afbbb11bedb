"""How many requests may be in flight, and when the next one may leave."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

_FIRST, _FIRST_SHARE = 16, 1 / 8
"""Requests in flight at the beginning: so many, or this share of the most where that is more."""
_SMOOTH = 1 / 32
"""Weight of the newest reply in the moving average of latencies."""
_CLOCK_S = 1e-6
"""Shortest latency that means anything."""
_TOO_SLOW = 2.0
_NO_GAIN = 0.8
"""Growth ends where replies take twice as long, and 0.8 times as much longer as there are more."""


class Gate:
    """Lets requests through one by one; one event loop's workers share it.

    The limit doubles with each round of replies until the first sign of trouble, halves on each
    (once for all that were sent before it), and then grows by one a round: additive increase,
    multiplicative decrease, as TCP has it (Jacobson 1988, Congestion Avoidance and Control).
    """

    def __init__(
        self,
        most: int,
        *,
        first: int | None = None,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._most = most
        self._limit = float(min(first or max(_FIRST, int(most * _FIRST_SHARE)), most))
        self._in_flight = 0
        self._clock = clock
        self._sleep = sleep
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paces = tuple(
            (_Pace(rate / 60), of_tokens)
            for rate, of_tokens in ((rpm, False), (tpm, True))
            if rate is not None
        )
        self._open_at_s = float("-inf")
        self._cut_at_s = float("-inf")
        self._in_trouble = False
        self._latency_s: float | None = None
        self._replies = 0
        self._best_s = float("inf")
        self._best_limit = self._limit

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return int(self._limit)

    async def enter(self, tokens: int) -> float:
        """Waits for a place, and for the rates to allow a request of `tokens`; when it left.

        Whoever entered must `leave`.
        """
        if self._waiting or self._in_flight >= int(self._limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            self._wake()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.leave()
                raise
        else:
            self._in_flight += 1
        now_s = self._clock()
        if self._paces or now_s < self._open_at_s:
            try:
                await self._wait_for_rates(tokens)
            except BaseException:
                self.leave()
                raise
            now_s = self._clock()
        return now_s

    async def _wait_for_rates(self, tokens: int) -> None:
        for pace, of_tokens in self._paces:
            wait_s = pace.reserve(tokens if of_tokens else 1, self._clock())
            if wait_s > 0:
                await self._sleep(wait_s)
        opens_at_s = float("-inf")
        while opens_at_s < self._open_at_s:  # it may move while we wait
            opens_at_s = self._open_at_s
            if (wait_s := opens_at_s - self._clock()) > 0:
                await self._sleep(wait_s)

    def leave(self) -> None:
        """Gives the place to the next."""
        self._in_flight -= 1
        self._wake()

    def used(self, reserved: int, tokens: int) -> None:
        """A request took `tokens`, of the `reserved` that it entered with."""
        for pace, of_tokens in self._paces:
            if of_tokens:
                pace.give_back(reserved - tokens)

    def went_well(self, latency_s: float) -> None:
        """A reply came after `latency_s`."""
        self._replies += 1
        last_s = latency_s if self._latency_s is None else self._latency_s
        self._latency_s = last_s + _SMOOTH * (latency_s - last_s)
        if self._replies * _SMOOTH >= 1 and self._latency_s < self._best_s:
            self._best_s, self._best_limit = self._latency_s, self._limit
        if self._limit < self._most and not self._saturated():
            self._limit += 1 / self._limit if self._in_trouble else 1
            self._limit = min(self._limit, float(self._most))
            self._wake()

    def _saturated(self) -> bool:
        """Whether more at once would only wait longer."""
        slower = (self._latency_s or 0.0) / max(self._best_s, _CLOCK_S)
        return slower > _TOO_SLOW and slower > _NO_GAIN * self._limit / self._best_limit

    def went_badly(self, left_s: float, *, pause_s: float = 0.0) -> None:
        """A request that left at `left_s` was too much; nobody may leave within `pause_s`."""
        now_s = self._clock()
        self._open_at_s = max(self._open_at_s, now_s + pause_s)
        if left_s >= self._cut_at_s:
            self._limit = max(1.0, self._limit / 2)
            self._cut_at_s = now_s
            self._in_trouble = True

    def _wake(self) -> None:
        while self._waiting and self._in_flight < int(self._limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1  # on its behalf, so that nobody slips in between
                turn.set_result(None)


class _Pace:
    """A steady rate: what is reserved leaves one after another, never in a burst."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._next_s = 0.0

    def reserve(self, amount: float, now_s: float) -> float:
        """Seconds until `amount` may leave."""
        at_s = max(self._next_s, now_s)
        self._next_s = at_s + amount / self._per_s
        return at_s - now_s

    def give_back(self, amount: float) -> None:
        """`amount` of what was reserved was not needed, or more than that was where negative."""
        self._next_s -= amount / self._per_s
