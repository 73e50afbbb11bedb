"""Pending samples to a provider to the journal.

A bounded number of workers pull from one lazy stream of samples; each reply is written as it
arrives. Nothing here knows what a right answer is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.pace import Gate
from harness.patience import Limits, Patience, Progress
from harness.spec import Sample, condition_label
from providers.base import Provider, Request, StopRunError

__all__ = ["Append", "Limits", "Progress", "request_of", "run"]

Append = Callable[[dict[str, Any]], None]


async def run(
    samples: Iterator[tuple[Sample, int]],
    provider: Provider,
    append: Append,
    *,
    temperature: float = 0.0,
    seed: int = 0,
    limits: Limits = Limits(),  # noqa: B008  frozen
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda _line: None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """Sends every sample and appends a record for each; `samples` gives each its output budget.

    Once the progress's meter says that the budget is spent, nothing more is sent. `say` takes
    lines that the user should see.

    Raises:
        StopRunError: the provider says the whole run is pointless, or nothing is answered any
            more. What was answered, and what was in flight and came soon, is written.
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
    patience = Patience(provider, limits, progress, gate, sleep, clock, say=say)
    crew = _Crew(samples, patience, append, temperature, seed)
    try:
        async with asyncio.timeout(None) as crew.deadline, asyncio.TaskGroup() as group:
            for _ in range(limits.max_connections):
                crew.workers.append(group.create_task(crew.work()))
    except* TimeoutError as errors:
        if patience.stopped is None:
            raise _first(errors) from None
    except* BaseException as errors:  # noqa: BLE001  # raised again, alone
        raise _first(errors) from None
    if patience.stopped is not None:
        raise patience.stopped
    return progress


def request_of(sample: Sample, max_tokens: int, temperature: float, seed: int) -> Request:
    """What a provider is asked for `sample`."""
    return Request(
        prompt=sample.prompt,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed if temperature else None,
        sample_id=sample.id,
        prefix=f"{condition_label(sample.condition)}|{sample.index}",
    )


@dataclass(slots=True)
class _Crew:
    """The workers and what they share."""

    samples: Iterator[tuple[Sample, int]]
    patience: Patience
    append: Append
    temperature: float
    seed: int
    workers: list[asyncio.Task[None]] = field(default_factory=list)
    deadline: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))

    async def work(self) -> None:
        """One worker: sample after sample, until there are none or the run is to stop."""
        try:
            for sample, max_tokens in self.samples:
                request = request_of(sample, max_tokens, self.temperature, self.seed)
                record = await self.patience.ask(sample, request)
                if record is None:
                    return
                self.append(record)
                self._count(record)
        except StopRunError as error:
            self._stop(error)

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

    def _stop(self, error: StopRunError) -> None:
        """Nothing more is sent; who has nothing in flight goes home, the others may finish."""
        if self.patience.stopped is not None:
            return
        self.patience.stopped = error
        farewell_s = self.patience.limits.farewell_s
        self.deadline.reschedule(asyncio.get_running_loop().time() + farewell_s)
        for worker in self.workers:
            if worker not in self.patience.in_flight and worker is not asyncio.current_task():
                worker.cancel()


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """One exception of a group; the workers fail alike, so one says enough."""
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
