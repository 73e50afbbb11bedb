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

from harness.money import Meter, estimate_tokens
from harness.pace import Gate
from harness.spec import Sample, condition_label
from providers.base import (
    NoReplyError,
    OverloadedError,
    PromptOverflowError,
    Provider,
    RateLimitError,
    RefusedError,
    Reply,
    Request,
    SampleError,
    StopRunError,
    TransientError,
    Usage,
)

Append = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard and how long to try."""

    max_connections: int = 64
    """Requests in flight at once, at most."""
    rpm: float | None = None
    """Requests a minute, at most."""
    tpm: float | None = None
    """Tokens a minute, of prompts and replies, at most."""
    attempts: int = 6
    """Times one sample is asked at most; being told to come later (429) does not count."""
    rate_limited: int = 100
    """Times it may be told so."""
    give_up_s: float = 900.0
    """Longest that one sample is tried, waits included."""
    first_wait_s: float = 1.0
    """Pause before the second attempt; doubled before each further one."""
    longest_wait_s: float = 60.0
    """The longest of these; a server that asks for more is given it."""
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
    meter: Meter = field(default_factory=Meter)
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
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """Sends every sample and appends a record for each; `samples` gives each its output budget.

    Once the progress's meter says that the budget is spent, nothing more is sent.

    Raises:
        StopRunError: the provider says the whole run is pointless, or nothing is answered any
            more. What was answered is written.
    """
    progress = progress or Progress()
    gate = Gate(limits.max_connections, rpm=limits.rpm, tpm=limits.tpm, clock=clock, sleep=sleep)
    patience = _Patience(provider, limits, progress, gate, sleep, clock)

    async def work() -> None:
        for sample, max_tokens in samples:
            request = Request(
                prompt=sample.prompt,
                max_tokens=max_tokens,
                temperature=temperature,
                seed=seed if temperature else None,
                sample_id=sample.id,
                prefix=f"{condition_label(sample.condition)}|{sample.index}",
            )
            record = await patience.ask(sample, request)
            if record is None:
                return
            append(record)
            progress.connections = gate.limit
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
    gate: Gate
    sleep: Callable[[float], Awaitable[None]]
    clock: Callable[[], float]

    async def ask(self, sample: Sample, request: Request) -> dict[str, Any] | None:
        """The sample's record: its reply, or why there is none; `None` if there is no money."""
        meter, tries = self.progress.meter, _Tries(self.limits)
        asked = said = 0
        if meter.prices is not None or self.limits.tpm is not None:
            asked, said = estimate_tokens(request.prompt), request.max_tokens
        while True:
            left_s = await self.gate.enter(asked + said)
            try:
                if meter.exhausted:
                    return None
                reply = await self.provider.complete(request)
                latency_s = self.clock() - left_s
            except TransientError as error:
                latency_s = self.clock() - left_s
                wait_s = tries.wait_after(error, latency_s)
                if isinstance(error, RateLimitError | OverloadedError | NoReplyError):
                    self.gate.went_badly(left_s, pause_s=error.retry_after_s or 0.0)
                if wait_s is None:
                    return _record(sample, tries.all) | _failure("error", error)
                self.progress.retries += 1
            except SampleError as error:
                kind = "overflow" if isinstance(error, PromptOverflowError) else "error"
                kind = "refused" if isinstance(error, RefusedError) else kind
                return _record(sample, tries.all + 1) | _failure(kind, error)
            else:
                self.gate.went_well(latency_s)
                usage = reply.usage or Usage(asked, estimate_tokens(reply.text) if asked else 0)
                self.gate.used(asked + said, usage.prompt_tokens + usage.output_tokens)
                meter.charge(usage)
                return _record(sample, tries.all + 1) | _answer(reply, latency_s)
            finally:
                self.gate.leave()
            await self.sleep(wait_s)


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
    answer: dict[str, Any] = {
        "reply": reply.text,
        "finish_reason": reply.finish_reason,
        "refusal": reply.refusal,
        "reasoning": reply.reasoning,
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "model": reply.model,
        "latency_s": round(latency_s, 4),
    }
    if reply.logprobs is not None:
        answer["logprobs"] = reply.logprobs
    return answer


def overflow(sample: Sample, why: str) -> dict[str, Any]:
    """The record of a sample that is known not to fit the model's window and is not sent."""
    return _record(sample, 0) | _failure("overflow", PromptOverflowError(why))


def _failure(kind: str, error: Exception) -> dict[str, Any]:
    return {"failure": {"kind": kind, "type": type(error).__name__, "message": str(error)}}
