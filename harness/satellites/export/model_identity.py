"""The developer of a run's model, and who served it, as far as the run's manifest shows.

Nothing is guessed from the name of a model: what neither label nor server shows stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.journal.server import addresses

UNKNOWN: Literal["unknown"] = "unknown"
Weights: TypeAlias = Literal["open", "closed", "unknown"]
Deployment: TypeAlias = Literal["self_deployed", "externally_managed", "unknown"]

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.:+-]*", re.ASCII)
"""`organisation/model`, as model hubs write it; more slashes are a path."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """A company that serves its own models at its own address."""

    developer: str
    """The name under which it publishes models."""
    host: str
    weights: Weights = UNKNOWN
    """The kind of all the models it serves; unknown where it serves both kinds."""


_VENDORS = {
    "openai": Vendor("openai", "api.openai.com", "closed"),
    "anthropic": Vendor("anthropic", "api.anthropic.com", "closed"),
    "gemini": Vendor("google", "generativelanguage.googleapis.com"),
    "deepseek": Vendor("deepseek-ai", "api.deepseek.com"),
    "mistral": Vendor("mistralai", "api.mistral.ai"),
    "xai": Vendor("xai", "api.x.ai"),
}
_PLATFORMS = {
    "groq": "api.groq.com",
    "together": "api.together.xyz",
    "openrouter": "openrouter.ai",
}
"""Service that offers models of other developers -> its host."""
_LOCAL = ("ollama", "llamacpp", "lmstudio")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_OURS = ("tiny", "oracle", "scripted")


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """A model under the names by which other people look for it."""

    name: str
    """The run's label."""
    developer: str
    model: str
    """The model's name without the developer's."""
    platform: str | None = None
    """The service that answered."""
    engine: str | None = None
    """The software that ran the model."""
    engine_version: str | None = None
    deployment: Deployment = UNKNOWN
    """Whether the user ran the server, or somebody else did."""
    weights: Weights = UNKNOWN

    @property
    def id(self) -> str:
        """`developer/model`."""
        return f"{self.developer}/{self.model}"


def identify(
    manifest: Manifest, model_id: str | None = None, weights: Weights | None = None
) -> ModelIdentity:
    """The identity of the run's model. `model_id`, of the form of `HUB_NAME`, and `weights` come
    from the user and override what the manifest shows.
    """
    identity = _identify(manifest)
    developer, _, model = (model_id or identity.id).partition("/")
    return replace(identity, developer=developer, model=model, weights=weights or identity.weights)


def _identify(manifest: Manifest) -> ModelIdentity:
    server = manifest.server
    provider, _, model_name = manifest.asked_as.partition("/")
    published = manifest.model_name if manifest.served_as else model_name or provider
    known = ModelIdentity(manifest.model, *_developer_and_model(published))
    hosts = _hosts(server)
    vendor = _VENDORS.get(provider)
    if provider in _OURS:
        return replace(
            known,
            developer="eyechart",
            model=provider,
            engine=f"eyechart {provider}",
            engine_version=manifest.software.get("eyechart"),
            deployment="self_deployed",
            weights="open" if provider == "tiny" else UNKNOWN,
        )
    if vendor is not None and hosts == {vendor.host}:
        return replace(
            known,
            developer=vendor.developer,
            model=_flat(model_name),
            platform=provider,
            deployment="externally_managed",
            weights=vendor.weights,
        )
    if vendor is not None and not hosts:  # replies from files: who served them is not known
        return replace(known, developer=vendor.developer, model=_flat(model_name))
    if provider == "azure" or (provider in _PLATFORMS and hosts == {_PLATFORMS[provider]}):
        return replace(known, platform=provider, deployment="externally_managed")
    if provider == "vllm":
        version = server.get("version")
        return replace(
            known,
            engine="vllm",
            engine_version=version if isinstance(version, str) else None,
            deployment="self_deployed" if "server_args" in server else UNKNOWN,
        )
    if provider == "lm-eval":
        kind, _, model = model_name.partition("/")
        developer, name = _developer_and_model(model or kind)
        version = server.get("lm_eval")
        return replace(
            known,
            developer=developer,
            model=name,
            engine=f"lm-eval {kind}",
            engine_version=version if isinstance(version, str) else None,
        )
    if provider in _LOCAL:
        is_local = bool(hosts) and hosts <= _LOOPBACK
        return replace(known, engine=provider, deployment="self_deployed" if is_local else UNKNOWN)
    return known


def _developer_and_model(name: str) -> tuple[str, str]:
    """Developer and model; the developer is unknown unless `name` has the form of a hub's."""
    if HUB_NAME.fullmatch(name):
        developer, _, model = name.partition("/")
        return developer, model
    return UNKNOWN, _flat(name)


def _flat(name: str) -> str:
    return re.sub(r"/+", "_", name.strip("/")) or UNKNOWN


def _hosts(server: Mapping[str, Any]) -> set[str]:
    """The hosts that the requests were sent to; an empty name for an address that has none."""
    hosts = set()
    for url in addresses(server):
        try:
            hosts.add(urlsplit(url).hostname or "")
        except ValueError:
            hosts.add("")
    return hosts
