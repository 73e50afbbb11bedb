"""SmolLM2, a real model: what it is asked in the tests, and how two engines' replies are compared.

`.ci/smollm2` makes it, and `.ci/vllm` says where in `TESTS_SMOLLM2`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.request import request_of
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import ModelSettings, Reply, Request
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model

FOLDER = Path(os.environ.get("TESTS_SMOLLM2", "nowhere"))
NEEDED = pytest.mark.skipif(
    not (FOLDER / "ready").exists(), reason="no SmolLM2 in TESTS_SMOLLM2; see .ci/smollm2"
)
TASKS = ("counting/ones", "copying/first_last", "memory/key_values")
LENGTHS = (4, 16)
MAX_TOKENS = 16
EQUAL = 1e-2
"""Largest difference of two log-probabilities, and of two tokens that may change places."""
SAME = 1e-3
"""The same for the same weights in the same library."""


def requests(lengths: Sequence[int] = LENGTHS) -> list[Request]:
    """For each prompt a reply, and a forced choice."""
    found = []
    for name in TASKS:
        task = open_task(name, built_in_files()[name])
        axes = {"separator": ["comma"]} if "separator" in task.spec.axes else {}
        for sample in plan(task, lengths=lengths, exact=True, samples=1, axes=axes):
            found.append(request_of(sample, MAX_TOKENS, 0.0, 0, api="chat"))
            found.append(request_of(sample, 1, 0.0, 0, ForcedChoice(task, 0), api="chat"))
    return found


def asked(model: str, *base_urls: str, lengths: Sequence[int] = LENGTHS) -> list[Reply]:
    """The replies of a model to all requests at once."""
    given = ModelSettings("", base_urls=base_urls, logprobs=True, top_logprobs=2)
    provider = open_model(parse_model(model, base_urls=base_urls), given)

    async def ask() -> list[Reply]:
        try:
            waiting = [
                provider.score(one) if one.options else provider.complete(one)  # type: ignore[attr-defined]
                for one in requests(lengths)
            ]
            return [*await asyncio.gather(*waiting)]
        finally:
            await provider.aclose()

    return asyncio.run(ask())


def assert_same(
    ours: list[Reply], theirs: list[Reply], equal: float, lengths: Sequence[int] = LENGTHS
) -> None:
    """Options have the same tokens, and probabilities as close as `equal`. Replies to a prompt have
    the same tokens up to the first one that has a rival as good as itself; what follows may differ.
    """
    for request, one, other in zip(requests(lengths), ours, theirs, strict=True):
        assert one.usage is not None
        assert other.usage is not None
        assert one.usage.prompt_tokens == other.usage.prompt_tokens, request.sample_id
        for first, second in zip(one.options or (), other.options or (), strict=True):
            assert (first.text, first.tokens) == (second.text, second.tokens)
            assert first.logprob == pytest.approx(second.logprob, abs=equal), request.sample_id
        if not request.options:
            assert_same_text(one, other, equal)


def assert_same_text(one: Reply, other: Reply, equal: float) -> None:
    assert one.logprobs
    assert one.top_logprobs
    assert other.logprobs
    for place, (first, second) in enumerate(zip(one.logprobs, other.logprobs, strict=False)):
        assert first[1] == pytest.approx(second[1], abs=equal), (one.text, other.text)
        if first[0] != second[0] and second[0]:  # llama.cpp writes the end as an empty token
            best, rival = one.top_logprobs[place]
            assert best[1] - rival[1] < equal, (one.text, other.text)
            return
    assert (one.text, one.finish_reason) == (other.text, other.finish_reason)
    assert one.usage is not None
    assert other.usage is not None
    assert one.usage.output_tokens == other.usage.output_tokens
