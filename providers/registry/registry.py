"""Providers, which are imported where a model is first asked."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from eyechart.providers.base import ModelSettings, Provider, SetupError
from eyechart.providers.batches import BatchForm, BatchService
from eyechart.providers.catalog.endpoints import endpoints
from eyechart.providers.descriptor import NOTHING, Environment
from eyechart.providers.descriptors import BUILT_IN, plugin_descriptor, vendors
from eyechart.providers.naming import named
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.contract import PluginError
from eyechart.providers.plugins.opening import factory, open_plugin
from eyechart.providers.plugins.plugins import PROVIDERS
from eyechart.providers.registry.model_name import ModelName
from eyechart.providers.registry.setting_checks import checked


def open_model(name: ModelName, settings: ModelSettings | None = None) -> Provider:
    """Opens the provider of `name` with `settings`, whose model and provider are those of `name`.

    Raises:
        SetupError: a package, key or file that the provider needs is missing, or it does not
            support the settings.
    """
    settings = checked(name, settings or ModelSettings(name.model))
    if name.plugin is not None:
        return open_plugin(name.plugin, settings)
    if name.function is not None:
        from eyechart.providers.function.provider import open_function  # noqa: PLC0415  asyncio

        return open_function(name.function, settings)
    return cast("Provider", _load(name.descriptor.opens)(settings))


def open_batch_form(name: ModelName, settings: ModelSettings) -> BatchForm:
    """The form of requests to `name` in batch files; needs neither key nor network.

    Raises:
        SetupError: the provider does not have OpenAI's form, or does not support the settings.
    """
    function = name.descriptor.batch_form
    if not function:
        raise SetupError(
            f"{name.label} does not take the Batch form of OpenAI; that form is for openai/…, "
            "OpenAI-compatible vendors, and vllm/NAME, the name under which vLLM serves the model"
        )
    return cast("BatchForm", _load(function)(checked(name, settings)))


def has_batches(name: ModelName) -> None:
    """Raises `SetupError` if no Batch API is known for the model's provider."""
    if not name.descriptor.batch_service:
        hint = f"{name.descriptor.batch_hint}; " if name.descriptor.batch_hint else ""
        raise SetupError(
            f"{named('tier', 'batch')} is for openai/… and vendors or servers with a Batch API "
            f"like OpenAI's, not for {name.label}; {hint}leave out {named('tier', 'batch')}"
        )


def open_batches(name: ModelName, settings: ModelSettings) -> BatchService:
    """Opens the Batch API for the model `name`.

    Raises:
        SetupError: the model has no Batch API, or the key is missing.
    """
    has_batches(name)
    return cast("BatchService", _load(name.descriptor.batch_service)(checked(name, settings)))


def _load(path: str) -> Callable[[ModelSettings], object]:
    """The function at `path`, `module:function`."""
    module_name, _, attribute = path.partition(":")
    return cast(
        "Callable[[ModelSettings], object]",
        getattr(importlib.import_module(module_name), attribute),
    )


def needs(environ: Environment = os.environ) -> list[tuple[str, str, str]]:
    """Name, title and needs of all providers but those of plugins: first those that need nothing,
    then vendors.
    """
    ours, theirs = (
        [(one.name, one.title, one.needs(environ)) for one in group.values()]
        for group in (BUILT_IN, vendors(environ))
    )
    free = [row for row in ours if row[-1] == NOTHING]
    return [*free, *theirs, *(row for row in ours if row not in free)]


@dataclass(frozen=True, slots=True)
class ListedProvider:
    """A provider as `bench models` lists it."""

    provider: str
    what: str
    needs: str
    origin: str = plugins.BUILT_IN
    """Where it comes from: built in, or the distribution and its version."""


def listed() -> tuple[list[ListedProvider], list[PluginError]]:
    """All providers, and why plugins are not used. Imports those of plugins."""
    rows = [ListedProvider(*row) for row in needs()]
    taken = [*BUILT_IN, *endpoints({})]
    found = plugins.installed(PROVIDERS, taken, vendors())
    errors = [*found.refused.values()]
    for name, plugin in found.usable.items():
        try:
            factory(plugin)
        except PluginError as error:
            errors.append(error)
        else:
            one = plugin_descriptor(plugin)
            rows.append(ListedProvider(name, one.title, one.needs(os.environ), str(plugin)))
    return rows, errors
