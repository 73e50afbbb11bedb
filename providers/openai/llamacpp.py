"""What llama.cpp's own server has besides OpenAI's API: the tokens of a text, the text of a chat,
and the probabilities of options.

It repeats no prompt (`echo` is ignored) and lists no tokens of one. But it says how probable the
model finds the token that it generates, before any sampler changes that, and a bias can force the
token. So each token of an option is generated once behind those before it. After the first request
of a sample the prompt is in the cache of a slot, which the server finds again by the prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from eyechart.providers.base import (
    BadReplyError,
    ModelSettings,
    Reply,
    Request,
    SampleError,
    SetupError,
    UnknownModelError,
)
from eyechart.providers.documents import as_document
from eyechart.providers.http.client import Client
from eyechart.providers.likelihood import texts_with
from eyechart.providers.naming import named
from eyechart.providers.openai.form import body_of, reply_of
from eyechart.providers.openai.option_tokens import OptionTokens
from eyechart.providers.openai.scoring import UnreadableError, option_texts, reply_from
from eyechart.providers.openai.token_tree import TokenTree, tree_of
from eyechart.providers.plugins.contract import is_count

OWNER = "llamacpp"
"""The `owned_by` of its models, by which the server is known."""
_TOP = 64
"""Tokens that come with a forced one: often the others that are wanted there."""
_BIAS = 1e6
"""Added to the logit of the forced token; logits are below 1,000."""
_LEAST = -103.3
"""The logarithm of the least probability in float32; for 0 the server writes its lowest number."""


class LlamaCpp:
    """One llama.cpp server with one model."""

    def __init__(
        self,
        settings: ModelSettings,
        client: Client,
        *,
        fields: Mapping[str, object],
        template: Mapping[str, object],
    ) -> None:
        """`fields` go with each request, and the fields of `template` to the chat template."""
        self._settings = settings
        self._client = client
        self._fields = fields
        self._template = template
        self._tokens = OptionTokens(self._tokenized)
        self._slots: asyncio.Semaphore | None = None
        self._opening = asyncio.Lock()

    async def count(self, prompts: Sequence[str]) -> list[int] | None:
        """Tokens of each prompt as it is sent; `None` where the server does not say them."""
        counts = []
        for prompt in prompts:
            text = as_document(prompt)
            if self._settings.api == "chat":
                text = await self._chat(prompt) or ""
            tokens = await self._tokenized({"prompt": text}) if text else None
            if tokens is None:
                return None
            counts.append(len(tokens))
        return counts

    async def score(self, request: Request) -> Reply:
        """The probabilities of the options.

        Raises:
            SetupError: the server does not say the text of a chat.
            UnreadableError: it does not say the tokens, or the probability of a forced one.
            ProviderError: as `Likelihood.score` says.
        """
        tree = await self._tree(request)
        tables: dict[tuple[int, ...], dict[int, float]] = {}
        async with await self._at_once():
            for node, wanted in tree.following.items():
                body = {**self._body, "prompt": [*tree.before, *node]}
                tables[node], whole = await self._next(body, wanted)
        return reply_from(request, whole, self._body, len(tree.before), tree.logprobs(tables))

    @property
    def _body(self) -> dict[str, Any]:
        return {
            "model": self._settings.model,
            "max_tokens": 1,
            "temperature": 0.0,
            **self._fields,
            "logprobs": _TOP,
        }

    async def _next(
        self, body: Mapping[str, Any], wanted: Sequence[int]
    ) -> tuple[dict[int, float], Reply]:
        """The log-probabilities of next tokens, `wanted` among them; with the last reply."""
        found: dict[int, float] = {}
        whole = Reply("")
        while missing := [token for token in wanted if token not in found]:
            forced = {**body, "logit_bias": [[missing[0], _BIAS]]}
            read = await self._client.post("/completions", forced)
            whole = reply_of(read)
            found |= _said_of_next(read)
            if missing[0] not in found:
                raise UnreadableError(f"the server generated another token than {missing[0]}")
        return found, whole

    async def _tree(self, request: Request) -> TokenTree:
        """The tokens before the options, and of each option."""
        if self._settings.api == "completions":
            before = ""
            text, *wholes = option_texts(request)
        else:
            before = await self._chat(request.prompt) or ""
            if not before:
                raise SetupError(
                    "the server does not say the text of a chat (/apply-template), which "
                    f"{named('reading', 'likelihood')} needs; use {named('api', 'completions')}"
                )
            text, wholes = texts_with(request.opening, request)
        bodies = [{"prompt": f"{before}{one}"} for one in (text, *wholes)]
        each = await self._tokens.of(bodies, text, wholes)
        if each is None:
            raise UnreadableError("no tokens of a text from /tokenize")
        return tree_of(each[0], each[1:])

    async def _chat(self, prompt: str) -> str | None:
        """The text that the chat template makes of a prompt, up to the reply."""
        body: dict[str, Any] = {"messages": body_of(Request(prompt, 1), self._settings)["messages"]}
        if self._template:
            body["chat_template_kwargs"] = dict(self._template)
        read = await self._known("/apply-template", body)
        text = read.get("prompt")
        return text if isinstance(text, str) else None

    async def _tokenized(self, body: Mapping[str, Any]) -> list[int] | None:
        """The tokens of a text, as `/v1/completions` makes them of its prompt."""
        adds = body.get("add_special_tokens", True)
        sent = {"content": body["prompt"], "add_special": adds, "parse_special": True}
        tokens = (await self._known("/tokenize", sent)).get("tokens")
        return tokens if isinstance(tokens, list) and all(map(is_count, tokens)) else None

    async def _known(self, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        """The reply at a path; empty from servers without one."""
        try:
            if body is None:
                read = await self._client.get(path, at_root=True)
            else:
                read = await self._client.post(path, body, at_root=True)
        except (SampleError, UnknownModelError, BadReplyError):
            return {}
        return read if isinstance(read, dict) else {}

    async def _at_once(self) -> asyncio.Semaphore:
        """Lets as many samples through as the server has slots, so that each finds its prompt in
        the cache of one. A slot is not named (`id_slot`): requests to such a slot and others at the
        same time got each other's prompts from a server of October 2026.
        """
        async with self._opening:
            if self._slots is None:
                count = (await self._known("/props", None)).get("total_slots")
                self._slots = asyncio.Semaphore(max(1, count if is_count(count) else 1))
            return self._slots


def _said_of_next(read: Any) -> dict[int, float]:
    """Log-probabilities of the generated token and of the most probable ones, by number."""
    try:
        (place,) = read["choices"][0]["logprobs"]["content"]
        return {
            int(one["id"]): max(float(one["logprob"]), _LEAST)
            for one in (place, *place["top_logprobs"])
        }
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UnreadableError("no logprobs of a generated token") from error
