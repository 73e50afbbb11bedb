"""Pending samples to a provider to the journal.

A bounded number of workers pull from one lazy stream of samples; each reply is written as it
arrives. Nothing here knows what a right answer is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from harness.plan.cost import Account
from harness.plan.request import request_of
from harness.run.limiter import Gate
from harness.run.retry import Limits, Patience, Progress
from harness.spec import Sample
from providers.base import Provider, ProviderError, StopRunError

__all__ = ["Append", "Limits", "Progress", "run"]

Append = Callable[[dict[str, Any]], None]


async def run(
    samples: Iterator[tuple[Sample, int]],
    provider: Provider,
    append: Append,
    *,
    temperature: float = 0.0,
    seed: int = 0,
    system: str = "",
    think_tokens: int = 0,
    limits: Limits = Limits(),  # noqa: B008  frozen
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda _line: None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """Sends every sample and appends a record for each; `samples` gives each its output budget.

    The progress's budget says what may leave, and once it is spent nothing more is sent. `system`
    is sent with every prompt; `think_tokens` are what the provider lets a reply take besides its
    maximum. `say` takes lines that the user should see.

    Raises:
        StopRunError: the provider says the whole run is pointless, or nothing is answered any
            more.

    Whatever `samples` or `append` raise comes out as well. What was answered, and what was in
    flight and came soon, is written first, also where the run is cancelled; cancelled once more, it
    ends at once.
    """
    progress = progress or Progress()
    gate = Gate(
        limits.max_connections,
        first=limits.first_connections,
        rpm=limits.rpm,
        tpm=limits.tpm,
        clock=clock,
        sleep=sleep,
    )
    paced = limits.tpm is not None
    account = Account(progress.budget, system, think_tokens, paced=paced, say=say)
    patience = Patience(provider, limits, progress, account, gate, sleep, clock, say=say)
    crew = _Crew(samples, patience, append, temperature, seed)
    work = asyncio.create_task(crew.work())
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        if not crew.workers:  # not begun
            work.cancel()
        elif not work.done():
            crew.interrupt()
        told = asyncio.get_running_loop().call_later(_SHORT_S, crew.tell)
        try:
            await work
        finally:
            told.cancel()
        raise
    if (error := patience.stopped or crew.mistake) is not None:
        raise error
    return progress


_SHORT_S = 1.0
"""A wait that nobody asks about."""
_HANDFUL = 64
_HANDFUL_CHARS = 100_000
_HANDFUL_S = 0.05
"""Samples that are made at once, and the characters of their prompts, and the time, after which it
is enough.
"""


@dataclass(slots=True)
class _Crew:
    """The workers and what they share."""

    samples: Iterator[tuple[Sample, int]]
    patience: Patience
    append: Append
    temperature: float
    seed: int
    mistake: Exception | None = None
    """Why a sample could not be made."""
    told: set[str] = field(default_factory=set)
    """Errors that are said or will be raised."""
    workers: list[asyncio.Task[None]] = field(default_factory=list)
    deadline: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))

    async def work(self) -> None:
        """All samples, or as many as there are until the run is to stop."""
        made = self._by_the_handful()
        try:
            async with self.deadline, asyncio.TaskGroup() as group:
                for _ in range(self.patience.limits.max_connections):
                    self.workers.append(group.create_task(self._one_by_one(made)))
        except TimeoutError:
            pass  # who was in flight then has had its time

    def _by_the_handful(self) -> Iterator[tuple[Sample, int]]:
        """The samples, made some at a time.

        Between two requests the processor has forgotten how to make one: in a run against a fast
        server that took twice as long. What is made before one that cannot be made is asked.
        """
        made: list[tuple[Sample, int]] = []
        while self.mistake is None:
            chars = 0
            began_s = time.monotonic()
            try:
                for one in islice(self.samples, _HANDFUL):
                    made.append(one)
                    chars += len(one[0].prompt)
                    if chars >= _HANDFUL_CHARS or time.monotonic() - began_s >= _HANDFUL_S:
                        break
            except Exception as error:  # noqa: BLE001  raised when those are answered
                self.mistake = error
            if not made:
                return
            yield from made
            made.clear()

    async def _one_by_one(self, samples: Iterator[tuple[Sample, int]]) -> None:
        """One worker: sample after sample."""
        try:
            for sample, max_tokens in samples:
                request = request_of(sample, max_tokens, self.temperature, self.seed)
                record = await self.patience.ask(sample, request)
                if record is None:
                    self._send_home()
                    return
                self.append(record)
                self._count(record)
        except Exception as error:  # noqa: BLE001  raised again when all have gone home
            self._stop(error, self.patience.limits.farewell_s)

    def _count(self, record: dict[str, Any]) -> None:
        progress, hopeless = self.patience.progress, self.patience.limits.hopeless
        progress.connections = self.patience.gate.limit
        if (record.get("failure") or {}).get("kind") != "error":
            progress.answered += 1
            progress.failed_in_a_row = 0
            return
        progress.failed += 1
        progress.failed_in_a_row += 1
        progress.last_failure = record["failure"]["message"]
        if progress.failed_in_a_row >= hopeless:
            raise StopRunError(
                f"{progress.failed_in_a_row} samples in a row had no reply; the last: "
                f"{progress.last_failure}"
            )

    def interrupt(self) -> None:
        """The user wants to stop: replies that may be paid for have a little time to come."""
        if self.patience.stopped is not None:
            self.patience.say(str(self.patience.stopped))  # it is not raised any more
        self._stop(StopRunError("interrupted"), self.patience.limits.interrupted_s)

    def tell(self) -> None:
        """Says what an interrupted run waits for."""
        if number := len(self.patience.in_flight):
            self.patience.say(
                f"{number} requests are on their way and may be paid for: "
                f"{self.patience.limits.interrupted_s:.0f} s for their replies; interrupt again to "
                "leave them"
            )

    def _stop(self, error: Exception, farewell_s: float) -> None:
        """Nothing more is sent; who has nothing in flight goes home, the others may finish."""
        if self.patience.stopped is None:
            self.patience.stopped = error
            self._send_home()
        elif not isinstance(error, ProviderError) and str(error) not in self.told:
            self.patience.say(str(error))  # a reply that cannot be written
        self.told.add(str(error))
        until_s = asyncio.get_running_loop().time() + farewell_s
        if (ends_s := self.deadline.when()) is None or until_s < ends_s:
            self.deadline.reschedule(until_s)

    def _send_home(self) -> None:
        for worker in self.workers:
            if worker not in self.patience.in_flight and worker is not asyncio.current_task():
                worker.cancel()
