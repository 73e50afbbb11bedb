"""OpenAI and servers with the same API, through the official SDK.

The SDK does not retry: only the runner does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import httpx2
import openai
from msgspec.structs import replace

from eyechart.providers.base import (
    TIMEOUT_S,
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ModelSettings,
    ProviderError,
    Reply,
    ReplyTimeoutError,
    Request,
    SetupError,
    TransientError,
    UnknownModelError,
    environment_key,
)
from eyechart.providers.catalog.endpoints import Endpoint, address_problem, endpoint_of
from eyechart.providers.catalog.model_facts import ModelFacts, model_facts
from eyechart.providers.http.replicas import Replicas, check_replicas
from eyechart.providers.http.sdk import NO_KEY, broken, http_client, proxied, status_error
from eyechart.providers.naming import named
from eyechart.providers.openai.adapting import Adapting
from eyechart.providers.openai.descriptor import AZURE_VARIABLES
from eyechart.providers.openai.form import (
    OpenAIForm,
    asked_fields,
    read_json,
    reply_of,
    writes_cost,
)
from eyechart.providers.openai.llamacpp import OWNER, LlamaCpp
from eyechart.providers.openai.models import said_of_model, served_names
from eyechart.providers.openai.remedies import Remedies
from eyechart.providers.openai.scoring import OptionScores, echo_body, options_of
from eyechart.providers.secrets import keep_secret, redact_address

_FACTS_S = 30.0
"""Longest wait for the list of a server's models."""
_REJECTED = (openai.BadRequestError, openai.UnprocessableEntityError)


class OpenAIProvider:
    """One model at one OpenAI-compatible address, or at the addresses of several replicas."""

    def __init__(
        self,
        clients: Sequence[openai.AsyncOpenAI],
        settings: ModelSettings,
        *,
        endpoint: Endpoint,
        facts: ModelFacts,
        lists_models: bool = True,
    ) -> None:
        """`lists_models`: whether to ask a server that is no vendor's for its models."""
        self._asks_models = lists_models and endpoint.prices is None
        self._clients = Replicas(clients)
        self._settings = settings
        self._endpoint = endpoint
        self._facts = facts
        self._remedies = Remedies(settings, endpoint.key)
        self._scores = OptionScores()
        self._own: dict[openai.AsyncOpenAI, LlamaCpp | None] = {}
        self._recognising = asyncio.Lock()
        self._names: str | None = None
        """What the server has in place of a model that it does not know; `None`: not asked."""
        self._form = OpenAIForm(settings, endpoint, facts, uncached=writes_cost(settings, endpoint))
        self._asking = Adapting(self._form, settings, _refused, self._remedies)

    @property
    def clients(self) -> Sequence[openai.AsyncOpenAI]:
        """One client for each address."""
        return list(self._clients)

    async def complete(self, request: Request) -> Reply:
        """The model's reply; what the server rejects is left out, see `Adapting`."""
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
                client = next(iter(self._clients))
                with suppress(ProviderError):
                    listing = client.models.with_raw_response.list()
                    read = await json_of(client, listing, _FACTS_S)
                    self._names = served_names(read, self._settings.model)
        return UnknownModelError(f"{error}; {self._names}") if self._names else error

    async def _complete(
        self, prefix: str, body: dict[str, Any], sent: Mapping[str, object]
    ) -> Reply:
        with self._clients.use(prefix) as client:
            return reply_of(await self._read(client, body), sent=sent)

    async def score(self, request: Request) -> Reply:
        """The probabilities of the options, from a server that repeats a prompt with them, or from
        llama.cpp's own server.
        """
        return await self._remedies.scored(self._score(request))

    async def _score(self, request: Request) -> Reply:
        with self._clients.use(request.prefix) as client:
            if (own := await self._llamacpp(client)) is not None:
                return await self._scores.of(own.score(request))
            if self._settings.api != "completions":
                raise SetupError(
                    f"{redact_address(str(client.base_url))} is no llama.cpp server, and others "
                    f"say nothing of the options of a chat; use {named('api', 'completions')}"
                )
            body = echo_body(request, self._settings)
            sending = self._read(client, dict(body))
            return await self._scores.of(options_of(request, body, sending))

    async def _read(self, client: openai.AsyncOpenAI, body: dict[str, Any]) -> Any:
        create: Any = client.chat.completions.with_raw_response.create
        prompt = {name: body.pop(name) for name in ("messages", "prompt") if name in body}
        if "prompt" in prompt:
            create = client.completions.with_raw_response.create
        return await json_of(client, create(model=self._settings.model, **prompt, extra_body=body))

    async def facts(self) -> Mapping[str, object]:
        """The addresses, the endpoint's own rules, the reasoning effort, and the model's facts from
        a server that is no vendor's.

        Raises:
            SetupError: two servers say that they have different models.
        """
        urls = sorted(redact_address(str(client.base_url)) for client in self._clients)
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
        clients = list(self._clients)
        said = await asyncio.gather(*map(self._said_by, clients))
        pairs = zip(clients, said, strict=True)
        check_replicas({str(client.base_url): facts for client, facts in pairs if facts})
        return said[0] if all(said) else {}

    async def _said_by(self, client: openai.AsyncOpenAI) -> dict[str, object]:
        try:
            return await self._listed(client)
        except ProviderError:  # the first request for a reply says what is wrong
            return {}

    async def _listed(self, client: openai.AsyncOpenAI) -> dict[str, object]:
        read = await json_of(client, client.models.with_raw_response.list(), _FACTS_S)
        return said_of_model(read, self._settings.model)

    async def _llamacpp(self, client: openai.AsyncOpenAI) -> LlamaCpp | None:
        """What the server has of its own, if it is llama.cpp's."""
        async with self._recognising:
            if client not in self._own:
                self._own[client] = await self._recognised(client) if self._asks_models else None
            return self._own[client]

    async def _recognised(self, client: openai.AsyncOpenAI) -> LlamaCpp | None:
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
            partial(_at_root, client),
            partial(self._read, client),
            fields=self._form.neutral.fields | dict(self._settings.params),
            template=template.get("chat_template_kwargs", {}),
        )

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """The counts of a llama.cpp server; else `None`: tokenizers are not installed here."""
        own = await self._llamacpp(next(iter(self._clients)))
        return None if own is None else await own.count(prompts)

    async def aclose(self) -> None:
        for client in self._clients:
            await client.close()


def _refused(error: ProviderError) -> str | None:
    """What a server said when it refused a request as invalid; `None` for other errors."""
    cause = error.__cause__
    return cause.response.text if isinstance(cause, _REJECTED) else None


async def _at_root(client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any] | None) -> Any:
    """The JSON at a path beside `/v1`; a body is sent there."""
    url = f"{str(client.base_url).rstrip('/').removesuffix('/v1')}{path}"
    with sdk_errors(client):
        async with asyncio.timeout(TIMEOUT_S):
            if body is None:
                response = await client.get(url, cast_to=httpx2.Response)
            else:
                response = await client.post(url, cast_to=httpx2.Response, body=body)
            return read_json(await response.aread())


async def json_of(
    client: openai.AsyncOpenAI, sending: Awaitable[Any], within_s: float | None = None
) -> Any:
    """The JSON of a raw response of the SDK; raises a `ProviderError` and nothing else."""
    within_s = within_s or TIMEOUT_S
    with sdk_errors(client, within_s):
        async with asyncio.timeout(within_s):  # the SDK's limit is for each piece
            return read_json(await (await sending).http_response.aread())


@contextmanager
def sdk_errors(client: openai.AsyncOpenAI, within_s: float = TIMEOUT_S) -> Iterator[None]:
    """Raises the SDK's errors as errors of `providers.base`."""
    try:
        yield
    except openai.OpenAIError as error:
        raise mapped(error, client) from error
    except BadReplyError as error:  # such as the page of a proxy
        raise proxied(error, str(client.base_url)) from error
    except UnicodeEncodeError as error:
        raise BadRequestError(f"the prompt cannot be sent: {error.reason}") from error
    except TimeoutError as error:
        raise ReplyTimeoutError(f"no reply within {within_s:.0f} s") from error
    except httpx2.HTTPError as error:
        raise BrokenConnectionError(f"the connection broke: {error}") from error


def mapped(error: openai.OpenAIError, client: openai.AsyncOpenAI) -> ProviderError:
    """The error of `providers.base` for an error of the SDK."""
    if isinstance(error, openai.APIStatusError):
        return status_error(error.response, str(client.base_url))
    if isinstance(error, openai.APITimeoutError):
        return ReplyTimeoutError(f"no reply within {TIMEOUT_S:.0f} s")
    if isinstance(error, openai.APIConnectionError):
        return broken(error, str(client.base_url))
    return BadReplyError(" ".join(str(error).split()))


def open_provider(settings: ModelSettings) -> OpenAIProvider:
    """Opens a model at the addresses in the settings, or else at its provider's address.

    At an address of the user, the vendor's own rules do not apply and no key is needed.

    Raises:
        SetupError: the key is missing, or the address or a proxy is invalid.
    """
    endpoint = endpoint_of(settings.provider, settings.base_urls)
    key = environment_key(endpoint.key) if endpoint.key else ""
    if endpoint.key and not key and not settings.base_urls:
        raise SetupError(
            f"{settings.provider} needs a key: set {endpoint.key}, or try "
            f"{named('model', 'tiny')}, which needs none"
        )
    clients = [
        openai.AsyncOpenAI(
            api_key=key or NO_KEY,
            base_url=url,
            max_retries=0,
            timeout=TIMEOUT_S,
            default_headers=settings.headers,
            http_client=http_client(openai.DefaultAsyncHttpxClient, url),
        )
        for url in settings.base_urls or (endpoint.base_url,)
    ]
    facts = model_facts(f"{settings.provider}/{settings.model}").asked_for(settings.effort)
    return OpenAIProvider(clients, settings, endpoint=endpoint, facts=facts)


def open_azure(settings: ModelSettings) -> OpenAIProvider:
    """Opens a deployment on Azure, whose address and key are in `AZURE_VARIABLES`.

    Raises:
        SetupError: a variable is not set, or the address or a proxy is invalid.
    """
    for variable in AZURE_VARIABLES:
        if not os.environ.get(variable):
            raise SetupError(f"azure needs {', '.join(AZURE_VARIABLES)}; {variable} is not set")
    address = os.environ[AZURE_VARIABLES[0]]
    if problem := address_problem(address):
        raise SetupError(f"{AZURE_VARIABLES[0]} {redact_address(address)!r} {problem}")
    keep_secret(os.environ[AZURE_VARIABLES[1]])
    client = http_client(openai.DefaultAsyncHttpxClient, address)
    return OpenAIProvider(
        [
            openai.AsyncAzureOpenAI(
                max_retries=0,
                timeout=TIMEOUT_S,
                default_headers=settings.headers,
                http_client=client,
            )
        ],
        settings,
        endpoint=Endpoint(base_url=address),
        lists_models=False,
        facts=model_facts(f"azure/{settings.model}").asked_for(settings.effort),
    )
