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
    NoReplyError,
    ProviderError,
    Reply,
    Request,
    SetupError,
    environment_key,
    redact,
)
from providers.endpoints import Endpoint, endpoints
from providers.http_errors import error_of, rejected_parameter
from providers.model_facts import ModelFacts, model_facts
from providers.openai_form import body_of, read_json, reply_of
from providers.replicas import Replicas

TIMEOUT_S = 600.0
"""For one reply; long ones take minutes."""
AZURE_VARIABLES = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")
_NO_KEY = "none"
_OTHER_NAMES = {"max_tokens": "max_completion_tokens"}
"""Parameter -> what newer models call it."""


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
        self._dropped: set[str] = set()
        self._renamed: dict[str, str] = {}

    async def complete(self, request: Request) -> Reply:
        """The reply; a parameter that the server does not know is left out from then on."""
        while True:
            body = self._body(request)
            try:
                with self._clients.use(request.prefix) as client:
                    reply = await self._send(client, body)
                return replace(reply, without=tuple(sorted(self._dropped)))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                text = error.response.text
                name = rejected_parameter(text, body)
                if name is None or not self._adapt(name, text):
                    raise self._mapped(error, "") from error

    def _adapt(self, name: str, said: str) -> bool:
        """Asks without `name` from now on, or by the other name that the server wants for it.

        False for the limit of the reply's tokens, without which there is no limit to the cost.
        """
        if name in self._dropped or name in self._renamed:
            return True  # another request found out meanwhile
        other = next(
            (new for old, new in _OTHER_NAMES.items() if old == name and new in said), None
        )
        model = self._settings.model
        if other is not None:
            self._renamed[name] = other
            self._settings.notify(f"{model} wants {other!r} for {name!r}")
        elif name in _OTHER_NAMES.values() or name in _OTHER_NAMES:
            return False
        else:
            self._dropped.add(name)
            self._settings.notify(f"{model} does not take {name!r}; it is asked without")
        return True

    async def _send(self, client: openai.AsyncOpenAI, body: dict[str, Any]) -> Reply:
        create: Any = client.chat.completions.with_raw_response.create
        asked = {"messages": body.pop("messages", None)}
        if self._settings.api == "completions":
            create = client.completions.with_raw_response.create
            asked = {"prompt": body.pop("prompt", None)}
        with self._errors(client):
            async with asyncio.timeout(TIMEOUT_S):  # the SDK's own is for each piece of a reply
                raw = await create(model=self._settings.model, **asked, extra_body=body)
                content = await raw.http_response.aread()
        return reply_of(read_json(content))

    def _body(self, request: Request) -> dict[str, Any]:
        """What is sent besides the model."""
        body: dict[str, Any] = {"max_tokens": request.max_tokens}
        if self._facts.reasoning:
            body["max_tokens"] += self._facts.think_tokens
            body["reasoning_effort"] = self._facts.effort
        else:
            body["temperature"] = request.temperature
        body["seed"] = request.seed
        rename = {**self._endpoint.rename, **self._renamed}
        renamed = {
            rename.get(name, name): value
            for name, value in (body_of(request, self._settings) | body).items()
            if value is not None
        }
        for name in (*self._endpoint.drop, *self._dropped):
            renamed.pop(name, None)
        return renamed

    @contextmanager
    def _errors(self, client: openai.AsyncOpenAI) -> Iterator[None]:
        """The SDK's errors as ours, all but the 400 and 422 that `complete` looks into."""
        try:
            yield
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            raise
        except openai.OpenAIError as error:
            raise self._mapped(error, str(client.base_url)) from error
        except UnicodeEncodeError as error:
            raise BadRequestError(f"the prompt cannot be sent: {error.reason}") from error
        except TimeoutError as error:
            raise NoReplyError(f"no reply within {TIMEOUT_S:.0f} s") from error
        except httpx2.HTTPError as error:
            raise BrokenConnectionError(f"the connection broke: {error}") from error

    def _mapped(self, error: openai.OpenAIError, address: str) -> ProviderError:
        key = next(iter(self._clients)).api_key
        secret = "" if key == _NO_KEY else key
        if isinstance(error, openai.APIStatusError):
            response = error.response
            return error_of(response.status_code, response.text, response.headers, secret=secret)
        if isinstance(error, openai.APITimeoutError):
            return NoReplyError(f"no reply within {TIMEOUT_S:.0f} s")
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            return BrokenConnectionError(redact(f"no connection to {address}: {cause}", secret))
        return BadReplyError(redact(" ".join(str(error).split()), secret))

    async def facts(self) -> Mapping[str, object]:
        """Where the model was asked and how."""
        urls = sorted(redact(str(client.base_url)) for client in self._clients)
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


def open_provider(settings: ModelSettings) -> OpenAIProvider:
    """The model at the settings' addresses, else at its provider's.

    At an address of the user's own no vendor's habits are assumed, and no key is needed.

    Raises:
        SetupError: the key is missing.
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
        openai.AsyncOpenAI(api_key=key or _NO_KEY, base_url=url, max_retries=0, timeout=TIMEOUT_S)
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
    return OpenAIProvider(
        [openai.AsyncAzureOpenAI(max_retries=0, timeout=TIMEOUT_S)],
        settings,
        endpoint=Endpoint(base_url=os.environ[AZURE_VARIABLES[0]]),
        facts=model_facts(f"azure/{settings.model}"),
    )
