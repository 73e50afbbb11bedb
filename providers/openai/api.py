"""OpenAI and whatever speaks its chat-completions form, through the official SDK.

The SDK's own retries are off: the runner's are the only ones.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx2
import openai

from providers.base import (
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ModelSettings,
    ProviderError,
    Reply,
    ReplyTimeoutError,
    Request,
    SetupError,
    environment_key,
)
from providers.catalog.endpoints import Endpoint, address_problem, endpoints
from providers.catalog.model_facts import ModelFacts, model_facts
from providers.http.errors import error_of, rejected_parameter
from providers.http.replicas import Replicas
from providers.http.sdk import bad_reply, http_client
from providers.openai.form import OpenAIForm, read_json, reply_of
from providers.secrets import keep_secret, redact_address

TIMEOUT_S = 600.0
"""For one reply; long ones take minutes."""
AZURE_VARIABLES = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")
_NO_KEY = "none"
_REJECTED = (openai.BadRequestError, openai.UnprocessableEntityError)


class OpenAIProvider:
    """One model behind one OpenAI-compatible address, or behind several replicas of it."""

    def __init__(
        self,
        clients: Sequence[openai.AsyncOpenAI],
        settings: ModelSettings,
        *,
        endpoint: Endpoint,
        facts: ModelFacts,
    ) -> None:
        self._clients = Replicas(clients)
        self._settings = settings
        self._endpoint = endpoint
        self._facts = facts
        self._form = OpenAIForm(settings, endpoint, facts)

    @property
    def clients(self) -> Sequence[openai.AsyncOpenAI]:
        """One for each address."""
        return list(self._clients)

    async def complete(self, request: Request) -> Reply:
        """The reply; a parameter that the server does not know is left out from then on."""
        while True:
            body = self._form.body(request)
            try:
                with self._clients.use(request.prefix) as client:
                    reply = await self._send(client, body)
                return replace(reply, dropped_params=tuple(sorted(self._form.dropped)))
            except ProviderError as error:
                if not isinstance(error.__cause__, _REJECTED):
                    raise
                text = error.__cause__.response.text
                name = rejected_parameter(text, body)
                if name is None or not self._form.adapt(name, text):
                    raise

    async def _send(self, client: openai.AsyncOpenAI, body: dict[str, Any]) -> Reply:
        create: Any = client.chat.completions.with_raw_response.create
        asked = {"messages": body.pop("messages", None)}
        if self._settings.api == "completions":
            create = client.completions.with_raw_response.create
            asked = {"prompt": body.pop("prompt", None)}
        with sdk_errors(client):
            async with asyncio.timeout(TIMEOUT_S):  # the SDK's own is for each piece of a reply
                raw = await create(model=self._settings.model, **asked, extra_body=body)
                content = await raw.http_response.aread()
        return reply_of(read_json(content))

    async def facts(self) -> Mapping[str, object]:
        """Where the model was asked and how."""
        urls = sorted(redact_address(str(client.base_url)) for client in self._clients)
        thinks = {"think_tokens": self._facts.think_tokens, "effort": self._facts.effort}
        habits = {"drop": self._endpoint.drop, "rename": dict(self._endpoint.rename)}
        said = {name: habit for name, habit in habits.items() if habit}
        where = {"engine": "openai", "base_url": urls}
        return where | said | (thinks if self._facts.reasoning else {})

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:  # noqa: ARG002
        """Nobody knows: the vendors' tokenizers are not here."""
        return None

    async def aclose(self) -> None:
        for client in self._clients:
            await client.close()


@contextmanager
def sdk_errors(client: openai.AsyncOpenAI) -> Iterator[None]:
    """The SDK's errors as ours."""
    try:
        yield
    except openai.OpenAIError as error:
        raise mapped(error, client) from error
    except UnicodeEncodeError as error:
        raise BadRequestError(f"the prompt cannot be sent: {error.reason}") from error
    except TimeoutError as error:
        raise ReplyTimeoutError(f"no reply within {TIMEOUT_S:.0f} s") from error
    except httpx2.HTTPError as error:
        raise BrokenConnectionError(f"the connection broke: {error}") from error


def mapped(error: openai.OpenAIError, client: openai.AsyncOpenAI) -> ProviderError:
    """What an error of the SDK's is in our tree."""
    if isinstance(error, openai.APIStatusError):
        return error_of(error.response.status_code, error.response.text, error.response.headers)
    if isinstance(error, openai.APITimeoutError):
        return ReplyTimeoutError(f"no reply within {TIMEOUT_S:.0f} s")
    if isinstance(error, openai.APIConnectionError):
        where, cause = redact_address(str(client.base_url)), error.__cause__ or error
        return bad_reply(error) or BrokenConnectionError(f"no connection to {where}: {cause}")
    return BadReplyError(" ".join(str(error).split()))


def open_provider(settings: ModelSettings) -> OpenAIProvider:
    """The model at the settings' addresses, else at its provider's.

    At an address of the user's own no vendor's habits are assumed, and no key is needed.

    Raises:
        SetupError: the key is missing, or the address or a proxy is none.
    """
    endpoint = endpoints()[settings.provider]
    key = environment_key(endpoint.key) if endpoint.key else ""
    if settings.base_urls:
        endpoint = Endpoint(base_url=settings.base_urls[0])
    if endpoint.key and not key:
        raise SetupError(
            f"{settings.provider} needs a key: set {endpoint.key}, or try --model tiny, which "
            "needs none"
        )
    clients = [
        openai.AsyncOpenAI(
            api_key=key or _NO_KEY,
            base_url=url,
            max_retries=0,
            timeout=TIMEOUT_S,
            http_client=http_client(openai.DefaultAsyncHttpxClient, url),
        )
        for url in settings.base_urls or (endpoint.base_url,)
    ]
    facts = model_facts(f"{settings.provider}/{settings.model}")
    return OpenAIProvider(clients, settings, endpoint=endpoint, facts=facts)


def open_azure(settings: ModelSettings) -> OpenAIProvider:
    """A deployment on Azure, by the variables that the SDK reads.

    Raises:
        SetupError: one of them is missing.
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
        [openai.AsyncAzureOpenAI(max_retries=0, timeout=TIMEOUT_S, http_client=client)],
        settings,
        endpoint=Endpoint(base_url=address),
        facts=model_facts(f"azure/{settings.model}"),
    )
