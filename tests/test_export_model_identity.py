"""Who made a model and who served it: what the manifest says, and nothing more."""

from __future__ import annotations

from typing import Any

import pytest

from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.satellites.export.model_identity import ModelIdentity, identify
from eyechart.harness.spec import Settings

OPENAI = ["https://api.openai.com/v1/"]


def manifest(model: str, server: dict[str, Any] | None = None) -> Manifest:
    """The manifest of a run of `model`."""
    return Manifest(
        model=model,
        task="counting/ones",
        task_version=1,
        task_digest="",
        spec={},
        settings=Settings(),
        server=server or {},
        software={"eyechart": "0.1.0"},
    )


@pytest.mark.parametrize(
    ("model", "server", "expected"),
    [
        ("tiny", {}, "eyechart/tiny"),
        ("scripted//tmp/replies.txt", {}, "eyechart/scripted"),
        ("openai/gpt-4o", {"base_url": OPENAI}, "openai/gpt-4o"),
        ("openai/gpt-4o", {}, "openai/gpt-4o"),
        ("openai/my-model", {"base_url": ["http://127.0.0.1:8000/v1"]}, "unknown/my-model"),
        ("openai/gpt-4o", {"base_url": ["http://[bad", *OPENAI]}, "unknown/gpt-4o"),
        ("openai/Qwen/Qwen3-4B", {"base_url": ["http://gpu:8000/v1"]}, "Qwen/Qwen3-4B"),
        ("anthropic/claude-x", {"base_url": "https://api.anthropic.com"}, "anthropic/claude-x"),
        (
            "gemini/gemini-2.5-pro",
            {"base_url": ["https://generativelanguage.googleapis.com/v1beta/openai/"]},
            "google/gemini-2.5-pro",
        ),
        (
            "openrouter/meta-llama/llama-3.1-8b-instruct",
            {"base_url": ["https://openrouter.ai/api/v1/"]},
            "meta-llama/llama-3.1-8b-instruct",
        ),
        (
            "groq/llama-3.1-8b",
            {"base_url": ["https://api.groq.com/openai/v1/"]},
            "unknown/llama-3.1-8b",
        ),
        ("vllm/meta-llama/Llama-3.1-8B", {"engine": "vllm"}, "meta-llama/Llama-3.1-8B"),
        ("lm-eval/hf/EleutherAI/pythia-70m", {}, "EleutherAI/pythia-70m"),
        (
            "lm-eval/hf/EleutherAI/pythia-70m,revision=step1",
            {},
            "unknown/EleutherAI_pythia-70m,revision=step1",
        ),
        ("lm-eval/hf//models/llama", {}, "unknown/models_llama"),
        ("lm-eval/dummy", {}, "unknown/dummy"),
        ("vllm/my-name", {"engine": "vllm", "root": "/models/llama"}, "unknown/my-name"),
        ("vllm//models/llama", {"engine": "vllm"}, "unknown/models_llama"),
        ("vllm/./models/llama", {"engine": "vllm"}, "unknown/._models_llama"),
        ("ollama/llama3:8b", {"base_url": ["http://127.0.0.1:11434/v1/"]}, "unknown/llama3:8b"),
        ("azure/my-deployment", {}, "unknown/my-deployment"),
        ("newcomer/x", {}, "unknown/x"),
    ],
)
def test_a_model_is_named_as_others_would_look_for_it(
    model: str, server: dict[str, Any], expected: str
) -> None:
    """A maker is known from the vendor's own address or the hub's form of a name, never guessed."""
    assert identify(manifest(model, server)).id == expected


def test_who_served_it_is_said_where_the_server_says_so() -> None:
    """Platform, engine with its version, and whose deployment it was."""
    vendor = identify(manifest("openai/gpt-4o", {"base_url": OPENAI}))
    assert (vendor.platform, vendor.engine) == ("openai", None)
    assert (vendor.deployment, vendor.weights) == ("externally_managed", "closed")
    elsewhere = identify(manifest("openai/gpt-4o", {"base_url": ["http://10.0.0.1/v1"]}))
    assert (elsewhere.platform, elsewhere.deployment, elsewhere.weights) == (None, *["unknown"] * 2)
    facts = {"engine": "vllm", "version": "0.32.0"}
    running = identify(manifest("vllm/a/b", facts))
    assert (running.engine, running.engine_version) == ("vllm", "0.32.0")
    assert running.deployment == "unknown"
    started = identify(manifest("vllm/a/b", facts | {"server_args": []}))
    assert started.deployment == "self_deployed"
    here = identify(manifest("ollama/x", {"base_url": ["http://localhost:11434/v1"]}))
    assert (here.engine, here.deployment) == ("ollama", "self_deployed")
    assert identify(manifest("vllm/a/b", {"version": None})).engine_version is None


def test_the_user_knows_better() -> None:
    """What the command says wins over what the run says; the rest stays."""
    found = identify(manifest("vllm/my-name", {"version": "1"}), "my-lab/my-model", "open")
    assert found == ModelIdentity(
        "vllm/my-name", "my-lab", "my-model", None, "vllm", "1", "unknown", "open"
    )
