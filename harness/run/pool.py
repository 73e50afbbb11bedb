"""Sends pending samples to a provider, and their replies to the journal.

A bounded number of workers pull from one lazy stream of samples; each reply is written as it
arrives. Replies are not judged here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from eyechart.harness.journal.record import Record
from eyechart.harness.plan.cost import UsageMeter
from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.request import request_of
from eyechart.harness.run.limiter import AdaptiveLimiter, RateLimiter
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.progress import Progress
from eyechart.harness.run.retry import RetryingClient
from eyechart.harness.run.room import Room
from eyechart.harness.spec import Sample
from eyechart.providers.base import Api, Provider, ProviderError, StopRunError

Append = Callable[[Record], None]


async def ask_all(
    samples: Iterator[tuple[Sample, int]],
    provider: Provider,
    append: Append,
    *,
    temperature: float | None = 0.0,
    seed: int = 0,
    meter: UsageMeter | None = None,
    room: Room | None = None,
    choice: ForcedChoice | None = None,
    api: Api | None = "chat",
    limits: RunLimits = RunLimits(),  # noqa: B008  frozen
    rates: RateLimiter | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda _line: None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """Sends every sample and appends a record for each; `samples` gives each its output budget.

    `progress.budget` decides which requests may be sent; when it is spent, no more are sent.
    `meter` charges `progress.budget`. Without `room` a sample that was cut off is not asked again.
    With `choice` the probabilities of its options are asked for in place of a reply. `rates`
    continue from an earlier call with the same limits. `say` gets lines for the user.

    Raises:
        StopRunError: the provider says that the run cannot go on, or nothing is answered any more.

    An error of `samples` or `append` is raised as well. Before any error is raised, the replies
    that have come are written, and requests in flight get a short time to finish. The same happens
    if the run is cancelled; a second cancellation ends it at once.
    """
    progress = progress or Progress()
    rates = rates or RateLimiter(rpm=limits.rpm, tpm=limits.tpm, clock=clock, sleep=sleep)
    limiter = AdaptiveLimiter(
        limits.max_connections, rates, first=limits.first_connections, clock=clock
    )
    meter = meter or UsageMeter(progress.budget, is_counting=limits.tpm is not None, say=say)
    client = RetryingClient(provider, limits, progress, meter, limiter, sleep, clock, say=say)
    client.room = room or client.room
    pool = WorkerPool(samples, client, append, temperature, seed, choice, api)
    work = asyncio.create_task(pool.work())
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        if not pool.workers:  # the pool has not begun
            work.cancel()
        elif not work.done():
            pool.interrupt()
        notice = asyncio.get_running_loop().call_later(_NOTICE_AFTER_S, pool.say_what_is_in_flight)
        try:
            await work
        finally:
            notice.cancel()
        raise
    if (error := client.stopped or pool.sample_error) is not None:
        raise error
    return progress


_NOTICE_AFTER_S = 1.0
"""Seconds for which an interrupted run waits for replies before it tells the user."""
_CHUNK = 64
_CHUNK_CHARS = 100_000
_CHUNK_S = 0.05
"""Limits of a chunk of samples made together: samples, characters of prompts, seconds."""


@dataclass(slots=True)
class WorkerPool:
    """The workers of a run, and their shared state."""

    samples: Iterator[tuple[Sample, int]]
    client: RetryingClient
    append: Append
    temperature: float | None
    seed: int
    choice: ForcedChoice | None = None
    api: Api | None = "chat"
    sample_error: Exception | None = None
    """The error of a sample that could not be made."""
    reported: set[str] = field(default_factory=set)
    """Messages of errors that the user has seen, or that will be raised."""
    workers: list[asyncio.Task[None]] = field(default_factory=list)
    deadline: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))

    async def work(self) -> None:
        """Asks all samples, or those that are sent until the run stops."""
        samples = self._in_chunks()
        try:
            async with self.deadline, asyncio.TaskGroup() as group:
                for _ in range(self.client.limits.max_connections):
                    self.workers.append(group.create_task(self._one_by_one(samples)))
        except TimeoutError:
            pass  # requests that were in flight when the run stopped had their time
        finally:
            for record in self.client.unfinished:
                self.append(record)

    def _in_chunks(self) -> Iterator[tuple[Sample, int]]:
        """The samples, made a chunk at a time.

        A sample made between two requests takes twice as long, since the processor's caches have
        lost the code that makes it. If a sample cannot be made, those before it are still asked.
        """
        chunk: list[tuple[Sample, int]] = []
        while self.sample_error is None:
            chars = 0
            began_s = time.monotonic()
            try:
                for pair in islice(self.samples, _CHUNK):
                    chunk.append(pair)
                    chars += len(pair[0].prompt)
                    if chars >= _CHUNK_CHARS or time.monotonic() - began_s >= _CHUNK_S:
                        break
            except Exception as error:  # noqa: BLE001  raised once the chunk is answered
                self.sample_error = error
            if not chunk:
                return
            yield from chunk
            chunk.clear()

    async def _one_by_one(self, samples: Iterator[tuple[Sample, int]]) -> None:
        """One worker: sample after sample."""
        try:
            for sample, max_tokens in samples:
                tokens = self.client.room.tokens(sample.prompt, max_tokens)
                request = request_of(
                    sample, tokens, self.temperature, self.seed, self.choice, api=self.api
                )
                record = await self.client.ask(sample, request)
                if record is None:
                    self._cancel_waiting()
                    return
                self._take(record)
                await asyncio.sleep(0)  # else a model that answers at once is not interrupted
        except Exception as error:  # noqa: BLE001  raised again when all workers have ended
            self._stop(error, self.client.limits.drain_timeout_s)

    def _take(self, record: Record) -> None:
        progress = self.client.progress
        progress.take(record, self.append)
        progress.connections = self.client.limiter.limit
        if progress.failed_in_a_row >= self.client.limits.max_consecutive_failures:
            raise StopRunError(
                f"{progress.failed_in_a_row} samples in a row had no reply; the last: "
                f"{progress.last_failure}"
            )

    def interrupt(self) -> None:
        """Stops for the user. Requests in flight may be paid for, so they get a little time."""
        if self.client.stopped is not None:
            self.client.say(str(self.client.stopped))  # it is not raised any more
        self._stop(StopRunError("interrupted"), self.client.limits.interrupt_drain_s)

    def say_what_is_in_flight(self) -> None:
        """Tells the user what an interrupted run waits for."""
        if number := len(self.client.in_flight):
            drain_s = self.client.limits.interrupt_drain_s
            self.client.say(
                f"requests in flight: {number}. They may be paid for: waiting up to {drain_s:.0f} "
                "s for their replies; interrupt again to stop at once"
            )

    def _stop(self, error: Exception, drain_s: float) -> None:
        """Sends nothing more. Workers without a request in flight end, the others may finish."""
        if self.client.stopped is None:
            self.client.stopped = error
            self._cancel_waiting()
        elif not isinstance(error, ProviderError) and str(error) not in self.reported:
            self.client.say(str(error))  # a reply that cannot be written
        self.reported.add(str(error))
        until_s = asyncio.get_running_loop().time() + drain_s
        if (ends_s := self.deadline.when()) is None or until_s < ends_s:
            self.deadline.reschedule(until_s)

    def _cancel_waiting(self) -> None:
        """Ends the workers that have no request in flight."""
        for worker in self.workers:
            if worker not in self.client.in_flight and worker is not asyncio.current_task():
                worker.cancel()
