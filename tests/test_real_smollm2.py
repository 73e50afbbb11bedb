"""SmolLM2, a real model, as a folder and as a GGUF file of our own provider, and in a real vLLM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eyechart.providers.base import Reply
from tests.real_server import VLLM, Server, serving
from tests.smollm2 import EQUAL, FOLDER, LENGTHS, NEEDED, SAME, asked, assert_same, requests

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),  # of torch and transformers
    NEEDED,
    pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm"),
]


@pytest.fixture(scope="module")
def ours() -> list[Reply]:
    """The replies of the model in its folder."""
    return asked(f"hf/{FOLDER / 'smollm2'}")


@pytest.fixture(scope="module")
def smollm2_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, "--max-model-len", "2048", model=FOLDER / "smollm2") as server:
        yield server


def test_a_gguf_file_is_the_folder_that_was_made_of_it(ours: list[Reply]) -> None:
    """Of the shortest rows; the weights are the same in all."""
    (file,) = FOLDER.glob("*.gguf")
    shortest = [LENGTHS[0]]
    ids = {request.sample_id for request in requests(shortest)}
    of_them = [
        reply for request, reply in zip(requests(), ours, strict=True) if request.sample_id in ids
    ]
    assert_same(of_them, asked(f"gguf/{file}", lengths=shortest), SAME, shortest)


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
