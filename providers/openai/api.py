"""OpenAI and servers with the same API."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from eyechart.providers.base import (
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    SetupError,
    TransientError,
    UnknownModelError,
    environment_key,
)
from eyechart.providers.catalog.endpoints import DEFAULT, Endpoint, address_problem, endpoint_of
from eyechart.providers.catalog.model_facts import ModelFacts, model_facts
from eyechart.providers.http.client import Client
from eyechart.providers.http.replicas import Replicas, check_replicas
from eyechart.providers.naming import named
from eyechart.providers.openai.adapting import AdaptingClient
from eyechart.providers.openai.descriptor import AZURE_VARIABLES
from eyechart.providers.openai.form import (
    OpenAIForm,
    asked_fields,
    path_of,
    reply_of,
    writes_cost,
)
from eyechart.providers.openai.llamacpp import OWNER, LlamaCpp
from eyechart.providers.openai.models import said_of_model, served_names
from eyechart.providers.openai.remedies import Remedies
from eyechart.providers.openai.scoring import OptionScores, echo_body, options_of
from eyechart.providers.secrets import redact_address

_ACCOUNT = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
"""Variables that say who pays, where a key has several -> the headers."""


class OpenAIProvider:
    """One model at one OpenAI-compatible address, or at the addresses of several replicas."""

    def __init__(
        self,
        clients: Sequence[Client],
        settings: ModelSettings,
        *,
        endpoint: Endpoint,
        facts: ModelFacts,
        lists_models: bool = True,
    ) -> None:
        """`lists_models`: whether to ask a server that is no vendor's for its models."""
        self._asks_models = lists_models and endpoint.prices is None
        self.clients = Replicas(clients)
        """One for each address."""
        self._settings = settings
        self._endpoint = endpoint
        self._facts = facts
        self._remedies = Remedies(settings, endpoint.key)
        self._scores = OptionScores()
        self._own: dict[Client, LlamaCpp | None] = {}
        self._recognising = asyncio.Lock()
        self._names: str | None = None
        """What the server has in place of a model that it does not know; `None`: not asked."""
        self._form = OpenAIForm(settings, endpoint, facts, uncached=writes_cost(settings, endpoint))
        self._asking = AdaptingClient(self._form, settings, self._remedies)
        self._path = path_of(settings)

    async def complete(self, request: Request) -> Reply:
        """The model's reply; what the server rejects is left out, see `AdaptingClient`."""
        send = partial(self._complete, request.prefix)
        try:
            reply = await self._asking.complete(request, send)
        except UnknownModelError as error:
            raise await self._with_names(error) from error
        usage = reply.usage
        if usage is not None and usage.tier is None and self._settings.tier is not None:
            usage = replace(usage, tier=self._settings.tier)  # not all vendors say it
            return replace(reply, usage=usage)
        return reply

    async def _with_names(self, error: UnknownModelError) -> UnknownModelError:
        """The error with the names of the models that a server of the user's has."""
        async with self._recognising:
            if self._names is None and self._asks_models:
                client = next(iter(self.clients))
                with suppress(ProviderError):
                    self._names = served_names(await client.get("/models"), self._settings.model)
        return UnknownModelError(f"{error}; {self._names}") if self._names else error

    async def _complete(
        self, prefix: str, body: dict[str, Any], sent: Mapping[str, object]
    ) -> Reply:
        body["model"] = self._settings.model
        with self.clients.use(prefix) as client:
            return reply_of(await client.post(self._path, body), sent=sent)

    async def score(self, request: Request) -> Reply:
        """The probabilities of the options, from a server that repeats a prompt with them, or from
        llama.cpp's own server.
        """
        return await self._remedies.scored(self._score(request))

    async def _score(self, request: Request) -> Reply:
        with self.clients.use(request.prefix) as client:
            if (own := await self._llamacpp(client)) is not None:
                return await self._scores.of(own.score(request))
            if self._settings.api != "completions":
                raise SetupError(
                    f"{redact_address(client.address)} is no llama.cpp server, and others "
                    f"say nothing of the options of a chat; use {named('api', 'completions')}"
                )
            body = echo_body(request, self._settings)
            sending = client.post("/completions", {"model": self._settings.model, **body})
            return await self._scores.of(options_of(request, body, sending))

    async def facts(self) -> Mapping[str, object]:
        """The addresses, the endpoint's own rules, the reasoning effort, and the model's facts from
        a server that is no vendor's.

        Raises:
            SetupError: two servers say that they have different models.
        """
        urls = sorted(redact_address(client.address) for client in self.clients)
        effort = {"effort": self._facts.effort} if self._facts.effort else {}
        rules = {"drop": self._endpoint.drop, "rename": dict(self._endpoint.rename)}
        return {
            "engine": "openai",
            "base_url": urls,
            **{name: rule for name, rule in rules.items() if rule},
            **effort,
            **(await self._served() if self._asks_models else {}),
        }

    async def _served(self) -> dict[str, object]:
        """The facts of the model that all servers agree on; empty if a server gives none."""
        clients = list(self.clients)
        said = await asyncio.gather(*map(self._said_by, clients))
        pairs = zip(clients, said, strict=True)
        check_replicas({client.address: facts for client, facts in pairs if facts})
        return said[0] if all(said) else {}

    async def _said_by(self, client: Client) -> dict[str, object]:
        try:
            return await self._listed(client)
        except ProviderError:  # the first request for a reply says what is wrong
            return {}

    async def _listed(self, client: Client) -> dict[str, object]:
        return said_of_model(await client.get("/models"), self._settings.model)

    async def _llamacpp(self, client: Client) -> LlamaCpp | None:
        """What the server has of its own, if it is llama.cpp's."""
        async with self._recognising:
            if client not in self._own:
                self._own[client] = await self._recognised(client) if self._asks_models else None
            return self._own[client]

    async def _recognised(self, client: Client) -> LlamaCpp | None:
        """The same, by the list of models; raises `TransientError` if that cannot be had now."""
        try:
            said = await self._listed(client)
        except TransientError:
            raise
        except ProviderError:
            return None
        if said.get("owned_by") != OWNER:
            return None
        template = asked_fields(self._settings, self._endpoint.thinking)
        return LlamaCpp(
            self._settings,
            client,
            fields=self._form.neutral.fields | dict(self._settings.params),
            template=template.get("chat_template_kwargs", {}),
        )

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """The counts of a llama.cpp server; else `None`: tokenizers are not installed here."""
        own = await self._llamacpp(next(iter(self.clients)))
        return None if own is None else await own.count(prompts)

    async def aclose(self) -> None:
        for client in self.clients:
            await client.aclose()


def open_provider(settings: ModelSettings) -> OpenAIProvider:
    """Opens a model at the addresses in the settings, or else at its provider's address.

    At an address of the user, the vendor's own rules do not apply and no key is needed.

    Raises:
        SetupError: the key is missing, or the address or a proxy is invalid.
    """
    endpoint = endpoint_of(settings.provider, settings.base_urls)
    headers = _headers(settings, endpoint)
    clients = [
        Client(url, headers=headers, given=settings.headers)
        for url in settings.base_urls or (endpoint.base_url,)
    ]
    facts = model_facts(f"{settings.provider}/{settings.model}").asked_for(settings.effort)
    return OpenAIProvider(clients, settings, endpoint=endpoint, facts=facts)


def _headers(settings: ModelSettings, endpoint: Endpoint) -> dict[str, str]:
    """The headers that say who asks; raises `SetupError` where a vendor's key is missing."""
    key = environment_key(endpoint.key) if endpoint.key else ""
    if endpoint.key and not key and not settings.base_urls:
        raise SetupError(
            f"{settings.provider} needs a key: set {endpoint.key}, or try "
            f"{named('model', 'tiny')}, which needs none"
        )
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if settings.provider == DEFAULT and not settings.base_urls:
        account = {name: os.environ.get(variable, "") for variable, name in _ACCOUNT.items()}
        headers |= {name: value for name, value in account.items() if value}
    return headers


def open_azure(settings: ModelSettings) -> OpenAIProvider:
    """Opens a deployment on Azure, whose address and key are in `AZURE_VARIABLES`.

    Raises:
        SetupError: a variable is not set, or the address or a proxy is invalid.
    """
    for variable in AZURE_VARIABLES:
        if not os.environ.get(variable):
            raise SetupError(f"azure needs {', '.join(AZURE_VARIABLES)}; {variable} is not set")
    address, _, version = (os.environ[variable] for variable in AZURE_VARIABLES)
    if problem := address_problem(address):
        raise SetupError(f"{AZURE_VARIABLES[0]} {redact_address(address)!r} {problem}")
    client = Client(
        f"{address.rstrip('/')}/openai/deployments/{quote(settings.model, safe='')}",
        headers={"api-key": environment_key(AZURE_VARIABLES[1])},
        given=settings.headers,
        query=urlencode({"api-version": version}),
    )
    return OpenAIProvider(
        [client],
        settings,
        endpoint=Endpoint(base_url=address),
        lists_models=False,
        facts=model_facts(f"azure/{settings.model}").asked_for(settings.effort),
    )
