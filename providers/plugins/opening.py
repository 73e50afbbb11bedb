"""Opens the provider of a plugin, and says what is wrong with one that cannot be opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from eyechart.providers.base import ModelSettings, Provider, ProviderError
from eyechart.providers.plugins.contract import a_kind, described
from eyechart.providers.plugins.plugins import Plugin

METHODS = ("complete", "facts", "count_tokens", "aclose")
"""The methods of a provider."""


def factory(of: Plugin) -> Callable[[ModelSettings], object]:
    """The function of a plugin that opens its provider.

    Raises:
        PluginError: it cannot be imported, or is no function.
    """
    function = of.load()
    if not callable(function):
        raise of.error(
            f"it is {a_kind(function)}, and should be a function that takes ModelSettings"
        )
    return cast("Callable[[ModelSettings], object]", function)


def open_plugin(of: Plugin, settings: ModelSettings) -> Provider:
    """Opens the provider of a plugin.

    Raises:
        PluginError: it cannot be imported, fails in another way than with a `ProviderError`, or
            returns no provider.
    """
    from eyechart.providers.plugins.plugin_provider import PluginProvider  # noqa: PLC0415  asyncio is slow

    function = factory(of)
    try:
        provider = function(settings)
    except (ProviderError, KeyboardInterrupt):
        raise
    except BaseException as error:  # code of others, which may raise anything
        raise of.error(f"opening {settings.model!r} raised {described(error)}") from error
    if lacks := [name for name in METHODS if not callable(getattr(provider, name, None))]:
        no = ", ".join(lacks)
        raise of.error(f"it returned {a_kind(provider)}, which has no method {no}")
    return PluginProvider(cast("Provider", provider), of.place, settings.notify)
