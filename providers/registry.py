"""Who answers: provider names and the modules behind them, imported on first use."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from providers.base import ModelSettings, Provider, SetupError
from providers.endpoints import endpoints

FACTORIES = {
    "azure": "providers.openai_api:open_azure",
    "scripted": "providers.scripted:open_provider",
    "tiny": "providers.tiny.provider:open_provider",
}
"""Provider -> `module:function` that takes `ModelSettings` and gives a `Provider`."""
COMPATIBLE = "providers.openai_api:open_provider"
"""The same for every name in `endpoints.yaml`."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """`provider/model`, taken apart."""

    provider: str
    model: str

    @property
    def label(self) -> str:
        """How the model is written in tables and folders; `tiny` for the embedded one."""
        return self.provider if self.model == self.provider else f"{self.provider}/{self.model}"


def parse_model(given: str) -> ModelName:
    """What `given` names: `provider/model`, the embedded `tiny`, or a bare name of OpenAI's.

    Raises:
        SetupError: empty, or no provider of that name.
    """
    provider, slash, model = given.strip().partition("/")
    if not provider or (slash and not model):
        raise SetupError(f"model {given!r} is not of the form provider/model")
    if not slash:
        return ModelName("tiny", "tiny") if provider == "tiny" else ModelName("openai", provider)
    known = [*FACTORIES, *endpoints()]
    if provider not in known:
        close = difflib.get_close_matches(provider, known, n=1)
        guess = f"did you mean {close[0]!r}?" if close else "'bench models' lists the providers"
        raise SetupError(f"unknown provider {provider!r} in {given!r}; {guess}")
    return ModelName(provider, model)


def open_model(
    name: ModelName,
    *,
    base_url: str | None = None,
    temperature: float = 0.0,
    notify: Callable[[str], None] = lambda _line: None,
) -> Provider:
    """The provider behind `name`, ready to be asked.

    Raises:
        SetupError: a package, key or file that the provider needs is missing.
    """
    if base_url is not None and name.provider in FACTORIES:
        raise SetupError(f"{name.provider} takes no --base-url")
    module_name, _, attribute = FACTORIES.get(name.provider, COMPATIBLE).partition(":")
    factory = cast(
        "Callable[[ModelSettings], Provider]",
        getattr(importlib.import_module(module_name), attribute),
    )
    return factory(
        ModelSettings(
            name.model,
            provider=name.provider,
            temperature=temperature,
            base_url=base_url,
            notify=notify,
        )
    )


def needs(environ: Mapping[str, str] = os.environ) -> list[tuple[str, str, str]]:
    """Provider, what it is, and what it needs; of a key only whether it is set."""

    def key(variable: str) -> str:
        return f"{variable} ({'set' if environ.get(variable) else 'not set'})"

    azure = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")
    return [
        ("tiny", "the embedded model", "-"),
        *(
            (name, endpoint.title, key(endpoint.key) if endpoint.key else endpoint.base_url)
            for name, endpoint in endpoints(environ).items()
        ),
        ("azure", "a deployment on Azure OpenAI", ", ".join(map(key, azure))),
        ("scripted", "replies from a text file, one a line, in turn", "the file"),
    ]
