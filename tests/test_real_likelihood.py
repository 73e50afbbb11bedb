"""Probabilities of options from a real vLLM and from lm-eval, and of the embedded model."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.plan.plan import sample_from_id
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.documents import opened
from tests.conftest import records
from tests.real_server import MODEL, VLLM, Server, bench, runs

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm"),
]

TASKS = ("counting/ones", "copying/first_last", "memory/key_values")
ASKED = (
    "--task",
    ",".join(TASKS),
    "--exact",
    "--lengths",
    "5,20",
    "--samples",
    "2",
    "--read",
    "likelihood",
)
EQUAL = 1e-3
"""Largest difference of two log-probabilities of an option, of engines in float32."""


def scored(out: Path, *arguments: str) -> dict[str, dict[str, tuple[float, int]]]:
    """Sample id -> option -> log-probability and tokens."""
    bench(out, *ASKED, *arguments)
    return {
        record["id"]: {one["text"]: (one["logprob"], one["tokens"]) for one in record["options"]}
        for folder in runs(out)
        for record in records(folder)
    }


@pytest.mark.parametrize(
    ("model", "api"),
    [("vllm/tiny", "chat"), ("vllm/tiny", "completions"), ("my-name", "completions")],
)
def test_vllm_gives_the_probabilities_of_the_embedded_model(
    server: Server, tmp_path: Path, model: str, api: str
) -> None:
    """Whether the server lists the tokens of a prompt, or repeats it."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here = scored(tmp_path / "here", "--model", "tiny", "--api", api)
    address = ("--base-url", server.base_url)
    there = scored(tmp_path / "there", "--model", model, "--api", api, *address)
    assert here.keys() == there.keys()
    assert len(here) == 36
    for sample, options in here.items():
        assert options.keys() == there[sample].keys()
        for text, (logprob, tokens) in options.items():
            assert there[sample][text][0] == pytest.approx(logprob, abs=EQUAL), (sample, text)
            assert there[sample][text][1] == tokens


@pytest.mark.skipif(not importlib.util.find_spec("lm_eval"), reason="no lm_eval")
def test_lm_eval_gives_the_same_probabilities(tmp_path: Path) -> None:
    """`loglikelihood` of its transformers model, on the same texts."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    found = scored(tmp_path, "--model", "tiny", "--api", "completions")
    model: Any = HFLM(pretrained=str(MODEL), device="cpu", dtype="float32", batch_size=8)
    for name in TASKS:
        task = open_task(name, built_in_files()[name])
        for identifier in [one for one in found if one.startswith(f"{name}@")]:
            text = opened(sample_from_id(task, identifier).prompt, task.spec.answer.first_phrase)
            pairs = [(text, f" {option}") for option in found[identifier]]
            asked = [Instance("loglikelihood", {}, pair, place) for place, pair in enumerate(pairs)]
            theirs = [logprob for logprob, _ in model.loglikelihood(asked, disable_tqdm=True)]
            ours = [logprob for logprob, _ in found[identifier].values()]
            assert theirs == pytest.approx(ours, abs=EQUAL), identifier
