"""OpenAI and whatever speaks its chat-completions form, through the official SDK.

The SDK's own retries are off: the runner's are the only ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import orjson

from providers.base import (
    BadReplyError,
    BrokenConnectionError,
    ModelSettings,
    NoReplyError,
    ProviderError,
    Reply,
    Request,
    SetupError,
    redact,
)
from providers.chat_reply import reply_of
from providers.endpoints import Endpoint, endpoints
from providers.http_errors import error_of, rejected_parameter
from providers.model_facts import ModelFacts, model_facts

TIMEOUT_S = 600.0
"""For one reply; long ones take minutes."""
AZURE_VARIABLES = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")
_NO_KEY = "none"


class OpenAIProvider:
    """One model behind one OpenAI-compatible address."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        model: str,
        *,
        endpoint: Endpoint,
        facts: ModelFacts,
        notify: Callable[[str], None],
    ) -> None:
        self._client = client
        self._model = model
        self._endpoint = endpoint
        self._facts = facts
        self._notify = notify
        self._dropped: set[str] = set()

    async def complete(self, request: Request) -> Reply:
        """The reply; a parameter that the server rejects by name is left out from then on."""
        while True:
            body = self._body(request)
            try:
                return await self._send(request.prompt, body)
            except openai.BadRequestError as error:
                name = rejected_parameter(error.response.text, body)
                if name is None:
                    raise self._mapped(error) from error
                if name not in self._dropped:
                    self._dropped.add(name)
                    self._notify(f"{self._model} does not take {name!r}; it is asked without")

    async def _send(self, prompt: str, body: dict[str, Any]) -> Reply:
        with self._errors():
            raw = await self._client.chat.completions.with_raw_response.create(
                model=self._model,
                messages=[{"role": "user", "content": prompt}],
                extra_body=body,
            )
            content = await raw.http_response.aread()
        try:
            return reply_of(orjson.loads(content))
        except orjson.JSONDecodeError as error:
            raise BadReplyError(f"the reply is not JSON: {error}") from error

    def _body(self, request: Request) -> dict[str, Any]:
        """What is sent besides model and messages."""
        body: dict[str, Any] = {"max_tokens": request.max_tokens}
        if self._facts.reasoning:
            body["max_tokens"] += self._facts.think_tokens
            body["reasoning_effort"] = self._facts.effort
        else:
            body["temperature"] = request.temperature
        body["seed"] = request.seed
        renamed = {
            self._endpoint.rename.get(name, name): value
            for name, value in body.items()
            if value is not None
        }
        for name in (*self._endpoint.drop, *self._dropped):
            renamed.pop(name, None)
        return renamed

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The SDK's errors as ours, all but the 400 that `complete` looks into."""
        try:
            yield
        except openai.BadRequestError:
            raise
        except openai.OpenAIError as error:
            raise self._mapped(error) from error
        except httpx2.HTTPError as error:
            raise BrokenConnectionError(f"the connection broke: {error}") from error

    def _mapped(self, error: openai.OpenAIError) -> ProviderError:
        secret = self._client.api_key
        if isinstance(error, openai.APIStatusError):
            response = error.response
            return error_of(response.status_code, response.text, response.headers, secret=secret)
        if isinstance(error, openai.APITimeoutError):
            return NoReplyError(f"no reply within {TIMEOUT_S:.0f} s")
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            address = self._client.base_url
            return BrokenConnectionError(redact(f"no connection to {address}: {cause}", secret))
        return BadReplyError(redact(" ".join(str(error).split()), secret))

    async def facts(self) -> Mapping[str, object]:
        """Where the model was asked."""
        return {"engine": "openai", "base_url": redact(str(self._client.base_url))}

    async def aclose(self) -> None:
        await self._client.close()


def open_provider(settings: ModelSettings) -> OpenAIProvider:
    """The model at the settings' address, else at its provider's.

    At an address of the user's own no vendor's habits are assumed, and no key is needed.

    Raises:
        SetupError: the key is missing.
    """
    endpoint = endpoints()[settings.provider]
    key = os.environ.get(endpoint.key, "") if endpoint.key else ""
    if settings.base_url is not None:
        endpoint = Endpoint(base_url=settings.base_url)
    if endpoint.key and not key:
        raise SetupError(
            f"{settings.provider} needs a key: set {endpoint.key}, or try --model tiny, which "
            "needs none"
        )
    client = openai.AsyncOpenAI(
        api_key=key or _NO_KEY, base_url=endpoint.base_url, max_retries=0, timeout=TIMEOUT_S
    )
    return OpenAIProvider(
        client,
        settings.model,
        endpoint=endpoint,
        facts=model_facts(f"{settings.provider}/{settings.model}"),
        notify=settings.notify,
    )


def open_azure(settings: ModelSettings) -> OpenAIProvider:
    """A deployment on Azure, by the variables that the SDK reads.

    Raises:
        SetupError: one of them is missing.
    """
    for variable in AZURE_VARIABLES:
        if not os.environ.get(variable):
            raise SetupError(f"azure needs {', '.join(AZURE_VARIABLES)}; {variable} is not set")
    return OpenAIProvider(
        openai.AsyncAzureOpenAI(max_retries=0, timeout=TIMEOUT_S),
        settings.model,
        endpoint=Endpoint(base_url=os.environ[AZURE_VARIABLES[0]]),
        facts=model_facts(f"azure/{settings.model}"),
        notify=settings.notify,
    )
