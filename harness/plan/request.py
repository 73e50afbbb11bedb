"""The request that a provider gets for a sample."""

from __future__ import annotations

from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import output_budget
from eyechart.harness.spec import Sample
from eyechart.providers.base import Api, Request


def seed_of(seed: int, draw: int) -> int:
    """The seed of a draw: that of the run for the first draw, then the next whole numbers. No two
    draws have the same one, and each can be repeated.
    """
    return (seed + draw - 1) % 2**63


def request_of(
    sample: Sample,
    max_tokens: int,
    temperature: float | None,
    seed: int,
    choice: ForcedChoice | None = None,
    *,
    api: Api | None,
) -> Request:
    """The request for a whole reply of at most this many tokens, or for the options of a choice."""
    continued = api == "completions" and choice is None
    return Request(
        prompt=sample.document if continued else sample.prompt,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed_of(seed, sample.draw) if temperature else None,
        sample_id=sample.id,
        prefix=f"{sample.condition.label}|{sample.index}",
        think_tokens=max(0, max_tokens - output_budget(sample)),
        options=() if choice is None else choice.options(sample),
        opening="" if choice is None else choice.opening(sample),
    )
