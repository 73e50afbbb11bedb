"""The descriptors of OpenAI and all vendors and servers with its API, and of Azure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from eyechart.providers.base import Api
from eyechart.providers.catalog.endpoints import LOCAL, OPEN_SERVER, Endpoint, endpoint_of
from eyechart.providers.descriptor import (
    Descriptor,
    Destination,
    Environment,
    Service,
    at,
    key_in,
    key_needed,
)
from eyechart.providers.secrets import redact_address

AZURE_VARIABLES = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")
"""The address, the key and the version of the API."""


def _at_users(
    addresses: Sequence[str], _model_args: Sequence[str], environ: Environment
) -> Destination | None:
    """Servers of the user's, which get OpenAI's key."""
    key = endpoint_of(LOCAL, addresses, environ).key
    return at(addresses, key_in(key, environ)) if addresses else None


def _likelihood(endpoint: Endpoint) -> Callable[[Sequence[str]], tuple[Api, ...]]:
    """No vendor gives the probabilities of options; servers of the user's do."""
    is_local = endpoint.serves == "local server"
    return lambda addresses: endpoint.likelihood if addresses or is_local else ()


COMPATIBLE = Descriptor(
    name=LOCAL,
    opens="eyechart.providers.openai.api:open_provider",
    batch_form="eyechart.providers.openai.batch_form:open_compatible",
    batch_service="eyechart.providers.openai.batch:open_service",
    thinking=lambda _addresses: OPEN_SERVER,
    takes_turns=True,
    takes_params=True,
    takes_headers=True,
    likelihood=_likelihood(Endpoint(base_url="http://localhost")),
    thinking_takes_temperature=bool,
    destination=_at_users,
)
"""A server of the user's own, at the addresses of a command."""


def vendor(name: str, endpoint: Endpoint) -> Descriptor:
    """The descriptor of a server or vendor that has an entry in a file of endpoints."""

    def destination(
        addresses: Sequence[str], _model_args: Sequence[str], environ: Environment
    ) -> Destination:
        key = key_in(endpoint.key, environ)
        return at(addresses, key) if addresses else Destination((endpoint.base_url,), key)

    def needs(environ: Environment) -> str:
        if endpoint.key is None:
            return redact_address(endpoint.base_url)
        variable, _ = endpoint.moved(environ)
        moved = f", {variable} (set)" if variable else ""
        return f"{key_needed(endpoint.key, environ)}{moved}"

    is_local = endpoint.prices is None
    return replace(
        COMPATIBLE,
        name=name,
        title=endpoint.title,
        needs=needs,
        efforts="any" if is_local else "listed",
        likelihood=_likelihood(endpoint),
        counts_tokens="server" if "chat" in endpoint.likelihood else "",
        thinking=lambda addresses: OPEN_SERVER if addresses else endpoint.thinking,
        tiers=lambda addresses: () if addresses else tuple(endpoint.tiers),
        destination=destination,
        moved=endpoint.moved,
        prices=endpoint.prices,
        base_url=endpoint.base_url,
        service=Service(
            endpoint.serves or "",
            endpoint.developer,
            endpoint.weights,
            urlsplit(endpoint.base_url).hostname or "",
        ),
    )


def _azure_destination(
    _addresses: Sequence[str], _model_args: Sequence[str], environ: Environment
) -> Destination:
    address, key, _ = AZURE_VARIABLES
    return Destination((environ.get(address, ""),), key_in(key, environ))


AZURE = Descriptor(
    name="azure",
    title="a deployment on Azure OpenAI",
    needs=lambda environ: ", ".join(key_needed(name, environ) for name in AZURE_VARIABLES),
    opens="eyechart.providers.openai.api:open_azure",
    users_name_models=True,
    takes_address=False,
    takes_turns=True,
    takes_params=True,
    takes_headers=True,
    thinking_takes_temperature=bool,
    destination=_azure_destination,
    prices="azure",
    service=Service("other models"),
)
