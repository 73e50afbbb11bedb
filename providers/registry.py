"""Who answers: provider names and the modules behind them, imported on first use."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from providers.base import ModelSettings, Provider, SetupError

FACTORIES = {
    "scripted": "providers.scripted:open_provider",
    "tiny": "providers.tiny.provider:open_provider",
}
"""Provider -> `module:function` that takes `ModelSettings` and gives a `Provider`."""

DESCRIPTIONS = {
    "scripted": "replies from a text file, one a line, in turn; for trying things out",
    "tiny": "the embedded model; needs nothing",
}

BARE_PROVIDER = "openai"
"""Whose model a name without a provider is."""


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
        if provider == "tiny":
            return ModelName("tiny", "tiny")
        provider, model = BARE_PROVIDER, provider
    if provider not in FACTORIES:
        close = difflib.get_close_matches(provider, FACTORIES, n=1)
        guess = f"did you mean {close[0]!r}?" if close else "'bench models' lists the providers"
        meant = "" if slash else f", which a name without a provider means: {given!r}"
        raise SetupError(f"unknown provider {provider!r}{meant}; {guess}")
    return ModelName(provider, model)


def open_model(name: ModelName) -> Provider:
    """The provider behind `name`, ready to be asked.

    Raises:
        SetupError: a package, key or file that the provider needs is missing.
    """
    module_name, _, attribute = FACTORIES[name.provider].partition(":")
    factory = cast(
        "Callable[[ModelSettings], Provider]",
        getattr(importlib.import_module(module_name), attribute),
    )
    return factory(ModelSettings(name.model))
