"""What the runs of one command share while their batches are under way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from harness.journal.record import Warn
from harness.plan.cost import Budget
from harness.run.batch.files import FileLimits
from providers.base import BatchForm, BatchService, StopRunError, TransientError
from providers.catalog.model_facts import ModelFacts

FIRST_POLL_S, LONGEST_POLL_S = 1.0, 60.0
"""Between two looks at the same batch: at first, and once it has taken long."""
SILENCE_S = 3600.0
"""Longest that a service may fail to answer; the batches go on without us."""
_Result = TypeVar("_Result")
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Clocks and how to wait."""

    sleep: Sleep = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    """Seconds of the epoch."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What all runs of a command share: who answers, what it costs, whom to tell."""

    service: BatchService
    form: BatchForm
    facts: ModelFacts
    budget: Budget
    say: Warn
    warn: Warn
    limits: FileLimits = field(default_factory=FileLimits)
    waiting: Waiting = field(default_factory=Waiting)

    async def ask(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """What the service says, asked again while it fails in ways that pass.

        Raises:
            TransientError: for an hour it did nothing else.
            StopRunError: it wants to be left alone for longer than that.
            ProviderError: it fails in another way.
        """
        began_s = self.waiting.clock()
        wait_s = FIRST_POLL_S
        while True:
            try:
                return await call()
            except TransientError as error:
                if self.waiting.clock() - began_s > SILENCE_S:
                    raise
                pause_s = max(wait_s, error.retry_after_s or 0.0)
                if pause_s > SILENCE_S:
                    raise StopRunError(
                        f"{self.service.address} asks to be left alone for {pause_s:.0f} s: {error}"
                    ) from error
                if wait_s == FIRST_POLL_S:
                    self.warn(f"{self.service.address} is asked again in {pause_s:.0f} s: {error}")
                await self.waiting.sleep(pause_s)
                wait_s = min(2 * wait_s, LONGEST_POLL_S)
