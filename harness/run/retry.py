"""Asks one sample, with retries and waits, and makes its record for the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from eyechart.harness.journal.record import Record
from eyechart.harness.plan.cost import UsageMeter
from eyechart.harness.run.limiter import AdaptiveLimiter, Permit
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.progress import Progress
from eyechart.harness.run.records import answered, failed
from eyechart.harness.spec import Sample
from eyechart.providers.base import (
    ConnectError,
    OverloadedError,
    Provider,
    ProviderError,
    RateLimitError,
    Reply,
    ReplyTimeoutError,
    Request,
    SampleError,
    StopRunError,
    TransientError,
)
from eyechart.providers.secrets import redact

_BELIEVED = 7
"""Rate limits of one sample after which its waits double; before, `Retry-After` holds."""
_LONG_WAIT_S = 10.0
"""Shortest wait, in seconds, that the user is told about."""


@dataclass(slots=True)
class RetryingClient:
    """Asks one sample after another for the workers of a pool; repeats attempts that failed."""

    provider: Provider
    limits: RunLimits
    progress: Progress
    meter: UsageMeter
    limiter: AdaptiveLimiter
    sleep: Callable[[float], Awaitable[None]]
    clock: Callable[[], float]
    in_flight: set[asyncio.Task[None] | None] = field(default_factory=set)
    """Workers whose request may already be paid for."""
    stopped: Exception | None = None
    """Why no further request may be sent; `None` while the run goes on."""
    say: Callable[[str], None] = lambda _line: None
    """Gets a line for the user."""
    has_said_waiting: bool = False
    """Whether the user was told that the server makes the run wait."""
    answered_at_s: float = field(init=False)
    """When the last answer came, or the run began."""
    is_heard: bool = field(init=False)
    """Whether the server has ever sent an answer."""
    unreached_since_s: float | None = None
    """Time of the first failed connection after the last answer."""
    waiting: int = 0
    """Samples that wait to be tried again."""
    idle_since_s: float | None = None
    """Time since which no request is in flight and samples wait; `None` if that is not so."""

    def __post_init__(self) -> None:
        self.answered_at_s = self.clock()
        self.is_heard = self.progress.answered > 0

    async def ask(self, sample: Sample, request: Request) -> Record | None:
        """The record of the sample; `None` if the run stopped before the sample was asked."""
        state = RetryState(self.limits)
        budget = self.progress.budget
        max_usage = self.meter.max_usage(request.prompt, request.max_tokens)
        tokens = max_usage.output
        if self.limits.tpm is not None:
            tokens += self.meter.asked(request.prompt)
        while True:
            # before a permit is acquired, so that the rates count what is sent and when
            if budget.limit is not None and not await budget.admit(max_usage):
                return None
            try:
                result = await self._attempt(sample, request, state, tokens)
            finally:
                if budget.limit is not None:
                    budget.release(max_usage)
            if result is None or isinstance(result, Record):
                return result
            if self.stopped is not None:
                return None
            self.progress.retries += 1
            self.progress.retried += state.attempts == 1
            await self._wait(result)

    async def _wait(self, seconds: float) -> None:
        """Waits before a sample is tried again."""
        self.waiting += 1
        self._note_idle()
        try:
            await self.sleep(seconds)
        finally:
            self.waiting -= 1
            self._note_idle()

    def _note_idle(self) -> None:
        """Counts the time in which the run only waits; called when it may begin or end."""
        if self.idle_since_s is not None:
            self.progress.waited_s += self.clock() - self.idle_since_s
        is_idle = self.waiting and not self.in_flight
        self.idle_since_s = self.clock() if is_idle else None

    async def _attempt(
        self, sample: Sample, request: Request, state: RetryState, tokens: int
    ) -> Record | float | None:
        """The record, see `ask`, or the seconds until the next attempt."""
        permit = await self.limiter.acquire(tokens)
        worker = asyncio.current_task()
        self.in_flight.add(worker)
        if self.waiting:
            self._note_idle()
        try:
            if self.progress.budget.exhausted or self.stopped is not None:
                return None
            try:
                reply = await self.provider.complete(request)
            except ProviderError:
                raise
            except Exception as error:  # our code did not expect what the server sent
                raise TransientError(redact(f"{type(error).__name__}: {error}")) from error
            latency_s = self.clock() - permit.sent_s
            reply = self._settle(reply, request, permit, latency_s)
            return answered(sample, reply, attempts=state.attempts + 1, latency_s=latency_s)
        except TransientError as error:
            used = self.meter.settle_nothing(error.usage)
            permit.settle(used.prompt_tokens + used.output_tokens)
            wait_s = self._wait_after(error, state, permit)
            return failed(sample, error, attempts=state.attempts) if wait_s is None else wait_s
        except SampleError as error:
            self.is_heard = True
            permit.settle(0)
            return failed(sample, error, attempts=state.attempts + 1)
        finally:
            self.in_flight.discard(worker)
            if self.waiting:
                self._note_idle()
            permit.release()

    def _settle(self, reply: Reply, request: Request, permit: Permit, latency_s: float) -> Reply:
        """Charges a reply; returns it without token counts that cannot be true."""
        permit.on_success(latency_s)
        self.answered_at_s = self.clock()
        self.is_heard = True
        reply, used = self.meter.settle(reply, request.prompt, request.max_tokens)
        permit.settle(used.prompt_tokens + used.output_tokens)
        return reply

    def _wait_after(self, error: TransientError, state: RetryState, permit: Permit) -> float | None:
        """Seconds until the next attempt; `None` if there is none.

        Raises:
            StopRunError: the server asks for a pause that is longer than one sample may take, or
                nothing was answered for too long.
        """
        now_s = self.clock()
        silent_s = now_s - self.answered_at_s
        is_unreached = isinstance(error, ConnectError)
        answered = self.progress.answered
        # nothing was answered since its last attempt, so the sample is not to blame
        is_outage = is_unreached and self.is_heard and state.answered == answered
        wait_s = state.wait_after(error, now_s - permit.sent_s, is_outage=is_outage)
        state.answered = answered
        pause_s = error.retry_after_s or 0.0
        if pause_s > self.limits.max_elapsed_s:
            raise StopRunError(
                f"the server asks for a pause of {pause_s:.0f} s: {error}"
            ) from error
        if silent_s > self.limits.stall_timeout_s + pause_s:
            raise StopRunError(
                f"nothing was answered for {silent_s / 60:.0f} minutes; the last failure: {error}"
            ) from error
        self.progress.last_failure = str(error)
        if is_unreached:
            left_s = self._time_to_connect(error)
            wait_s = None if wait_s is None else min(wait_s, left_s)
        else:
            self.is_heard = True
        is_long = wait_s is not None and wait_s >= _LONG_WAIT_S
        if (is_long or isinstance(error, ReplyTimeoutError)) and not self.has_said_waiting:
            self.has_said_waiting = True
            self.say(f"waiting {wait_s or 0:.0f} s: {error}")
        if isinstance(error, RateLimitError | OverloadedError | ReplyTimeoutError):
            permit.on_overload(pause_s)
        return wait_s

    def _time_to_connect(self, error: TransientError) -> float:
        """Seconds that are left to make a connection; tells the user at once what the run waits
        for.

        Raises:
            StopRunError: no time is left.
        """
        limits, now_s = self.limits, self.clock()
        timeout_s = limits.outage_timeout_s if self.is_heard else limits.connect_timeout_s
        if self.unreached_since_s is None or self.unreached_since_s < self.answered_at_s:
            self.unreached_since_s = now_s
            if not self.has_said_waiting:
                self.has_said_waiting = True
                self.say(f"{error}; trying again for up to {timeout_s:.0f} s")
        left_s = self.unreached_since_s + timeout_s - now_s
        if left_s <= 0:
            raise StopRunError(
                f"no connection within {timeout_s:.0f} s; start the server or correct its address, "
                f"and the same command goes on ({error})"
            ) from error
        return left_s


@dataclass(slots=True)
class RetryState:
    """The number and duration of the attempts at one sample."""

    limits: RunLimits
    failed: int = 0
    """Attempts that failed for another reason than a rate limit."""
    rate_limited: int = 0
    waived: int = 0
    """Attempts that failed while the server was away. They do not count."""
    answered: int = -1
    """Samples of the run that had been answered before the last attempt failed."""
    elapsed_s: float = 0.0

    @property
    def attempts(self) -> int:
        return self.failed + self.rate_limited + self.waived

    def wait_after(
        self, error: TransientError, latency_s: float, *, is_outage: bool = False
    ) -> float | None:
        """Seconds to wait after an attempt that ended with `error`; `None` if it was the last. In
        an outage of the server the attempt does not count.
        """
        limits = self.limits
        if is_outage:
            self.waived += 1
        elif isinstance(error, RateLimitError):
            self.rate_limited += 1
        else:
            self.failed += 1
        doublings = self.attempts - 1
        if isinstance(error, RateLimitError) and error.retry_after_s:  # the server knows best
            doublings = max(0, doublings - _BELIEVED)
        doubled_s = limits.initial_backoff_s * 2.0 ** min(doublings, 30)
        wait_s = max(min(doubled_s, limits.max_backoff_s), error.retry_after_s or 0.0)
        self.elapsed_s += latency_s + wait_s
        is_last = (
            self.failed >= limits.max_attempts
            or self.rate_limited >= limits.max_rate_limited
            or self.elapsed_s > limits.max_elapsed_s
        )
        return None if is_last else wait_s
