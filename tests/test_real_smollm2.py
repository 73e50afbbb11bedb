"""SmolLM2, a real model, as a folder and as a GGUF file of our own provider, and in a real vLLM.

`.ci/smollm2` makes it, and `.ci/vllm` says where in `TESTS_SMOLLM2`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.request import request_of
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import ModelSettings, Reply, Request
from eyechart.providers.registry import open_model, parse_model
from tests.real_server import VLLM, Server, serving

FOLDER = Path(os.environ.get("TESTS_SMOLLM2", "nowhere"))
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),  # of torch and transformers
    pytest.mark.skipif(
        not (FOLDER / "ready").exists(), reason="no SmolLM2 in TESTS_SMOLLM2; see .ci/smollm2"
    ),
    pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm"),
]

TASKS = ("counting/ones", "copying/first_last", "memory/key_values")
LENGTHS = (4, 16)
MAX_TOKENS = 16
EQUAL = 1e-2
"""Largest difference of two log-probabilities, and of two tokens that may change places."""
SAME = 1e-3
"""The same for the same weights in the same library."""


def requests() -> list[Request]:
    """For each prompt a reply, and a forced choice."""
    found = []
    for name in TASKS:
        task = open_task(name, built_in_files()[name])
        axes = {"separator": ["comma"]} if "separator" in task.spec.axes else {}
        for sample in plan(task, lengths=LENGTHS, samples=1, axes=axes):
            found.append(request_of(sample, MAX_TOKENS, 0.0, 0, api="chat"))
            found.append(request_of(sample, 1, 0.0, 0, ForcedChoice(task, 0), api="chat"))
    return found


def asked(model: str, *base_urls: str) -> list[Reply]:
    """The replies of a model to all requests at once."""
    given = ModelSettings("", base_urls=base_urls, logprobs=True, top_logprobs=2)
    provider = open_model(parse_model(model, base_urls=base_urls), given)

    async def ask() -> list[Reply]:
        try:
            waiting = [
                provider.score(one) if one.options else provider.complete(one)  # type: ignore[attr-defined]
                for one in requests()
            ]
            return [*await asyncio.gather(*waiting)]
        finally:
            await provider.aclose()

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def ours() -> list[Reply]:
    """The replies of the model in its folder."""
    return asked(f"hf/{FOLDER / 'smollm2'}")


@pytest.fixture(scope="module")
def smollm2_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, "--max-model-len", "2048", model=FOLDER / "smollm2") as server:
        yield server


def assert_same(ours: list[Reply], theirs: list[Reply], equal: float) -> None:
    """Options have the same tokens, and probabilities as close as `equal`. Replies to a prompt have
    the same tokens up to the first one that has a rival as good as itself; what follows may differ.
    """
    assert len(ours) > 20
    for request, one, other in zip(requests(), ours, theirs, strict=True):
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
        if first[0] != second[0]:
            best, rival = one.top_logprobs[place]
            assert best[1] - rival[1] < equal, (one.text, other.text)
            return
    assert (one.text, one.finish_reason) == (other.text, other.finish_reason)
    assert one.usage == other.usage


def test_a_gguf_file_is_the_folder_that_was_made_of_it(ours: list[Reply]) -> None:
    (file,) = FOLDER.glob("*.gguf")
    assert_same(ours, asked(f"gguf/{file}"), SAME)


def test_vllm_says_the_same(ours: list[Reply], smollm2_server: Server) -> None:
    """Prompts have the same tokens, replies the same words, and options the same probabilities."""
    assert_same(ours, asked("vllm/tiny", smollm2_server.base_url), EQUAL)


def test_it_chooses_better_than_chance(ours: list[Reply]) -> None:
    """It is a real model: of four keys, the value of the one that is asked for is the likeliest."""
    right = [
        reply.text == request.options[0]
        for request, reply in zip(requests(), ours, strict=True)
        if request.options and request.sample_id.startswith("memory/key_values")
    ]
    assert any(right)
