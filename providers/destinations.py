"""Where requests to a model go, and which environment variable's key goes along."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eyechart.providers.catalog.endpoints import LOCAL, endpoint_of, endpoints
from eyechart.providers.lm_eval.args import read_args
from eyechart.providers.plugins import Plugin
from eyechart.providers.secrets import redact_address

ANTHROPIC = "https://api.anthropic.com"
ANTHROPIC_BASE_URL = "ANTHROPIC_BASE_URL"
"""Environment variable of another address, which the SDK reads as well."""
ANTHROPIC_KEY = "ANTHROPIC_API_KEY"
AZURE_VARIABLES = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")
"""The address, the key and the version of the API; the SDK reads them as well."""
VLLM_KEY = "VLLM_API_KEY"
"""The key that `vllm serve --api-key` requires."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The servers that a command asks."""

    addresses: tuple[str, ...]
    key: str = ""
    """What goes along: `the key in OPENAI_API_KEY`; "" where no key does."""

    def __str__(self) -> str:
        """`https://api.openai.com/v1, with the key in OPENAI_API_KEY`; never with a password."""
        where = " and ".join(map(redact_address, self.addresses))
        return f"{where}, {f'with {self.key}' if self.key else 'without a key'}"


def destination(
    provider: str,
    base_urls: Sequence[str] = (),
    model_args: Sequence[str] = (),
    *,
    plugin: Plugin | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Destination | None:
    """Where requests to a model of `provider` go: to the user's addresses where there are some.
    `None` where it computes on this machine, or where only the `plugin` knows.
    """

    def key_in(variable: str | None) -> str:
        return f"the key in {variable}" if variable and environ.get(variable, "").strip() else ""

    given = tuple(base_urls)
    passwords = ["the password in the address"] * any("@" in url for url in given)
    takes_key = not given or any("@" not in url for url in given)

    def at(variable: str | None) -> Destination:
        """The user's addresses, of which one with a password of its own gets no key."""
        return Destination(
            given, " and ".join(filter(None, [*passwords, takes_key * key_in(variable)]))
        )

    if plugin is not None:
        return Destination(given, f"the keys that {plugin} reads") if given else None
    if provider == "lm-eval":
        url = read_args(model_args).get("base_url")
        return None if url is None else Destination((url,), "the key that lm-eval reads")
    if provider == "vllm":
        return at(VLLM_KEY) if given else None
    if provider == "azure":
        address, key, _ = AZURE_VARIABLES
        return Destination((environ.get(address, ""),), key_in(key))
    if provider == "anthropic":
        own = environ.get(ANTHROPIC_BASE_URL) or ANTHROPIC
        return at(None) if given else Destination((own,), key_in(ANTHROPIC_KEY))
    if provider not in endpoints(environ) and not (provider == LOCAL and given):
        return None  # it computes here
    endpoint = endpoint_of(provider, given, environ)
    return at(endpoint.key) if given else Destination((endpoint.base_url,), key_in(endpoint.key))
