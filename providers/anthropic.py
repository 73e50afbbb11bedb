"""Anthropic, and servers with the same messages API.

Replies are not streamed, and no request asks for caching.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from eyechart.providers.anthropic_descriptor import ANTHROPIC, ANTHROPIC_BASE_URL, ANTHROPIC_KEY
from eyechart.providers.base import (
    BadRequestError,
    ModelSettings,
    Reply,
    Request,
    SetupError,
    Usage,
    environment_key,
    sent_of,
)
from eyechart.providers.catalog.endpoints import address_problem, int_of
from eyechart.providers.catalog.model_facts import model_facts
from eyechart.providers.finish import finish_of, word_to_show
from eyechart.providers.http.client import Client
from eyechart.providers.http.errors import error_within
from eyechart.providers.naming import named
from eyechart.providers.openai.form import tier_of
from eyechart.providers.openai.remedies import NO_TEMPERATURE
from eyechart.providers.plugins.contract import is_count
from eyechart.providers.secrets import redact_address

VERSION = "2023-06-01"
"""Of the API."""
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

    def __init__(self, client: Client, settings: ModelSettings) -> None:
        self._client = client
        self._settings = settings
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
                model = {"model": self._settings.model, "messages": request.messages}
                reply = reply_of(await self._client.post("/messages", {**model, **body}))
                dropped = tuple(sorted(self._dropped))
                # the limit sent may be above the request's, and the stop reasons can be believed
                return replace(reply, dropped_params=dropped, sent=sent_of(body), sure_stop=True)
            except BadRequestError as error:
                if self._adapt(body, str(error)):
                    continue
                if "temperature" in body and "temperature" in str(error):
                    raise BadRequestError(f"{error}; {NO_TEMPERATURE}") from error
                raise

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

    async def facts(self) -> Mapping[str, object]:
        """The address, and the reasoning effort."""
        address = redact_address(self._client.address.removesuffix("/v1"))
        where = {"engine": "anthropic", "base_url": address}
        return where | ({"effort": self._facts.effort} if self._facts.effort else {})

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:  # noqa: ARG002
        """`None`: the vendor's tokenizer is not available, and its API counts only by requests."""
        return None

    async def aclose(self) -> None:
        await self._client.aclose()


def open_provider(settings: ModelSettings) -> AnthropicProvider:
    """Opens a model at the settings' address, else at `ANTHROPIC_BASE_URL`, else at the vendor's.

    An address in the settings is the user's own: it gets no key.

    Raises:
        SetupError: the key is missing, or Anthropic does not support the settings.
    """
    if len(settings.base_urls) > 1:
        raise SetupError(f"anthropic takes one {named('base_url')}, not {len(settings.base_urls)}")
    headers = {"anthropic-version": VERSION}
    if not settings.base_urls:
        headers["x-api-key"] = _key()
    address = next(iter(settings.base_urls), os.environ.get(ANTHROPIC_BASE_URL) or ANTHROPIC)
    if problem := address_problem(address):
        raise SetupError(f"{ANTHROPIC_BASE_URL} {redact_address(address)!r} {problem}")
    address = f"{address.rstrip('/').removesuffix('/v1')}/v1"
    return AnthropicProvider(Client(address, headers=headers, given=settings.headers), settings)


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
