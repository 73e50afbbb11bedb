"""A real llama.cpp server against transformers, on SmolLM2 in float32.

In float32, because llama.cpp multiplies quantised weights with activations that are rounded to 8
bits: then log-probabilities of options differ by up to 0.24 from those of the same weights in
transformers, and replies of close calls too.
"""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from eyechart.providers.base import ModelSettings, Reply
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from tests.real_server import ROOT, Server, patiently
from tests.smollm2 import EQUAL, FOLDER, NEEDED, asked, assert_same, requests

FILE = FOLDER / "float32" / "smollm2.gguf"
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),  # of torch and transformers
    NEEDED,
    pytest.mark.skipif(
        not importlib.util.find_spec("xllamacpp"), reason="no xllamacpp; see .ci/vllm"
    ),
]
LENGTHS = (4,)
UNFAIR = ("penalty_repeat=1.3", "dry_multiplier=2", "typ_p=0.2", "xtc_probability=1")
"""Defaults of the server that spoil copies and counts unless a request says otherwise."""


@pytest.fixture(scope="module")
def llamacpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a server with unfair defaults."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    log = tmp_path_factory.mktemp("llamacpp") / "serving.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.llamacpp_server", str(FILE), port, *UNFAIR],
            cwd=ROOT,
            stdout=out,
            stderr=out,
        )
    server = Server(f"http://127.0.0.1:{port}")
    try:
        patiently(server.healthy, process)
        yield server.base_url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def ours() -> list[Reply]:
    """The replies of the model in its folder, in transformers."""
    return asked(f"hf/{FOLDER / 'smollm2'}", lengths=LENGTHS)


def test_replies_and_probabilities_are_those_of_transformers(
    ours: list[Reply], llamacpp: str
) -> None:
    """Whatever whoever started the server prefers: neutral sampling is sent, and is kept to."""
    theirs = asked("llamacpp/smollm2", llamacpp, lengths=LENGTHS)
    assert_same(ours, theirs, EQUAL, LENGTHS)
    assert all(not reply.dropped_params for reply in theirs)


def test_it_counts_the_tokens_that_it_computes(ours: list[Reply], llamacpp: str) -> None:
    """With the chat template; so tokens a symbol are known, not estimated."""
    provider = open_model(
        parse_model("m", base_urls=(llamacpp,)), ModelSettings("m", base_urls=(llamacpp,))
    )

    async def count() -> list[int] | None:
        try:
            return await provider.count_tokens([one.prompt for one in whole])
        finally:
            await provider.aclose()

    whole = [one for one in requests(LENGTHS) if not one.options]
    used = [reply.usage for reply in ours if not reply.options]
    assert asyncio.run(count()) == [usage.prompt_tokens for usage in used if usage is not None]
