"""How many requests may be in flight, and when the next one may be sent."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_FIRST, _FIRST_SHARE = 16, 1 / 8
"""Requests in flight at first: this number, or this share of the maximum if larger."""
_LATENCY_WEIGHT = 1 / 32
"""Weight of the newest reply in the moving average of latencies."""
_MAX_SLEEP_S = 0.25
"""Longest sleep before the token rate is checked again: replies may use fewer tokens."""
_SHARE_WEIGHT = 1 / 8
"""Weight of the newest reply in the average share that replies use of their maximum."""
_STORM = 3
"""Number of overloads without a reply between them that make a storm: then the limit is halved, and
a pause that the server asks for holds for all requests. Before, only the refused request waits.
"""
_LONE_CUT, _CUT = 7 / 8, 1 / 2
"""Factors of the limit after an overload among replies, and in a storm."""
_CLOCK_S = 1e-6
"""Shortest latency that a clock can measure."""
_TOO_SLOW = 2.0
_NO_GAIN = 0.8
"""The limit stops growing if replies take more than twice as long as at the best limit, and this
factor is more than 0.8 times the factor by which the limit has grown since.
"""


class RateLimiter:
    """Delays requests so that they stay within rates per minute, and until the end of a pause that
    the server asks for.
    """

    def __init__(
        self,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`rpm` and `tpm` are the most requests and tokens a minute; `None` sets no limit."""
        self._clock = clock
        self._sleep = sleep
        self._requests = None if rpm is None else _Pace(rpm / 60)
        self._tokens = None if tpm is None else _Pace(tpm / 60)
        self._lock = asyncio.Lock()
        self._used_share: float | None = None
        self._paused_until_s = float("-inf")

    def is_open(self, now_s: float) -> bool:
        """Whether a request may be sent at once, because there is neither a rate nor a pause."""
        return self._requests is None and self._tokens is None and now_s >= self._paused_until_s

    async def wait(self, max_tokens: int) -> tuple[float, float]:
        """Waits until a request of at most `max_tokens` may be sent. Returns the time after the
        wait, and the tokens that the rate counts for the request.

        Requests wait one after another, so that the true usage of an earlier reply shifts all of
        them.
        """
        async with self._lock:
            while (wait_s := self._wait_s(self._clock())) > 0:
                await self._sleep(wait_s if self._tokens is None else min(wait_s, _MAX_SLEEP_S))
            now_s = self._clock()
            expected = max_tokens * (1.0 if self._used_share is None else self._used_share)
            if self._requests is not None:
                self._requests.take(1, now_s)
            if self._tokens is not None:
                self._tokens.take(expected, now_s)
            return now_s, expected

    def _wait_s(self, now_s: float) -> float:
        rates_s = (pace.free_at_s for pace in (self._requests, self._tokens) if pace is not None)
        return max(self._paused_until_s, *rates_s, now_s) - now_s

    def pause(self, until_s: float) -> None:
        """No request may be sent before `until_s`."""
        self._paused_until_s = max(self._paused_until_s, until_s)

    def settle(self, tokens: int, expected: float, max_tokens: int) -> None:
        """Corrects the token rate after a request of at most `max_tokens`, which used `tokens`
        where `expected` were counted. Later requests are expected to use a similar share of their
        maximum.
        """
        if self._tokens is None:
            return
        self._tokens.correct(tokens - expected)
        if tokens and max_tokens:
            share = tokens / max_tokens
            last = share if self._used_share is None else self._used_share
            self._used_share = last + _SHARE_WEIGHT * (share - last)


@dataclass(slots=True, eq=False)
class Permit:
    """Permission to send one request. Its owner must `release` it."""

    limiter: AdaptiveLimiter
    sent_s: float
    """When the permission was given."""
    max_tokens: int = 0
    expected_tokens: float = 0.0
    """Tokens that the rate has counted for the request."""

    def on_success(self, latency_s: float) -> None:
        """A reply came after `latency_s`."""
        self.limiter.grow(latency_s)

    def on_overload(self, pause_s: float = 0.0) -> None:
        """The server was overloaded, and asked for a pause of `pause_s` seconds."""
        self.limiter.shrink(self.sent_s, pause_s)

    def settle(self, tokens: int) -> None:
        self.limiter.rates.settle(tokens, self.expected_tokens, self.max_tokens)

    def release(self) -> None:
        self.limiter.release()


class AdaptiveLimiter:
    """Limits the requests in flight; the workers of one event loop share it.

    The limit doubles with each round of replies until overloads follow each other. Then it halves
    (once for all requests that were sent before), and from there it grows by one a round: additive
    increase, multiplicative decrease, as TCP has it (Jacobson 1988, Congestion Avoidance and
    Control). Overloads among replies lower it by an eighth each, for some servers refuse a few
    requests whatever the load is.
    """

    def __init__(
        self,
        max_connections: int,
        rates: RateLimiter | None = None,
        *,
        first: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`first` is the limit at the beginning."""
        self.rates = rates or RateLimiter(clock=clock)
        self._max = max_connections
        first = first or max(_FIRST, int(max_connections * _FIRST_SHARE))
        self._limit = float(min(first, max_connections))
        self._in_flight = 0
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cut_at_s = float("-inf")
        self._was_overloaded = False
        self._overloads = 0
        self._latency_s: float | None = None
        self._replies = 0
        self._best_s = float("inf")
        self._best_limit = self._limit

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return int(self._limit)

    async def acquire(self, max_tokens: int) -> Permit:
        """Waits until a request of at most `max_tokens` may be sent."""
        if self._waiting or self._in_flight >= int(self._limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            self._wake()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.release()
                raise
        else:
            self._in_flight += 1
        now_s = self._clock()
        if self.rates.is_open(now_s):
            return Permit(self, now_s, max_tokens)
        try:
            sent_s, expected = await self.rates.wait(max_tokens)
        except BaseException:
            self.release()
            raise
        return Permit(self, sent_s, max_tokens, expected)

    def release(self) -> None:
        """A request is no longer in flight; the next one may be."""
        self._in_flight -= 1
        self._wake()

    def grow(self, latency_s: float) -> None:
        """Raises the limit after a reply, unless more requests in flight would only wait longer."""
        self._replies += 1
        self._overloads = 0
        last_s = latency_s if self._latency_s is None else self._latency_s
        self._latency_s = last_s + _LATENCY_WEIGHT * (latency_s - last_s)
        if self._replies * _LATENCY_WEIGHT >= 1 and self._latency_s < self._best_s:
            self._best_s, self._best_limit = self._latency_s, self._limit
        if self._limit < self._max and not self._saturated():
            self._limit += 1 / self._limit if self._was_overloaded else 1
            self._limit = min(self._limit, float(self._max))
            self._wake()

    def _saturated(self) -> bool:
        """Whether more requests in flight would only wait longer."""
        slower = (self._latency_s or 0.0) / max(self._best_s, _CLOCK_S)
        return slower > _TOO_SLOW and slower > _NO_GAIN * self._limit / self._best_limit

    def shrink(self, sent_s: float, pause_s: float = 0.0) -> None:
        """Lowers the limit after an overload, unless it was halved after the overloaded request was
        sent. In a storm no request may be sent within `pause_s` seconds.
        """
        now_s = self._clock()
        self._overloads += 1
        is_storm = self._overloads >= _STORM
        if is_storm:
            self.rates.pause(now_s + pause_s)
        if sent_s < self._cut_at_s:
            return
        self._limit = max(1.0, self._limit * (_CUT if is_storm else _LONE_CUT))
        if is_storm:
            self._cut_at_s = now_s
            self._was_overloaded = True

    def _wake(self) -> None:
        while self._waiting and self._in_flight < int(self._limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1  # counted before it runs, so that no other takes its place
                turn.set_result(None)


class _Pace:
    """A steady rate: requests leave one after another, never in a burst."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self.free_at_s = float("-inf")
        """When the next request may leave."""

    def take(self, amount: float, now_s: float) -> None:
        self.free_at_s = max(self.free_at_s, now_s) + amount / self._per_s

    def correct(self, amount: float) -> None:
        """Counts `amount` more units, or fewer if it is negative."""
        self.free_at_s += amount / self._per_s
