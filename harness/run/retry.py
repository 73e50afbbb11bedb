"""Asks one sample, with retries and waits, and makes its record for the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeGuard

from msgspec.structs import replace

from eyechart.harness.journal.record import Record
from eyechart.harness.plan.cost import UsageMeter
from eyechart.harness.run.conversation import Conversation
from eyechart.harness.run.limiter import AdaptiveLimiter, Permit
from eyechart.harness.run.limits import RunLimits, too_long_a_pause
from eyechart.harness.run.progress import Progress
from eyechart.harness.run.records import after_cut, answered, failed
from eyechart.harness.run.room import Room
from eyechart.harness.spec import Sample
from eyechart.providers.base import (
    BadRequestError,
    ConnectError,
    Likelihood,
    OverloadedError,
    PromptOverflowError,
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
_TOO_MUCH = (BadRequestError.__name__, PromptOverflowError.__name__)
"""What servers answer to a request for more tokens than they give."""
_MOST_OF_A_MEANING = 3
"""Attempts after which an error by whose words the request is at fault is taken at its word."""
_LONG_WAIT_S = 10.0
"""Shortest wait, in seconds, that the user is told about."""
_SILENT_S = 20.0
"""Seconds without an answer after which the user of a task in turns is told so."""


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
    unfinished: list[Record] = field(default_factory=list)
    """Samples in turns that the run left between two of them."""
    stopped: Exception | None = None
    """Why no further request may be sent; `None` while the run goes on."""
    say: Callable[[str], None] = lambda _line: None
    """Gets a line for the user."""
    has_said_waiting: bool = False
    """Whether the user was told that the server makes the run wait."""
    has_said_silence: bool = False
    """Whether the user was told that nothing was answered for `_SILENT_S`."""
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

    room: Room = field(default_factory=lambda: Room(fixed=True))
    """How many tokens replies get."""
    scout: str | None = None
    """Id of the sample that is tried again while nothing was answered."""
    scouted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when something was answered, or the scout is given up."""
    has_reply: bool = field(init=False)
    """Whether the server has ever sent a reply."""

    def __post_init__(self) -> None:
        self.answered_at_s = self.clock()
        self.is_heard = self.has_reply = self.progress.answered > 0

    async def ask(self, sample: Sample, request: Request) -> Record | None:
        """The record of the sample; `None` if the run stopped before the sample was asked. A sample
        whose reply was cut off is asked again with more room, see `Room`.
        """
        if sample.in_turns:
            return await self._converse(sample, request)
        record, _ = await self._ask_until_whole(sample, request)
        return record

    async def _converse(self, sample: Sample, request: Request) -> Record | None:
        """The record of a sample in turns. Each turn is a request like any other; the answered ones
        are kept in `unfinished` where the run stops between them.
        """
        talk = Conversation(sample)
        try:
            while True:
                record, request = await self._ask_until_whole(sample, talk.next(request))
                if record is None or talk.is_ended_by(record):
                    return None if record is None else talk.whole(record)
        finally:
            if talk.is_open:
                self.unfinished.append(talk.unfinished())

    async def _ask_until_whole(
        self, sample: Sample, request: Request
    ) -> tuple[Record | None, Request]:
        """The record of a prompt, as `ask` says, and the request that it came from."""
        try:
            return await self._ask_with_room(sample, request)
        finally:
            self.room.end(sample.id)

    async def _ask_with_room(
        self, sample: Sample, request: Request
    ) -> tuple[Record | None, Request]:
        room, answer = self.room, request.max_tokens - request.think_tokens
        record = await self._ask(sample, request)
        if _is_refused(record) and request.think_tokens and not room.fixed:
            smaller = replace(request, max_tokens=answer, think_tokens=0)
            again = await self._ask(sample, smaller)
            if again is not None and again.failure is None:  # so the tokens were the reason
                self._note_refusal(request.max_tokens, record)
                record, request = again, smaller
        while record is not None and self._lacks_room(record, request.text):
            while (ended := room.before(record, request.max_tokens)) is not None:
                await ended.wait()
            if (tokens := room.more(record, request.max_tokens)) is None:
                break
            more = tokens - request.max_tokens
            wider = replace(request, max_tokens=tokens, think_tokens=request.think_tokens + more)
            again = await self._ask(sample, wider)
            if again is None:  # a reply that was cut off is the result where the budget ends
                return (record if self.stopped is None else None), request
            if again.failure is None:
                record, request = after_cut(record, again), wider
            elif _is_refused(again):
                self._note_refusal(tokens, again)
            else:
                break
        if record is not None:
            room.note(record, request.max_tokens)
        return record, request

    def _lacks_room(self, record: Record, prompt: str) -> bool:
        """Whether the reply was cut off, other than in a loop; tells the user what loops cost."""
        if not record.is_cut_off:
            return False
        if not self.room.loops(record, prompt):
            return True
        if line := self.room.loops_said:
            self.say(line)
        return False

    def _note_refusal(self, tokens: int, refused: Record) -> None:
        """The server did not take a request for this many tokens; tells the user once."""
        if not self.room.has_refusal:
            why = "" if refused.failure is None else refused.failure.message
            self.say(f"the server does not take {tokens:,} tokens for a reply: {why}")
        self.room.refused(tokens)

    async def _ask(self, sample: Sample, request: Request) -> Record | None:
        """The record of one request; `None` if the run stopped before it was sent."""
        state = RetryState(self.limits)
        budget = self.progress.budget
        tokens, max_usage = request.max_tokens, None
        if budget.limit is not None:
            max_usage = self.meter.max_usage(request.text, tokens)
        if self.limits.tpm is not None:
            tokens += self.meter.asked(request.text)
        while True:
            # before a permit is acquired, so that the rates count what is sent and when
            if max_usage is not None and not await budget.admit(max_usage):
                return None
            try:
                result = await self._attempt(sample, request, state, tokens)
            finally:
                if max_usage is not None:
                    budget.release(max_usage)
            if result is None or isinstance(result, Record):
                return result
            if self.stopped is not None:
                return None
            if not await self._is_worth_trying(sample, result.error, state):
                return failed(sample, _meaning(result.error), attempts=state.attempts)
            self.progress.retries += 1
            self.progress.retried += state.attempts == 1
            await self._wait(self.sleep(result.wait_s))

    async def _is_worth_trying(
        self, sample: Sample, error: TransientError, state: RetryState
    ) -> bool:
        """Whether a sample is tried again. Before anything was answered one sample is, and the
        others wait for its end, since what it meets they meet too.
        """
        most = self.limits.unheard_attempts
        if most is None or self.has_reply:
            return True
        self.scout = self.scout or sample.id
        if self.scout == sample.id:
            if state.failed < most or isinstance(error, OverloadedError):
                return True
            self.scouted.set()
        else:
            await self._wait(self.scouted.wait())
        return self.has_reply

    async def _wait(self, until: Awaitable[object]) -> None:
        self.waiting += 1
        self._note_idle()
        try:
            await until
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
    ) -> Record | _Again | None:
        """The record, see `ask`, or when the sample is asked again."""
        permit = await self.limiter.acquire(tokens)
        worker = asyncio.current_task()
        self.in_flight.add(worker)
        if self.waiting:
            self._note_idle()
        try:
            if self.progress.budget.exhausted or self.stopped is not None:
                return None
            try:
                reply = await self._sent(request, in_turns=sample.in_turns)
            except ProviderError:
                raise
            except Exception as error:  # our code did not expect what the server sent
                raise TransientError(redact(f"{type(error).__name__}: {error}")) from error
            latency_s = self.clock() - permit.sent_s
            reply = self._settle(reply, request, permit, latency_s)
            return answered(
                sample,
                reply,
                attempts=state.attempts + 1,
                latency_s=latency_s,
                max_tokens=request.max_tokens,
                seed=request.seed,
            )
        except TransientError as error:
            used = self.meter.settle_nothing(error.usage)
            permit.settle(used.prompt_tokens + used.output_tokens)
            wait_s = self._wait_after(error, state, permit)
            if wait_s is not None:
                return _Again(wait_s, error)
            if sample.id == self.scout:
                self.scouted.set()
            return failed(sample, _meaning(error), attempts=state.attempts)
        except SampleError as error:
            self.is_heard = True
            permit.settle(0)
            return failed(sample, error, attempts=state.attempts + 1)
        finally:
            self.in_flight.discard(worker)
            if self.waiting:
                self._note_idle()
            permit.release()

    async def _sent(self, request: Request, *, in_turns: bool) -> Reply:
        """The reply to a request, or the probabilities of its options."""
        if request.options:
            assert isinstance(self.provider, Likelihood)  # as its descriptor says
            return await self.provider.score(request)
        if not in_turns:
            return await self.provider.complete(request)
        notice = asyncio.get_running_loop().call_later(_SILENT_S, self._say_silence)
        try:
            return await self.provider.complete(request)
        finally:
            notice.cancel()

    def _say_silence(self) -> None:
        """Tells the user once that the server has a request and does not answer: it may hang, and
        the count of samples shows nothing of it, since it stands still while their turns are
        answered too.
        """
        silent_s = self.clock() - self.answered_at_s
        if silent_s < _SILENT_S or self.has_said_silence or self.has_said_waiting:
            return
        self.has_said_silence = True
        self.say(
            f"nothing was answered for {silent_s:.0f} s, with {len(self.in_flight)} in flight: the "
            "model is slow, or the server hangs"
        )

    def _say_unknown(self, word: str) -> None:
        """Tells the user once of a server's word for why a reply ended that is not known."""
        if word not in self.progress.unknown_words:
            self.progress.unknown_words.add(word)
            self.say(
                f"the server ended a reply with {word!r}, a word that Eyechart does not know; of "
                "such replies a wrong answer counts only after the answer phrase"
            )

    def _settle(self, reply: Reply, request: Request, permit: Permit, latency_s: float) -> Reply:
        """Charges a reply; returns it without token counts that cannot be true."""
        permit.on_success(latency_s)
        self.progress.sent = reply.sent
        self.answered_at_s = self.clock()
        self.is_heard = self.has_reply = True
        self.scouted.set()
        if reply.finish_reason == "other" and reply.finish_word:
            self._say_unknown(reply.finish_word)
        reply, used = self.meter.settle(reply, request.text, request.max_tokens)
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
        others_answered = -1 < state.answered < answered
        wait_s = state.wait_after(
            error, now_s - permit.sent_s, is_outage=is_outage, others_answered=others_answered
        )
        state.answered = answered
        pause_s = error.retry_after_s or 0.0
        if pause_s > self.limits.max_elapsed_s:
            raise too_long_a_pause("the server", error) from error
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
        for; raises `StopRunError` if no time is left.
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


def _meaning(error: TransientError) -> ProviderError:
    """The error of a request that is not tried again."""
    return error if error.means is None else error.means


def _is_refused(record: Record | None) -> TypeGuard[Record]:
    """Whether the server refused the request, perhaps because of its tokens."""
    return record is not None and record.failure is not None and record.failure.type in _TOO_MUCH


@dataclass(frozen=True, slots=True)
class _Again:
    """An attempt that failed, and how many seconds later the next one may follow."""

    wait_s: float
    error: TransientError


@dataclass(slots=True)
class RetryState:
    """The number and duration of the attempts at one sample."""

    limits: RunLimits
    failed: int = 0
    """Attempts that failed for another reason than a rate limit."""
    rate_limited: int = 0
    """Attempts that the server refused by a rate limit, or by its load while it answered others."""
    while_others: int = 0
    """Attempts that failed while other samples were answered."""
    waived: int = 0
    """Attempts that failed while the server was away. They do not count."""
    answered: int = -1
    """Samples of the run that had been answered before the last attempt failed."""
    elapsed_s: float = 0.0

    @property
    def attempts(self) -> int:
        return self.failed + self.rate_limited + self.waived

    def wait_after(
        self,
        error: TransientError,
        latency_s: float,
        *,
        is_outage: bool = False,
        others_answered: bool = False,
    ) -> float | None:
        """Seconds to wait after an attempt that ended with `error`; `None` if it was the last. In
        an outage of the server the attempt does not count. The wait doubles, and grows only by the
        first wait where other samples were answered since the last attempt.
        """
        limits = self.limits
        is_full = others_answered and isinstance(error, OverloadedError)
        if is_outage:
            self.waived += 1
        elif is_full or isinstance(error, RateLimitError):
            self.rate_limited += 1
        else:
            self.failed += 1
        self.while_others += others_answered
        doublings = self.attempts - self.while_others - 1
        has_wish = error.retry_after_s is not None
        if isinstance(error, RateLimitError) and has_wish:  # the server knows best
            doublings = max(0, doublings - _BELIEVED)
        waits = 2.0 ** min(doublings, 30) + self.while_others
        grown_s = limits.initial_backoff_s * waits
        wait_s = max(min(grown_s, limits.max_backoff_s), error.retry_after_s or 0.0)
        self.elapsed_s += latency_s + wait_s
        is_last = (
            self.failed >= limits.max_attempts
            or (error.means is not None and self.failed >= _MOST_OF_A_MEANING)
            or self.rate_limited >= limits.max_rate_limited
            or self.elapsed_s > limits.max_elapsed_s
        )
        return None if is_last else wait_s
