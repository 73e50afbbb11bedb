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
from eyechart.providers.descriptors import descriptor_of

UNKNOWN: Literal["unknown"] = "unknown"
Weights: TypeAlias = Literal["open", "closed", "unknown"]
Deployment: TypeAlias = Literal["self_deployed", "externally_managed", "unknown"]

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.:+-]*", re.ASCII)
"""`organisation/model`, as model hubs write it; more slashes are a path."""


_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


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
    server, hosts = manifest.server, _hosts(manifest.server)
    provider, _, model_name = manifest.asked_as.partition("/")
    published = manifest.model_name.removeprefix(f"{provider}/") or provider
    known = ModelIdentity(manifest.model, *_developer_and_model(published))
    service = descriptor_of(provider, {}).service
    is_there = hosts == {service.host}
    match service.kind:
        case "ours":
            return replace(
                known,
                developer=service.developer,
                model=provider,
                engine=f"eyechart {provider}",
                engine_version=manifest.software.get("eyechart"),
                deployment="self_deployed",
                weights=service.weights,
            )
        case "own models" if is_there or not hosts:  # without hosts the replies are from files
            named = replace(known, developer=service.developer, model=_flat(model_name))
            if not is_there:
                return named
            return replace(
                named, platform=provider, deployment="externally_managed", weights=service.weights
            )
        case "other models" if is_there or not service.host:
            return replace(known, platform=provider, deployment="externally_managed")
        case "local server":
            is_local = bool(hosts) and hosts <= _LOOPBACK
            where: Deployment = "self_deployed" if is_local else UNKNOWN
            return replace(known, engine=provider, deployment=where)
        case "engine":
            return _in_engine(known, provider, model_name, server)
    return known


def _in_engine(
    known: ModelIdentity, provider: str, model_name: str, server: Mapping[str, Any]
) -> ModelIdentity:
    """The identity of a model that a library runs; its name may begin with a type of models."""
    one = descriptor_of(provider, {})
    version = server.get(one.service.version)
    served = replace(
        known,
        engine=provider,
        engine_version=version if isinstance(version, str) else None,
        deployment="self_deployed" if "server_args" in server else UNKNOWN,
    )
    if one.model_args is None:
        return served
    kind, _, model = model_name.partition("/")
    developer, name = _developer_and_model(model or kind)
    return replace(served, developer=developer, model=name, engine=f"{provider} {kind}")


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
