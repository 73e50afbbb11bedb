"""How many requests may be in flight, and when the next one may leave."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

_FIRST, _FIRST_SHARE = 16, 1 / 8
"""Requests in flight at the beginning: so many, or this share of the most where that is more."""
_SMOOTH = 1 / 32
"""Weight of the newest reply in the moving average of latencies."""
_LOOK_S = 0.25
"""Longest that the next one sleeps before it looks whether replies took less than expected."""
_NEWEST = 1 / 8
"""Weight of the newest reply in the share of their tokens that requests are expected to take."""
_CLOCK_S = 1e-6
"""Shortest latency that means anything."""
_TOO_SLOW = 2.0
_NO_GAIN = 0.8
"""Growth ends where replies take twice as long, and 0.8 times as much longer as there are more."""


class Place(NamedTuple):
    """Of a request that was let through."""

    left_s: float
    """When."""
    most: int
    """Tokens that it may take."""
    expected: float
    """Tokens that the rate was told of."""


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
        self._requests = None if rpm is None else _Pace(rpm / 60)
        self._tokens = None if tpm is None else _Pace(tpm / 60)
        self._line = asyncio.Lock()
        self._used_share: float | None = None
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

    async def enter(self, tokens: int) -> Place:
        """Waits for a place, and for the rates to allow a request of at most `tokens`.

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
        if self._requests is None and self._tokens is None and now_s >= self._open_at_s:
            return Place(now_s, tokens, 0.0)
        try:
            return await self._wait_for_rates(tokens)
        except BaseException:
            self.leave()
            raise

    async def _wait_for_rates(self, tokens: int) -> Place:
        """One after another, so that what earlier replies turn out to take moves all who wait."""
        async with self._line:
            while (wait_s := self._wait_s(self._clock())) > 0:
                await self._sleep(wait_s if self._tokens is None else min(wait_s, _LOOK_S))
            now_s = self._clock()
            expected = tokens * (1.0 if self._used_share is None else self._used_share)
            if self._requests is not None:
                self._requests.take(1, now_s)
            if self._tokens is not None:
                self._tokens.take(expected, now_s)
            return Place(now_s, tokens, expected)

    def _wait_s(self, now_s: float) -> float:
        rates_s = (pace.free_at_s for pace in (self._requests, self._tokens) if pace is not None)
        return max(self._open_at_s, *rates_s, now_s) - now_s

    def leave(self) -> None:
        """Gives the place to the next."""
        self._in_flight -= 1
        self._wake()

    def used(self, place: Place, tokens: int) -> None:
        """A request took `tokens`; what others will take is expected to be the like share."""
        if self._tokens is None:
            return
        self._tokens.correct(tokens - place.expected)
        if tokens and place.most:
            share = tokens / place.most
            last = share if self._used_share is None else self._used_share
            self._used_share = last + _NEWEST * (share - last)

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
    """A steady rate: one leaves after another, never in a burst."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self.free_at_s = float("-inf")
        """When the next may leave."""

    def take(self, amount: float, now_s: float) -> None:
        """`amount` leaves."""
        self.free_at_s = max(self.free_at_s, now_s) + amount / self._per_s

    def correct(self, amount: float) -> None:
        """What left was so much more than was taken, or less where negative."""
        self.free_at_s += amount / self._per_s
