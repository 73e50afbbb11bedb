"""Anthropic, and servers with the same messages API, through the official SDK, an optional extra.

The SDK does not retry: only the runner does. Replies are not streamed, and no request asks for
caching.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from msgspec.structs import replace

from eyechart.providers.anthropic_descriptor import ANTHROPIC, ANTHROPIC_BASE_URL, ANTHROPIC_KEY
from eyechart.providers.base import (
    TIMEOUT_S,
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ModelSettings,
    Reply,
    ReplyTimeoutError,
    Request,
    SetupError,
    Usage,
    environment_key,
    install,
    sent_of,
)
from eyechart.providers.catalog.endpoints import address_problem, int_of
from eyechart.providers.catalog.model_facts import model_facts
from eyechart.providers.contract import is_count
from eyechart.providers.finish import finish_of, word_to_show
from eyechart.providers.http.errors import error_within
from eyechart.providers.http.sdk import NO_KEY, broken, http_client, proxied, status_error
from eyechart.providers.naming import named
from eyechart.providers.openai.form import read_json, tier_of
from eyechart.providers.openai.remedies import NO_TEMPERATURE
from eyechart.providers.secrets import keep_secret, redact_address

if TYPE_CHECKING:
    import anthropic

LEAST_THINK_TOKENS = 1024
"""The smallest budget that the API takes."""
TIERS = {"default": "standard_only"}
"""Our word for a tier -> the vendor's."""
_REJECTED = (
    r"\b{0}\b.{{0,60}}(?:deprecated|not supported|unsupported|not permitted|may only be set"
    r"|cannot both)"
    r"|not support.{{0,60}}\b{0}\b"
)


class AnthropicProvider:
    """One model at one address with the messages API."""

    def __init__(
        self,
        client: anthropic.AsyncAnthropic,
        settings: ModelSettings,
        *,
        headers: Mapping[str, anthropic.Omit],
    ) -> None:
        self._client = client
        self._settings = settings
        self._headers = headers
        facts = model_facts(f"anthropic/{settings.model}")
        self._facts = facts.asked_for(settings.effort, settings.thinking)
        self._adaptive = False
        self._dropped: set[str] = set()

    async def complete(self, request: Request) -> Reply:
        """The model's reply; a parameter that the server rejects is left out of all later requests.

        Raises:
            ProviderError: as `Provider.complete` says.
        """
        while True:
            body = self._body(request)
            try:
                reply = await self._send(request.messages, body)
                dropped = tuple(sorted(self._dropped))
                # the limit sent may be above the request's, and the stop reasons can be believed
                return replace(reply, dropped_params=dropped, sent=sent_of(body), sure_stop=True)
            except BadRequestError as error:
                if self._adapt(body, str(error)):
                    continue
                if "temperature" in body and "temperature" in str(error):
                    raise BadRequestError(f"{error}; {NO_TEMPERATURE}") from error
                raise

    async def _send(self, messages: Any, body: dict[str, Any]) -> Reply:
        with self._errors():
            async with asyncio.timeout(TIMEOUT_S):  # the SDK's own is for each piece of a reply
                raw = await self._client.messages.with_raw_response.create(
                    model=self._settings.model,
                    messages=messages,
                    max_tokens=body["max_tokens"],
                    extra_body=body,
                    extra_headers=self._headers,
                )
                read = read_json(await raw.http_response.aread())
        return reply_of(read)

    def _body(self, request: Request) -> dict[str, Any]:
        """The body, without model and messages."""
        body: dict[str, Any] = {"max_tokens": request.max_tokens}
        if self._settings.system:
            body["system"] = self._settings.system
        if self._settings.tier:
            body["service_tier"] = TIERS[self._settings.tier]
        if self._facts.effort:
            body["output_config"] = {"effort": self._facts.effort}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if self._facts.reasoning:
            thought = int_of(self._settings.thinking) or request.think_tokens
            thought = max(thought, LEAST_THINK_TOKENS)
            body["max_tokens"] += max(0, thought - request.think_tokens)
            budget = {"type": "enabled", "budget_tokens": thought}
            body["thinking"] = {"type": "adaptive"} if self._adaptive else budget
        elif self._settings.thinking == "off":
            body["thinking"] = {"type": "disabled"}
        body |= self._settings.params
        return {name: value for name, value in body.items() if name not in self._dropped}

    def _adapt(self, sent: Mapping[str, Any], message: str) -> bool:
        """Whether the `message` of a 400 rejects a parameter, which is then left out of later
        requests.

        Newer models decide themselves how long they think: they reject a budget, but not thinking.
        """
        optional = [name for name in ("temperature", "thinking") if name in sent]
        name = next(
            (option for option in optional if re.search(_REJECTED.format(option), message)), None
        )
        if name == "thinking" and "budget_tokens" in sent["thinking"]:
            if not self._adaptive:
                self._adaptive = True
                self._notify("a thinking budget; it decides itself how long it thinks")
        elif name is not None and name not in self._dropped:
            self._dropped.add(name)
            self._notify(f"{name!r}; it is asked without")
        return name is not None

    def _notify(self, what: str) -> None:
        self._settings.notify(f"{self._settings.model} does not take {what}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raises the SDK's errors as errors of `providers.base`."""
        import anthropic  # noqa: PLC0415  optional: here by now

        try:
            yield
        except anthropic.APIStatusError as error:
            raise status_error(error.response, str(self._client.base_url)) from error
        except (anthropic.APITimeoutError, TimeoutError) as error:
            raise ReplyTimeoutError(f"no reply within {TIMEOUT_S:.0f} s") from error
        except anthropic.APIConnectionError as error:
            raise broken(error, str(self._client.base_url)) from error
        except BadReplyError as error:  # such as the page of a proxy
            raise proxied(error, str(self._client.base_url)) from error
        except anthropic.AnthropicError as error:
            raise BadReplyError(" ".join(str(error).split())) from error
        except httpx2.HTTPError as error:
            raise BrokenConnectionError(f"the connection broke: {error}") from error
        except UnicodeEncodeError as error:
            raise BadRequestError(f"the prompt cannot be sent: {error.reason}") from error

    async def facts(self) -> Mapping[str, object]:
        """The address, and the reasoning effort."""
        where = {"engine": "anthropic", "base_url": redact_address(str(self._client.base_url))}
        return where | ({"effort": self._facts.effort} if self._facts.effort else {})

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:  # noqa: ARG002
        """`None`: the vendor's tokenizer is not available, and its API counts only by requests."""
        return None

    async def aclose(self) -> None:
        await self._client.close()


def open_provider(settings: ModelSettings) -> AnthropicProvider:
    """Opens a model at the settings' address, else at `ANTHROPIC_BASE_URL`, else at the vendor's.

    An address in the settings is the user's own. It needs no key, and it gets none of the secrets
    that the SDK would otherwise read from the environment and send.

    Raises:
        SetupError: the key or the package is missing, or Anthropic does not support the settings.
    """
    if len(settings.base_urls) > 1:
        raise SetupError(f"anthropic takes one {named('base_url')}, not {len(settings.base_urls)}")
    try:
        import anthropic  # noqa: PLC0415  optional
    except ImportError as error:
        raise SetupError(
            f"anthropic/{settings.model} needs the package anthropic: {install('anthropic')}"
        ) from error
    headers: dict[str, anthropic.Omit] = {}
    for line in os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n"):
        name, colon, value = line.partition(":")
        keep_secret(value)
        given = {one.lower() for one in settings.headers}
        if colon and settings.base_urls and name.strip().lower() not in given:
            headers[name.strip()] = anthropic.omit
    address = next(iter(settings.base_urls), os.environ.get(ANTHROPIC_BASE_URL) or ANTHROPIC)
    if problem := address_problem(address):
        raise SetupError(f"{ANTHROPIC_BASE_URL} {redact_address(address)!r} {problem}")
    client = anthropic.AsyncAnthropic(
        # otherwise the SDK looks for a key itself
        api_key=NO_KEY if settings.base_urls else _key(),
        base_url=address.rstrip("/").removesuffix("/v1"),  # the SDK adds it
        max_retries=0,
        timeout=TIMEOUT_S,
        default_headers=settings.headers,
        http_client=http_client(anthropic.DefaultAsyncHttpxClient, address),
    )
    return AnthropicProvider(client, settings, headers=headers)


def _key() -> str:
    if key := environment_key(ANTHROPIC_KEY):
        return key
    raise SetupError(
        f"anthropic needs a key: set {ANTHROPIC_KEY}, or try {named('model', 'tiny')}, which needs "
        "none"
    )


def reply_of(read: Any) -> Reply:
    """A message's JSON as a `Reply`.

    Raises:
        BadReplyError: it is no message.
        ServerFaultError: the reply was broken off.
    """
    if not isinstance(read, dict) or not isinstance(read.get("content"), list):
        raise error_within(read, "the reply is no message: it has no content")
    details, usage = read.get("stop_details"), read.get("usage")
    used = _usage(usage) if isinstance(usage, dict) else None
    return Reply(
        text=_joined(read["content"], "text"),
        finish_reason=finish_of(read.get("stop_reason"), used),
        finish_word=word_to_show(read.get("stop_reason")),
        usage=used,
        model=_text(read.get("model")),
        refusal=_text(details.get("explanation")) if isinstance(details, dict) else None,
        reasoning=_joined(read["content"], "thinking") or None,
    )


def _joined(blocks: list[Any], kind: str) -> str:
    """The texts of all blocks of one kind, joined. The text's field has the kind's name."""
    chosen = (part for part in blocks if isinstance(part, dict) and part.get("type") == kind)
    return "".join(_text(part.get(kind)) or "" for part in chosen)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _usage(usage: dict[str, Any]) -> Usage | None:
    """Tokens of the exchange; those of a prompt that went to or came from a cache count too.
    Missing numbers about caches are 0, because no request asks for a cache.
    """
    kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [usage[kind] if is_count(usage.get(kind)) else None for kind in kinds]
    output_tokens = usage.get("output_tokens")
    if counts == [None] * len(kinds) or not is_count(output_tokens):
        return None
    fresh, read, write = (count or 0 for count in counts)
    details = usage.get("output_tokens_details")
    thought = details.get("thinking_tokens") if isinstance(details, dict) else None
    return Usage(
        fresh + read + write,
        output_tokens,
        read,
        write,
        thought if is_count(thought) and thought <= output_tokens else None,
        tier_of(usage.get("service_tier")),
    )
