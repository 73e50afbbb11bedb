"""Who made the model of a run and who served it, from what its manifest says.

Nothing is guessed from the name of a model: what the label and the server do not say stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from harness.journal.manifest import Manifest

UNKNOWN: Literal["unknown"] = "unknown"
Weights: TypeAlias = Literal["open", "closed", "unknown"]
Deployment: TypeAlias = Literal["self_deployed", "externally_managed", "unknown"]

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.:+-]*", re.ASCII)
"""`organisation/model`, as model hubs write it; more slashes are a path."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who answers under an address of his own, with models that he made."""

    developer: str
    """The name under which he publishes."""
    host: str
    weights: Weights = UNKNOWN
    """Of all that he serves; unknown where he serves both kinds."""


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
"""Who serves models that others made -> the host of his address."""
_LOCAL = ("ollama", "llamacpp", "lmstudio")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_OURS = ("tiny", "scripted")


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """A model as others would look for it."""

    name: str
    """The run's label."""
    developer: str
    model: str
    """Its name without the developer's."""
    platform: str | None = None
    """Whose service answered."""
    engine: str | None = None
    """What software ran the model."""
    engine_version: str | None = None
    deployment: Deployment = UNKNOWN
    """Whether the user had it running or somebody else."""
    weights: Weights = UNKNOWN

    @property
    def id(self) -> str:
        """`developer/model`."""
        return f"{self.developer}/{self.model}"


def identify(
    manifest: Manifest, model_id: str | None = None, weights: Weights | None = None
) -> ModelIdentity:
    """What is known of the model; `model_id`, of the form of `HUB_NAME`, and `weights` are the
    user's word and win.
    """
    found = _identify(manifest)
    developer, _, model = (model_id or found.id).partition("/")
    return replace(found, developer=developer, model=model, weights=weights or found.weights)


def _identify(manifest: Manifest) -> ModelIdentity:
    server = manifest.server
    provider, _, asked = manifest.model.partition("/")
    known = ModelIdentity(manifest.model, *_named(asked or provider))
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
            model=_flat(asked),
            platform=provider,
            deployment="externally_managed",
            weights=vendor.weights,
        )
    if vendor is not None and not hosts:  # replies from files: who served them is not known
        return replace(known, developer=vendor.developer, model=_flat(asked))
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
        kind, _, model = asked.partition("/")
        developer, name = _named(model or kind)
        version = server.get("lm_eval")
        return replace(
            known,
            developer=developer,
            model=name,
            engine=f"lm-eval {kind}",
            engine_version=version if isinstance(version, str) else None,
        )
    if provider in _LOCAL:
        here = bool(hosts) and hosts <= _LOOPBACK
        return replace(known, engine=provider, deployment="self_deployed" if here else UNKNOWN)
    return known


def _named(asked: str) -> tuple[str, str]:
    """Developer and model, where the name has the form of a hub's."""
    if HUB_NAME.fullmatch(asked):
        developer, _, model = asked.partition("/")
        return developer, model
    return UNKNOWN, _flat(asked)


def _flat(name: str) -> str:
    return re.sub(r"/+", "_", name.strip("/")) or UNKNOWN


def _hosts(server: Mapping[str, Any]) -> set[str]:
    """Where the model was asked."""
    said = server.get("base_url")
    urls = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    found = set()
    for url in urls:
        try:
            found.add(urlsplit(str(url)).hostname or "")
        except ValueError:
            found.add("")
    return found
