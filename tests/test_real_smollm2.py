"""SmolLM2, a real model, as a folder and as a GGUF file of our own provider, and in a real vLLM.

`.ci/smollm2` makes it, and `.ci/vllm` says where in `TESTS_SMOLLM2`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.conftest import records
from tests.real_server import VLLM, Server, bench, runs, serving

FOLDER = Path(os.environ.get("TESTS_SMOLLM2", "nowhere"))
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        not (FOLDER / "ready").exists(), reason="no SmolLM2 in TESTS_SMOLLM2; see .ci/smollm2"
    ),
    pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm"),
]

ASKED = (
    *("--task", "counting/ones,copying/first_last,memory/key_values", "--axis", "separator=comma"),
    *("--lengths", "4,16", "--samples", "2", "--max-connections", "16"),
)
TEXT = ("--max-tokens", "24", "--logprobs", "--top-logprobs", "2", "--keep-going")
LIKELIHOOD = ("--read", "likelihood")
EQUAL = 1e-2
"""Largest difference of two log-probabilities, and of two tokens that may change places."""
SAME = 1e-3
"""The same for the same weights in the same library."""
Found: TypeAlias = dict[str, dict[str, Any]]
"""Sample id -> record."""


def asked(out: Path, *arguments: str) -> Found:
    out.mkdir()
    bench(out, *ASKED, *arguments)
    return {record["id"]: record for folder in runs(out) for record in records(folder)}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> tuple[Found, Found]:
    """Replies and choices of the model in its folder."""
    out, model = tmp_path_factory.mktemp("ours"), f"hf/{FOLDER / 'smollm2'}"
    text = asked(out / "text", "--model", model, *TEXT)
    return text, asked(out / "likelihood", "--model", model, *LIKELIHOOD)


@pytest.fixture(scope="module")
def smollm2_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, "--max-model-len", "2048", model=FOLDER / "smollm2") as server:
        yield server


def assert_same_choices(one: Found, other: Found, equal: float) -> None:
    """Each option has the same tokens, and probabilities as close as `equal`."""
    assert one.keys() == other.keys()
    assert len(one) > 10
    for sample, record in one.items():
        for first, second in zip(record["options"], other[sample]["options"], strict=True):
            assert (first["text"], first["tokens"]) == (second["text"], second["tokens"])
            assert first["logprob"] == pytest.approx(second["logprob"], abs=equal), sample


def assert_same_texts(one: Found, other: Found, equal: float) -> None:
    """The same tokens of prompts, and the same replies up to the first token that had a rival as
    good as itself: what follows that may differ.
    """
    assert one.keys() == other.keys()
    assert len(one) > 10
    for sample, record in one.items():
        assert record["prompt_tokens"] == other[sample]["prompt_tokens"], sample
        for place, (first, second) in enumerate(
            zip(record["logprobs"], other[sample]["logprobs"], strict=False)
        ):
            if first[0] != second[0]:
                best, rival = record["top_logprobs"][place]
                assert best[1] - rival[1] < equal, (sample, place, first, second)
                break
            assert first[1] == pytest.approx(second[1], abs=equal), (sample, place)
        else:
            assert record["reply"] == other[sample]["reply"]
            assert record["finish_reason"] == other[sample]["finish_reason"]
            assert record["output_tokens"] == other[sample]["output_tokens"]


def test_a_gguf_file_is_the_folder_that_was_made_of_it(
    ours: tuple[Found, Found], tmp_path: Path
) -> None:
    (file,) = FOLDER.glob("*.gguf")
    assert_same_texts(ours[0], asked(tmp_path / "a", "--model", f"gguf/{file}", *TEXT), SAME)
    choices = asked(tmp_path / "b", "--model", f"gguf/{file}", *LIKELIHOOD)
    assert_same_choices(ours[1], choices, SAME)


def test_vllm_says_the_same(
    ours: tuple[Found, Found], smollm2_server: Server, tmp_path: Path
) -> None:
    """Prompts have the same tokens, replies the same words, and options the same probabilities."""
    there = ("--model", "vllm/tiny", "--base-url", smollm2_server.base_url)
    assert_same_texts(ours[0], asked(tmp_path / "a", *there, *TEXT), EQUAL)
    assert_same_choices(ours[1], asked(tmp_path / "b", *there, *LIKELIHOOD), EQUAL)


def test_it_chooses_better_than_chance(ours: tuple[Found, Found]) -> None:
    """It is a real model: the value of one of four keys is the most probable one."""
    four = [one for name, one in ours[1].items() if "key_values" in name and one["length"] == 4]
    assert four
    assert any(one["reply"] == one["options"][0]["text"] for one in four)
