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

from harness.spec import Sample
from providers.base import (
    PromptOverflowError,
    Provider,
    RefusedError,
    Reply,
    Request,
    SampleError,
    StopRunError,
    TransientError,
)

Append = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard and how long to try."""

    max_connections: int = 64
    """Requests in flight at once."""
    attempts: int = 6
    """Times one sample is asked at most."""
    first_wait_s: float = 1.0
    """Pause before the second attempt; doubled before each further one."""
    longest_wait_s: float = 60.0
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
    started_s: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    @property
    def done(self) -> int:
        return self.answered + self.failed


async def run(
    samples: Iterator[tuple[Sample, int]],
    provider: Provider,
    append: Append,
    *,
    temperature: float = 0.0,
    seed: int = 0,
    limits: Limits = Limits(),
    progress: Progress | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Progress:
    """Sends every sample and appends a record for each; `samples` gives each its output budget.

    Raises:
        StopRunError: the provider says the whole run is pointless, or nothing is answered any
            more. What was answered is written.
    """
    progress = progress or Progress()
    patience = _Patience(provider, limits, progress, sleep)

    async def work() -> None:
        for sample, max_tokens in samples:
            request = Request(
                prompt=sample.prompt,
                max_tokens=max_tokens,
                temperature=temperature,
                seed=seed if temperature else None,
                sample_id=sample.id,
            )
            record = await patience.ask(sample, request)
            append(record)
            if (record.get("failure") or {}).get("kind") == "error":
                progress.failed += 1
                progress.failed_in_a_row += 1
                progress.last_failure = record["failure"]["message"]
                if progress.failed_in_a_row >= limits.hopeless:
                    raise StopRunError(
                        f"{progress.failed_in_a_row} samples in a row had no reply; the last: "
                        f"{progress.last_failure}"
                    )
            else:
                progress.answered += 1
                progress.failed_in_a_row = 0

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(limits.max_connections):
                group.create_task(work())
    except* BaseException as errors:  # noqa: BLE001  # raised again, alone
        raise _first(errors) from None
    return progress


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """One exception of a group; the workers fail alike, so one says enough."""
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


@dataclass(frozen=True, slots=True)
class _Patience:
    """What a worker needs to ask one sample as often as it takes."""

    provider: Provider
    limits: Limits
    progress: Progress
    sleep: Callable[[float], Awaitable[None]]

    async def ask(self, sample: Sample, request: Request) -> dict[str, Any]:
        """The sample's record: its reply, or why there is none."""
        wait_s = self.limits.first_wait_s
        attempt = 0
        while True:
            attempt += 1
            started_s = time.perf_counter()
            try:
                reply = await self.provider.complete(request)
            except TransientError as error:
                if attempt >= self.limits.attempts:
                    return _record(sample, attempt) | _failure("error", error)
                self.progress.retries += 1
                wanted_s = max(wait_s, error.retry_after_s or 0.0)
                await self.sleep(min(wanted_s, self.limits.longest_wait_s))
                wait_s *= 2
            except PromptOverflowError as error:
                return _record(sample, attempt) | _failure("overflow", error)
            except RefusedError as error:
                return _record(sample, attempt) | _failure("refused", error)
            except SampleError as error:
                return _record(sample, attempt) | _failure("error", error)
            else:
                latency_s = time.perf_counter() - started_s
                return _record(sample, attempt) | _answer(reply, latency_s)


def _record(sample: Sample, attempts: int) -> dict[str, Any]:
    return {
        "id": sample.id,
        "condition": sample.condition,
        "length": sample.length,
        "index": sample.index,
        "target": sample.target,
        "prompt_hash": sample.prompt_hash,
        "chars": len(sample.prompt),
        "attempts": attempts,
        "at": round(time.time(), 3),
    }


def _answer(reply: Reply, latency_s: float) -> dict[str, Any]:
    usage = reply.usage
    return {
        "reply": reply.text,
        "finish_reason": reply.finish_reason,
        "refusal": reply.refusal,
        "reasoning": reply.reasoning,
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "model": reply.model,
        "latency_s": round(latency_s, 4),
    }


def _failure(kind: str, error: Exception) -> dict[str, Any]:
    return {"failure": {"kind": kind, "type": type(error).__name__, "message": str(error)}}
