"""All providers: the built-in ones in a list, those of files of endpoints, and those of plugins.

A new provider is one module with its descriptor, and one entry in `BUILT_IN`.
"""

from __future__ import annotations

import os

from eyechart.providers import anthropic_descriptor, oracle, scripted
from eyechart.providers.base import SetupError
from eyechart.providers.catalog.endpoints import ITS_OWN, USER_FILE, Endpoint, endpoints
from eyechart.providers.descriptor import Descriptor, Destination, Environment
from eyechart.providers.function import descriptor as function
from eyechart.providers.hf import descriptor as hf
from eyechart.providers.lm_eval import descriptor as lm_eval
from eyechart.providers.openai.descriptor import AZURE, COMPATIBLE, vendor
from eyechart.providers.plugins.plugins import Plugin
from eyechart.providers.tiny import descriptor as tiny
from eyechart.providers.vllm import descriptor as vllm

BUILT_IN: dict[str, Descriptor] = {
    one.name: one
    for one in (
        tiny.DESCRIPTOR,
        oracle.DESCRIPTOR,
        anthropic_descriptor.DESCRIPTOR,
        vllm.DESCRIPTOR,
        lm_eval.DESCRIPTOR,
        hf.HF,
        hf.GGUF,
        AZURE,
        scripted.DESCRIPTOR,
        function.DESCRIPTOR,
    )
}
"""Name -> provider."""


def vendors(environ: Environment = os.environ) -> dict[str, Descriptor]:
    """Name -> provider, for each entry of both files of endpoints.

    Raises:
        SetupError: the user's file of endpoints has a mistake.
    """
    return {name: vendor(name, endpoint) for name, endpoint in _endpoints(environ).items()}


def provider_names() -> list[str]:
    """The names of all providers that are not plugins.

    Raises:
        SetupError: the user's file of endpoints has a mistake.
    """
    return [*BUILT_IN, *_endpoints(os.environ)]


def _endpoints(environ: Environment) -> dict[str, Endpoint]:
    """The entries of both files of endpoints.

    Raises:
        SetupError: the user's file has a mistake, or a name in it has a slash or is taken.
    """
    found = endpoints(environ)
    for name in found:
        if name in BUILT_IN or "/" in name:
            problem = "has a slash" if "/" in name else "is a provider of its own"
            raise SetupError(f"endpoint {name!r} in {environ.get(USER_FILE)} {problem}; rename it")
    return found


def descriptor_of(name: str, environ: Environment = os.environ) -> Descriptor:
    """The descriptor of a provider that is no plugin's; of a name that nobody has, that of a server
    of the user's.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    endpoint = _endpoints(environ).get(name)
    return COMPATIBLE if endpoint is None else vendor(name, endpoint)


def plugin_descriptor(plugin: Plugin) -> Descriptor:
    """The descriptor of a plugin's provider, from its entry point; nothing is imported."""
    keys = f"the keys that {plugin} reads"
    return Descriptor(
        name=plugin.name,
        title=plugin.summary or plugin.value,
        needs=lambda _environ: f"see {plugin.distribution}",
        thinking=lambda _addresses: ITS_OWN,
        takes_params=True,
        tiers=lambda _addresses: None,
        destination=lambda addresses, _model_args, _environ: (
            Destination(tuple(addresses), keys) if addresses else None
        ),
    )
