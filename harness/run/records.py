"""Makes the journal's record of a sample."""

from __future__ import annotations

import time

from eyechart.harness.journal.record import Failure, FailureKind, Option, Record, record_of
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec import Sample
from eyechart.providers.base import PromptOverflowError, ProviderError, RefusedError, Reply

_DIGITS = 6
"""Decimals of a log-probability; single precision has no more."""


def answered(
    sample: Sample,
    reply: Reply,
    *,
    attempts: int,
    latency_s: float | None,
    batch: str | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
) -> Record:
    """The record of a reply; `latency_s` is `None` for one from a batch with the id `batch`.
    `max_tokens` and `seed` are those of the request.
    """
    record = _record(sample, attempts, reply=reply.text)
    usage = reply.usage
    record.finish_reason = reply.finish_reason
    is_filtered = reply.finish_reason == "content_filter"
    record.refusal = reply.refusal or (reply.finish_word if is_filtered else None)
    record.reasoning = reply.reasoning
    record.model = reply.model
    if usage is not None:
        record.prompt_tokens, record.output_tokens = usage.prompt_tokens, usage.output_tokens
        record.cache_read_tokens = usage.cache_read_tokens
        record.cache_write_tokens = usage.cache_write_tokens
        record.thought_tokens, record.tier = usage.thought_tokens, usage.tier
    _note_limit(record, reply, max_tokens)
    record.latency_s = None if latency_s is None else round(latency_s, 4)
    record.dropped_params = reply.dropped_params or None
    record.logprobs = reply.logprobs
    record.top_logprobs = reply.top_logprobs
    if reply.options is not None:
        record.options = tuple(
            Option(one.text, round(one.logprob, _DIGITS), one.tokens) for one in reply.options
        )
    record.batch, record.seed = batch, seed
    return record


def _note_limit(record: Record, reply: Reply, max_tokens: int | None) -> None:
    """Keeps the most tokens that were asked for, if the reply was cut off there."""
    ended = reply.options is not None or (reply.sure_stop and reply.finish_reason == "stop")
    record.max_tokens = None if ended else max_tokens
    if not record.is_cut_off:
        record.max_tokens = None


def after_cut(before: Record, record: Record) -> Record:
    """`record` with what was spent on `before`, the sample's reply that was cut off."""
    record.cut_off = (before.cut_off or 0) + 1
    record.attempts = (before.attempts or 0) + (record.attempts or 0)
    for kind in ("prompt_tokens", "output_tokens"):
        earlier = getattr(before, f"cut_{kind}") or 0
        setattr(record, f"cut_{kind}", earlier + (getattr(before, kind) or 0))
    return record


def failed(
    sample: Sample, error: ProviderError, *, attempts: int, batch: str | None = None
) -> Record:
    """The record of a sample that got no reply."""
    failure = Failure(kind_of(error), type(error).__name__, str(error))
    record = _record(sample, attempts, failure=failure)
    record.batch = batch
    return record


def overflow(sample: Sample, why: str) -> Record:
    """The record of a sample that is known not to fit the model's window and is not sent."""
    return failed(sample, PromptOverflowError(why), attempts=0)


def kind_of(error: ProviderError) -> FailureKind:
    """The kind of failure for an error that ended a sample."""
    if isinstance(error, PromptOverflowError):
        return Outcome.OVERFLOW.value
    return (Outcome.REFUSED if isinstance(error, RefusedError) else Outcome.ERROR).value


def _record(
    sample: Sample, attempts: int, *, reply: str | None = None, failure: Failure | None = None
) -> Record:
    record = record_of(sample, reply=reply, failure=failure)
    record.attempts = attempts
    record.at = round(time.time(), 3)
    return record
