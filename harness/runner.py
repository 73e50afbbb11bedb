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
            more.

    Whatever `samples` or `append` raise comes out as well. What was answered, and what was in
    flight and came soon, is written first.
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
    crew = _Crew(_by_the_handful(samples), patience, append, temperature, seed)
    try:
        async with asyncio.timeout(None) as crew.deadline, asyncio.TaskGroup() as group:
            for _ in range(limits.max_connections):
                crew.workers.append(group.create_task(crew.work()))
    except TimeoutError:
        pass  # who was in flight then has had its time
    if patience.stopped is not None:
        raise patience.stopped
    return progress


_HANDFUL = 64
_HANDFUL_CHARS = 100_000
"""Samples that are made at once, and the characters of their prompts after which it is enough."""


def _by_the_handful(samples: Iterator[tuple[Sample, int]]) -> Iterator[tuple[Sample, int]]:
    """The same, made some at a time.

    Between two requests the processor has forgotten how to make one: in a run against a fast
    server that took twice as long. What is made before a sample that cannot be made is asked.
    """
    failed: Exception | None = None
    while failed is None:
        made: list[tuple[Sample, int]] = []
        chars = 0
        try:
            for one in islice(samples, _HANDFUL):
                made.append(one)
                chars += len(one[0].prompt)
                if chars >= _HANDFUL_CHARS:
                    break
        except Exception as error:  # noqa: BLE001  raised below
            failed = error
        if not made and failed is None:
            return
        yield from made
    raise failed


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
        except Exception as error:  # noqa: BLE001  raised again when all have gone home
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

    def _stop(self, error: Exception) -> None:
        """Nothing more is sent; who has nothing in flight goes home, the others may finish."""
        if self.patience.stopped is not None:
            return
        self.patience.stopped = error
        farewell_s = self.patience.limits.farewell_s
        self.deadline.reschedule(asyncio.get_running_loop().time() + farewell_s)
        for worker in self.workers:
            if worker not in self.patience.in_flight and worker is not asyncio.current_task():
                worker.cancel()
