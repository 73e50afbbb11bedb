"""The state that the runs of one command share while their batches are under way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from eyechart.harness.journal.record import Warn
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.batch.files import FileLimits
from eyechart.harness.run.limits import too_long_a_pause
from eyechart.providers.base import TransientError
from eyechart.providers.batches import BatchForm, BatchService

FIRST_POLL_S, LONGEST_POLL_S = 1.0, 60.0
"""Seconds between two requests for the state of a batch: at first, and after a long time."""
STALL_TIMEOUT_S = 3600.0
"""Seconds for which a service may fail to answer. Its batches continue meanwhile."""
_Result = TypeVar("_Result")
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks, and the function that waits; tests replace them."""

    sleep: Sleep = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class BatchContext:
    """The service, the budget and the functions for messages, shared by the runs of a command."""

    service: BatchService
    form: BatchForm
    budget: Budget
    say: Warn
    warn: Warn
    limits: FileLimits = field(default_factory=FileLimits)
    clocks: Clocks = field(default_factory=Clocks)

    async def ask(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of `call`; it is called again while the service fails with a `TransientError`.

        Raises:
            TransientError: the service has failed for an hour.
            StopRunError: the service asks for a pause of more than an hour.
            ProviderError: the service failed in another way.
        """
        began_s = self.clocks.clock()
        wait_s = FIRST_POLL_S
        while True:
            try:
                return await call()
            except TransientError as error:
                if self.clocks.clock() - began_s > STALL_TIMEOUT_S:
                    raise
                pause_s = max(wait_s, error.retry_after_s or 0.0)
                if pause_s > STALL_TIMEOUT_S:
                    raise too_long_a_pause(self.service.address, error) from error
                if wait_s == FIRST_POLL_S:
                    self.warn(f"{self.service.address} is asked again in {pause_s:.0f} s: {error}")
                await self.clocks.sleep(pause_s)
                wait_s = min(2 * wait_s, LONGEST_POLL_S)
