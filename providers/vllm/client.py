"""vLLM servers, with what they have besides OpenAI's API: tokens, and probabilities of them.

With base URLs it uses running servers; without, it starts one itself (`providers.vllm.server`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    SampleError,
    SetupError,
    StopRunError,
    UnknownModelError,
    environment_key,
)
from eyechart.providers.documents import as_document
from eyechart.providers.http.client import Client
from eyechart.providers.http.replicas import Replicas, check_replicas
from eyechart.providers.likelihood import texts_with
from eyechart.providers.naming import named
from eyechart.providers.openai.adapting import AdaptingClient
from eyechart.providers.openai.form import (
    body_of,
    path_of,
    reply_of,
    template_fields,
    vllm_form,
)
from eyechart.providers.openai.option_tokens import OptionTokens
from eyechart.providers.openai.remedies import Remedies
from eyechart.providers.openai.scoring import (
    OptionScores,
    UnreadableError,
    listing_body,
    option_texts,
    options_of,
)
from eyechart.providers.openai.token_tree import TokenTree, token_tree
from eyechart.providers.plugins.contract import is_count
from eyechart.providers.secrets import redact, redact_address
from eyechart.providers.vllm.descriptor import VLLM_KEY
from eyechart.providers.vllm.server import VllmServer

_PROBE = Request("1", 1)
_SHOWN = 300
_MOST_TOKENS = 10**12
"""A larger window is ignored as an error."""


class VllmProvider:
    """One model behind one or more vLLM servers."""

    def __init__(self, settings: ModelSettings, server: VllmServer | None = None) -> None:
        self._settings = settings
        self._remedies = Remedies(settings, VLLM_KEY)
        self._asking = AdaptingClient(vllm_form(settings), settings, self._remedies)
        self._scores = OptionScores()
        self._gives_chosen: bool | None = None
        """Whether the servers give the probabilities of chosen next tokens; `None`: not known."""
        self._tokens: dict[Client, OptionTokens] = {}
        self._server = server
        key = environment_key(VLLM_KEY)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._clients: Replicas[Client] | None = None
        if server is None:
            self._clients = Replicas([self._client(url) for url in settings.base_urls])
        self._path = path_of(settings)
        self._opening = asyncio.Lock()

    async def complete(self, request: Request) -> Reply:
        """The model's reply; what the server rejects is left out, see `AdaptingClient`."""
        return await self._asking.complete(request, partial(self._complete, request.prefix))

    async def _complete(
        self, prefix: str, body: dict[str, Any], sent: Mapping[str, object]
    ) -> Reply:
        body["model"] = self._settings.model
        clients = self._clients or await self._open()
        with clients.use(prefix) as client:
            return reply_of(await self._asked(client, self._path, body), sent=sent)

    async def score(self, request: Request) -> Reply:
        """The probabilities of the options: of chosen next tokens where the server gives them, else
        of the tokens of a prompt with each option.
        """
        return await self._remedies.scored(self._score(request))

    async def _score(self, request: Request) -> Reply:
        with (await self._open()).use(request.prefix) as client:
            each = await self._option_tokens(client, request)
            if self._gives_chosen is not False and each is not None:
                tree = token_tree(each[0], each[1:])
                if tree is not None and (reply := await self._chosen(client, request, tree)):
                    return reply
            body = listing_body(each or option_texts(request), self._settings)
            sending = self._asked(client, "/completions", body)
            return await self._scores.of(options_of(request, body, sending))

    async def _chosen(self, client: Client, request: Request, tree: TokenTree) -> Reply | None:
        """The probabilities of chosen next tokens; `None` where the server does not give them. A
        server that has never given them is not asked for them again.
        """
        body = tree.body(self._settings)
        try:
            reply = tree.reply(request, await self._asked(client, "/completions", body), body)
        except (BadRequestError, UnreadableError):
            self._gives_chosen = self._gives_chosen or False
            return None
        self._gives_chosen = True
        return reply

    async def _option_tokens(self, client: Client, request: Request) -> list[list[int]] | None:
        """The tokens before the options, and those with each of them; `None` of texts, where the
        server does not say them.

        Those of a chat come with the beginning of the assistant's message, since
        `/chat/completions` continues no such beginning.

        Raises:
            SetupError: the server does not say the tokens of a chat.
        """
        if self._settings.api == "completions":
            text, *wholes = option_texts(request)
            bodies: list[dict[str, Any]] = [{"prompt": one} for one in (text, *wholes)]
            return await self._tokens_at(client).of(bodies, text, wholes)
        text, wholes = texts_with(request.opening, request)
        begun = [request.opening, *wholes]
        bodies = [self._tokenize_body(request.prompt, one) for one in begun]
        if tokens := await self._tokens_at(client).of(bodies, text, wholes):
            return tokens
        raise SetupError(
            f"{redact_address(client.address)} gives no tokens of a chat, which reading by "
            f"likelihood needs; use {named('api', 'completions')}"
        )

    def _tokens_at(self, client: Client) -> OptionTokens:
        if client not in self._tokens:
            self._tokens[client] = OptionTokens(partial(self._token_list, client))
        return self._tokens[client]

    async def _token_list(self, client: Client, body: Mapping[str, Any]) -> list[int] | None:
        """The tokens that a server says; `None` from servers without `/tokenize`.

        Raises:
            ProviderError: the server failed this time.
        """
        try:
            read = await self._tokenized(client, body)
        except (SampleError, UnknownModelError, BadReplyError):
            return None
        tokens = read.get("tokens")
        is_list = isinstance(tokens, list) and all(map(is_count, tokens))
        return tokens if is_list else None

    async def _asked(self, client: Client, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of a reply; a server of our own that has ended is an error of the run."""
        try:
            return await client.post(path, body)
        except (BrokenConnectionError, BadReplyError) as error:
            if self._server is not None and (end := await self._server.last_words()):
                raise StopRunError(end) from error
            raise

    async def facts(self) -> Mapping[str, object]:
        """The facts of the servers, which must be the same for all.

        Raises:
            SetupError: a server does not answer, has another model, or differs from the others.
        """
        each = {one.address: await self._facts_of(one) for one in await self._open()}
        check_replicas(each)
        first = next(iter(each.values()))
        if self._server is not None:
            return first | self._server.facts()
        return first | {"base_url": sorted(map(redact_address, each))}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Counts with the first server's own tokenizer and template; `None` if it cannot count."""
        client = next(iter(await self._open()))
        counts = []
        for prompt in prompts:
            read = await self._tokens_known(client, self._tokenize_body(prompt))
            if read is None or not is_count(read.get("count")):
                return None
            counts.append(read["count"])
        return counts

    async def aclose(self) -> None:
        """Closes the connections, and ends the server that was started here."""
        try:
            for client in self._clients or ():
                await client.aclose()
        finally:
            if self._server is not None:
                await self._server.stop()

    async def _open(self) -> Replicas[Client]:
        """The clients of the servers; starts our own first."""
        async with self._opening:
            if self._clients is None:
                assert self._server is not None  # else there are addresses
                address = await self._server.start()
                self._clients = Replicas([self._client(address)])
            return self._clients

    def _client(self, address: str) -> Client:
        return Client(
            address,
            headers=self._headers,
            given=self._settings.headers,
            uses_proxy=self._server is None,
        )

    async def _facts_of(self, client: Client) -> dict[str, object]:
        model, where = self._settings.model, redact_address(client.address)
        try:
            read = await client.get("/models")
            served = {str(entry["id"]): entry for entry in read["data"] if isinstance(entry, dict)}
        except (KeyError, TypeError, RecursionError) as error:
            raise SetupError(f"{where} is no vLLM server: no list of models there") from error
        except AuthError:
            raise
        except ProviderError as error:
            raise SetupError(f"{error}; is it running? its address ends with /v1") from error
        if model not in served:
            names = redact(", ".join(map(repr, served)) or "nothing")[:_SHOWN]
            raise SetupError(f"{where} serves {names}, not {model!r}")
        root, window = served[model].get("root"), served[model].get("max_model_len")
        return {
            "engine": "vllm",
            "model": model,
            "root": root if isinstance(root, str) else None,
            "max_model_len": window if is_count(window) and window < _MOST_TOKENS else None,
            "version": await self._version(client),
            "chat_template_sha256": await self._template(client),
        }

    async def _version(self, client: Client) -> str | None:
        try:
            read = await client.get("/version", at_root=True)
        except ProviderError:
            return None
        version = read.get("version") if isinstance(read, dict) else None
        return version if isinstance(version, str) else None

    async def _template(self, client: Client) -> str | None:
        """Hash of the tokens of a fixed message: servers do not show the template itself."""
        messages = body_of(_PROBE, replace(self._settings, api="chat"))["messages"]
        body = {"messages": messages, "add_generation_prompt": True}
        read = await self._tokens_known(client, body)
        try:
            tokens = orjson.dumps((read or {})["tokens"])
        except (KeyError, orjson.JSONEncodeError):  # none, or no tokens
            return None
        return hashlib.sha256(tokens).hexdigest()[:16]

    def _tokenize_body(self, prompt: str, begun: str = "") -> dict[str, Any]:
        """The body for `/tokenize`, without the model; `begun` is what the assistant has said."""
        if self._settings.api == "completions":
            return {"prompt": as_document(prompt)}
        messages = body_of(Request(prompt, 1), self._settings)["messages"]
        fields = template_fields(self._settings)
        more: dict[str, Any] = {"chat_template_kwargs": fields} if fields else {}
        if begun:
            messages = [*messages, {"role": "assistant", "content": begun}]
            more |= {"continue_final_message": True}
        return {"messages": messages, "add_generation_prompt": not begun, **more}

    async def _tokens_known(self, client: Client, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The reply of `/tokenize`; `None` where there is none, for whatever reason."""
        try:
            return await self._tokenized(client, body)
        except ProviderError:
            return None

    async def _tokenized(self, client: Client, body: Mapping[str, Any]) -> dict[str, Any]:
        """The reply of `/tokenize` to `body` with the model; raises a `ProviderError`."""
        body = {"model": self._settings.model, **body}
        read = await client.post("/tokenize", body, at_root=True)
        if not isinstance(read, dict):
            raise BadReplyError("the reply of /tokenize is no JSON object")
        return read


def open_provider(settings: ModelSettings) -> VllmProvider:
    """Opens the model at the settings' base URLs, or else on a server that is started here.

    Raises:
        SetupError: vLLM must be started here and is not installed, or there are arguments for a
            server that is not started here.
    """
    if settings.base_urls:
        if settings.model_args:
            raise SetupError(
                f"{named('model_args')} is for a server that bench starts: leave out "
                f"{named('base_url')}"
            )
        return VllmProvider(settings)
    return VllmProvider(settings, VllmServer.of(settings))
