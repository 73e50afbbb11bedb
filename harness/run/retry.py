"""One sample, asked as often as it takes: retries, waits, and what the journal says of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from harness.journal.record import Record
from harness.plan.cost import Account, Budget
from harness.run.limiter import Gate, Place
from harness.run.records import answered, failed
from harness.spec import Sample
from providers.base import (
    NoReplyError,
    OverloadedError,
    Provider,
    ProviderError,
    RateLimitError,
    Reply,
    Request,
    SampleError,
    StopRunError,
    TransientError,
)
from providers.secrets import redact

_LONG_S = 10.0
"""A wait that is worth a line."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard and how long to try."""

    max_connections: int = 64
    """Requests in flight at once, at most."""
    first_connections: int | None = None
    """At the beginning; `None` leaves it to the gate."""
    rpm: float | None = None
    """Requests a minute, at most."""
    tpm: float | None = None
    """Tokens a minute, of prompts and replies, at most."""
    attempts: int = 6
    """Times one sample is asked at most; being told to come later (429) does not count."""
    rate_limited: int = 100
    """Times it may be told so."""
    give_up_s: float = 900.0
    """Longest that one sample is tried, waits included. A server that asks for a longer pause ends
    the run."""
    first_wait_s: float = 1.0
    """Pause before the second attempt; doubled before each further one."""
    longest_wait_s: float = 60.0
    """The longest of these; a server that asks for more is given it."""
    farewell_s: float = 30.0
    """How long requests in flight may take once the run is to stop; they may be paid for."""
    interrupted_s: float = 10.0
    """The same where the user interrupts it."""
    silence_s: float = 1200.0
    """Longest that attempts fail and nothing is answered; then the run stops."""
    hopeless: int = 20
    """Samples in a row without a reply, and none answered meanwhile, after which the run stops."""


@dataclass(slots=True)
class Progress:
    """What a run has done so far; read by whoever shows it."""

    answered: int = 0
    failed: int = 0
    """Samples that stayed without a reply."""
    failed_in_a_row: int = 0
    last_failure: str = ""
    """Why the latest of them has none."""
    retries: int = 0
    connections: int = 0
    """Requests that may be in flight now."""
    budget: Budget = field(default_factory=Budget)
    judged: int = 0
    correct: int = 0
    """Of the judged; both stay 0 where nobody judges on the way."""
    started_s: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    @property
    def done(self) -> int:
        return self.answered + self.failed


@dataclass(slots=True)
class Patience:
    """What a worker needs to ask one sample as often as it takes."""

    provider: Provider
    limits: Limits
    progress: Progress
    account: Account
    gate: Gate
    sleep: Callable[[float], Awaitable[None]]
    clock: Callable[[], float]
    in_flight: set[asyncio.Task[None] | None] = field(default_factory=set)
    """Workers whose request may already be paid for."""
    stopped: Exception | None = None
    """Why nothing more is to be sent."""
    say: Callable[[str], None] = lambda _line: None
    """Takes a line that the user should see."""
    told: bool = False
    """Whether they know that the server makes us wait."""
    answered_at_s: float = field(init=False)
    """When the last answer came, or the run began."""

    def __post_init__(self) -> None:
        self.answered_at_s = self.clock()

    async def ask(self, sample: Sample, request: Request) -> Record | None:
        """The sample's record: its reply, or why there is none; `None` if it is not to be asked."""
        tries = _Tries(self.limits)
        budget = self.progress.budget
        most = self.account.most(request.prompt, request.max_tokens)
        tokens = most.output
        if self.limits.tpm is not None:
            tokens += self.account.asked(request.prompt)
        while True:
            # before a place is taken, so that the rates count what leaves and when
            if budget.limit is not None and not await budget.admit(most):
                return None
            try:
                done = await self._once(sample, request, tries, tokens)
            finally:
                if budget.limit is not None:
                    budget.release(most)
            if done is None or isinstance(done, Record):
                return done
            if self.stopped is not None:
                return None
            self.progress.retries += 1
            await self.sleep(done)

    async def _once(
        self, sample: Sample, request: Request, tries: _Tries, tokens: int
    ) -> Record | float | None:
        """As `ask` says, or the seconds after which to try again."""
        place = await self.gate.enter(tokens)
        worker = asyncio.current_task()
        self.in_flight.add(worker)
        try:
            if self.progress.budget.exhausted or self.stopped is not None:
                return None
            try:
                reply = await self.provider.complete(request)
            except ProviderError:
                raise
            except Exception as error:  # a mistake of ours about what servers say, and no more
                raise TransientError(redact(f"{type(error).__name__}: {error}")) from error
            latency_s = self.clock() - place.left_s
            reply = self._pay(reply, request, place, latency_s)
            return answered(sample, reply, attempts=tries.all + 1, latency_s=latency_s)
        except TransientError as error:
            used = self.account.settle_nothing(error.usage)
            self.gate.used(place, used.prompt_tokens + used.output_tokens)
            wait_s = self._wait_after(error, tries, place.left_s)
            return failed(sample, error, attempts=tries.all) if wait_s is None else wait_s
        except SampleError as error:
            self.gate.used(place, 0)
            return failed(sample, error, attempts=tries.all + 1)
        finally:
            self.in_flight.discard(worker)
            self.gate.leave()

    def _pay(self, reply: Reply, request: Request, place: Place, latency_s: float) -> Reply:
        """Settles what a reply took; the reply, without figures that cannot be true."""
        self.gate.went_well(latency_s)
        self.answered_at_s = self.clock()
        reply, used = self.account.settle(reply, request.prompt, request.max_tokens)
        self.gate.used(place, used.prompt_tokens + used.output_tokens)
        return reply

    def _wait_after(self, error: TransientError, tries: _Tries, left_s: float) -> float | None:
        """Seconds until the next attempt; `None` if there is to be none.

        Raises:
            StopRunError: the server wants to be left alone for longer than anything is tried, or
                nobody was answered for long.
        """
        wait_s = tries.wait_after(error, self.clock() - left_s)
        pause_s = error.retry_after_s or 0.0
        if pause_s > self.limits.give_up_s:
            raise StopRunError(
                f"the server asks to be left alone for {pause_s:.0f} s: {error}"
            ) from error
        silent_s = self.clock() - self.answered_at_s
        if silent_s > self.limits.silence_s + pause_s:
            raise StopRunError(
                f"nothing was answered for {silent_s / 60:.0f} minutes; the last failure: {error}"
            ) from error
        self.progress.last_failure = str(error)
        long = wait_s is not None and wait_s >= _LONG_S
        if (long or isinstance(error, NoReplyError)) and not self.told:
            self.told = True
            self.say(f"waiting {wait_s or 0:.0f} s: {error}")
        if isinstance(error, RateLimitError | OverloadedError | NoReplyError):
            self.gate.went_badly(left_s, pause_s=pause_s)
        return wait_s


@dataclass(slots=True)
class _Tries:
    """How often and how long one sample was tried."""

    limits: Limits
    counted: int = 0
    rate_limited: int = 0
    spent_s: float = 0.0

    @property
    def all(self) -> int:
        return self.counted + self.rate_limited

    def wait_after(self, error: TransientError, latency_s: float) -> float | None:
        """How long to wait after another attempt that ended so; `None` if it was the last."""
        limits = self.limits
        if isinstance(error, RateLimitError):
            self.rate_limited += 1
        else:
            self.counted += 1
        doubled_s = limits.first_wait_s * 2.0 ** min(self.all - 1, 30)
        wait_s = max(min(doubled_s, limits.longest_wait_s), error.retry_after_s or 0.0)
        self.spent_s += latency_s + wait_s
        over = (
            self.counted >= limits.attempts
            or self.rate_limited >= limits.rate_limited
            or self.spent_s > limits.give_up_s
        )
        return None if over else wait_s
