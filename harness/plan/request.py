"""The request that a provider gets for a sample."""

from __future__ import annotations

from eyechart.harness.spec import Sample
from eyechart.providers.base import Request


def request_of(sample: Sample, max_tokens: int, temperature: float, seed: int) -> Request:
    return Request(
        prompt=sample.prompt,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed if temperature else None,
        sample_id=sample.id,
        prefix=f"{sample.condition.label}|{sample.index}",
    )
