"""Names of models that were written almost right, and new ones that only look unusual."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyechart.providers.base import SetupError
from eyechart.providers.catalog.model_facts import known_models
from eyechart.providers.catalog.spelling import meant, near
from eyechart.providers.registry.model_name import parse_model


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("gtp4", "gpt-4o"),
        ("gpt4o", "gpt-4o"),
        ("GPT-4o", "gpt-4o"),
        ("o4mini", "o4-mini"),
        ("claud-sonet", "anthropic/claude-sonnet"),
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("claude-opus-7", "anthropic/claude-opus-7"),
        ("gork-4", "xai/grok-4"),
        ("gemni-2.5-pro", "gemini/gemini-2.5-pro"),
        ("gemni-3.9-flash", "gemini/gemini-3.9-flash"),
        ("gtp-5.7-sol", "gpt-5.7-sol"),
        ("deepseek-v9", "deepseek/deepseek-v9"),
        ("tinny", "tiny"),
        ("oracel:50", "oracle:50"),
    ],
)
def test_a_misspelt_name_is_told_with_the_right_one(given: str, name: str) -> None:
    """Or one that is another provider's, without it; before a key is looked for."""
    with pytest.raises(SetupError, match=f"did you mean '{name}.*write openai/{given}"):
        parse_model(given)
    assert parse_model(f"openai/{given}").label == f"openai/{given}"
    assert parse_model(given, base_urls=["http://127.0.0.1:9/v1"]).label == f"local/{given}"


@pytest.mark.parametrize(
    "given",
    [
        *("gpt-5.1", "gpt-4-turbo", "gpt-live", "o1-pro", "o9", "chatgpt-4o-latest", "gpt-5-codex"),
        *("my-model", "m", "llama-3", "babbage-002", "gpt-realtime", "model-x", "4"),
    ],
)
def test_a_new_name_is_no_mistake(given: str) -> None:
    """New words and new numbers run as they are."""
    assert meant(given) is None
    assert parse_model(given).label == f"openai/{given}"


def test_every_known_name_is_right_as_it_is() -> None:
    """OpenAI's alone, the others with their provider."""
    for label in known_models():
        label = label.replace("*", "-2030-01-01")  # noqa: PLW2901
        provider, _, model = label.partition("/")
        assert meant(model) == (None if provider == "openai" else label)
        assert parse_model(label).label == label


def test_names_of_the_users_own_file_are_known(tmp_path: Path) -> None:
    """Also where they resemble one of ours."""
    own = tmp_path / "models.yaml"
    own.write_text("openai/gtp4: {window: 100}\nopenai/zebrafish-1: {}\n")
    environment = {"EYECHART_MODELS": str(own)}
    assert meant("gtp4", environment) is None
    assert meant("zebrafihs-1", environment) == "zebrafish-1"


@pytest.mark.parametrize("given", ["Qwen/Qwen3-4B", "mistralai/Mistral-7B", "a/b/c", "qwen3:4b"])
def test_at_an_address_any_name_is_the_servers(given: str) -> None:
    """As the server writes it; names of our providers stay theirs."""
    urls = ["http://127.0.0.1:9/v1"]
    assert parse_model(given, base_urls=urls).label == f"local/{given}"
    assert parse_model("groq/x", base_urls=urls).label == "groq/x"


def test_without_an_address_a_hub_name_is_told_what_to_do() -> None:
    """Both ways to ask such a model."""
    with pytest.raises(SetupError, match=r"vllm/Qwen/Qwen3-4B starts .* base_url names one"):
        parse_model("Qwen/Qwen3-4B")


@pytest.mark.parametrize(
    ("label", "likely"),
    [
        ("openai/gpt-4p", "openai/gpt-4"),
        ("anthropic/claude-sonet-5", "anthropic/claude-sonnet-5"),
        ("deepseek/deepsek-chat", "deepseek/deepseek-chat"),
        *((name, None) for name in ("openai/gpt-4o", "openai/gpt-5.9-luna", "openai/gpt-7")),
        *((name, None) for name in ("gemini/gemini-3.9-flash", "azure/gpt-4p", "groq/zebrafish")),
    ],
)
def test_a_name_with_its_provider_may_be_misspelt_as_well(label: str, likely: str | None) -> None:
    """New numbers are none, nor are names that a user gives to deployments."""
    provider, _, model = label.partition("/")
    assert near(provider, model) == likely


def test_a_function_named_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its file is there, the form that names a function is said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agents").mkdir()
    for file in ("agent.py", "agents/mine.py"):
        (tmp_path / file).touch()
    with pytest.raises(SetupError, match=r"in a Python file write agent\.py:answer\. Where OpenAI"):
        parse_model("agent:answer")
    with pytest.raises(SetupError, match=r"write agents/mine\.py:answer"):
        parse_model("agents.mine:answer")
    for given in ("other:answer", "agent", ":answer", f"{'a' * 300}:answer"):
        assert parse_model(given).label == f"openai/{given}"
    assert parse_model("agent:answer", base_urls=["http://127.0.0.1:9/v1"]).provider == "local"
