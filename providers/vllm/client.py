"""vLLM servers, over plain aiohttp: an SDK would take more time than a short reply.

With base URLs it uses running servers; without, it starts one itself (`providers.vllm.server`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp
import orjson

from eyechart.providers.base import (
    TIMEOUT_S,
    AuthError,
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ConnectError,
    ModelSettings,
    ProviderError,
    Reply,
    ReplyTimeoutError,
    Request,
    SampleError,
    SetupError,
    StopRunError,
    UnknownModelError,
    environment_key,
)
from eyechart.providers.contract import is_count
from eyechart.providers.documents import as_document
from eyechart.providers.http.bodies import ACCEPTED, OK, read_body
from eyechart.providers.http.errors import error_of
from eyechart.providers.http.replicas import Replicas, check_replicas
from eyechart.providers.http.time_limit import TimeLimit
from eyechart.providers.likelihood import texts_with
from eyechart.providers.naming import named
from eyechart.providers.openai.adapting import Adapting
from eyechart.providers.openai.form import (
    body_of,
    path_of,
    read_json,
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
from eyechart.providers.secrets import redact, redact_address
from eyechart.providers.vllm.descriptor import VLLM_KEY
from eyechart.providers.vllm.server import VllmServer

_FACTS_S = 60.0
"""Seconds for requests about facts."""
_CLIENT_ERRORS = (TimeoutError, aiohttp.ClientError, OSError)
"""Exceptions of aiohttp."""
_INVALID = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": ACCEPTED}
_PROBE = Request("1", 1)
_SHOWN = 300
_MOST_TOKENS = 10**12
"""A larger window is ignored as an error."""


class VllmProvider:
    """One model behind one or more vLLM servers."""

    def __init__(self, settings: ModelSettings, server: VllmServer | None = None) -> None:
        self._settings = settings
        self._remedies = Remedies(settings, VLLM_KEY)
        self._asking = Adapting(vllm_form(settings), settings, _refused, self._remedies)
        self._scores = OptionScores()
        self._gives_chosen: bool | None = None
        """Whether the servers give the probabilities of chosen next tokens; `None`: not known."""
        self._tokens: dict[str, OptionTokens] = {}
        self._server = server
        self._replicas = Replicas[str]([url.rstrip("/") for url in settings.base_urls])
        self._path = path_of(settings)
        self._key = environment_key(VLLM_KEY)
        self._session: aiohttp.ClientSession | None = None
        self._opening = asyncio.Lock()
        self._limit, self._facts_limit = TimeLimit(TIMEOUT_S), TimeLimit(_FACTS_S)

    async def complete(self, request: Request) -> Reply:
        """The model's reply; what the server rejects is left out, see `Adapting`."""
        await self._open()
        return await self._asking.complete(request, partial(self._complete, request.prefix))

    async def _complete(
        self, prefix: str, body: dict[str, Any], sent: Mapping[str, object]
    ) -> Reply:
        body["model"] = self._settings.model
        with self._replicas.use(prefix) as url:
            return reply_of(await self._asked(url, self._path, body), sent=sent)

    async def score(self, request: Request) -> Reply:
        """The probabilities of the options: of chosen next tokens where the server gives them, else
        of the tokens of a prompt with each option.
        """
        return await self._remedies.scored(self._score(request))

    async def _score(self, request: Request) -> Reply:
        await self._open()
        with self._replicas.use(request.prefix) as url:
            each = await self._option_tokens(url, request)
            if self._gives_chosen is not False and each is not None:
                tree = token_tree(each[0], each[1:])
                if tree is not None and (reply := await self._chosen(url, request, tree)):
                    return reply
            body = listing_body(each or option_texts(request), self._settings)
            sending = self._asked(url, "/completions", body)
            return await self._scores.of(options_of(request, body, sending))

    async def _chosen(self, url: str, request: Request, tree: TokenTree) -> Reply | None:
        """The probabilities of chosen next tokens; `None` where the server does not give them. A
        server that has never given them is not asked for them again.
        """
        body = tree.body(self._settings)
        try:
            reply = tree.reply(request, await self._asked(url, "/completions", body), body)
        except (BadRequestError, UnreadableError):
            self._gives_chosen = self._gives_chosen or False
            return None
        self._gives_chosen = True
        return reply

    async def _option_tokens(self, url: str, request: Request) -> list[list[int]] | None:
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
            return await self._tokens_at(url).of(bodies, text, wholes)
        text, wholes = texts_with(request.opening, request)
        begun = [request.opening, *wholes]
        bodies = [self._tokenize_body(request.prompt, one) for one in begun]
        if tokens := await self._tokens_at(url).of(bodies, text, wholes):
            return tokens
        raise SetupError(
            f"{redact_address(url)} gives no tokens of a chat, which reading by likelihood "
            f"needs; use {named('api', 'completions')}"
        )

    def _tokens_at(self, url: str) -> OptionTokens:
        if url not in self._tokens:
            self._tokens[url] = OptionTokens(partial(self._token_list, url))
        return self._tokens[url]

    async def _token_list(self, url: str, body: Mapping[str, Any]) -> list[int] | None:
        """The tokens that a server says; `None` from servers without `/tokenize`.

        Raises:
            ProviderError: the server failed this time.
        """
        try:
            read = await self._tokenized(url, body)
        except (SampleError, UnknownModelError, BadReplyError):
            return None
        tokens = read.get("tokens")
        is_list = isinstance(tokens, list) and all(map(is_count, tokens))
        return tokens if is_list else None

    async def _asked(self, url: str, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of a reply; a server of our own that has ended is an error of the run."""
        try:
            return await self._post(url, path, body)
        except (BrokenConnectionError, BadReplyError) as error:
            if self._server is not None and (end := await self._server.last_words()):
                raise StopRunError(end) from error
            raise

    async def facts(self) -> Mapping[str, object]:
        """The facts of the servers, which must be the same for all.

        Raises:
            SetupError: a server does not answer, has another model, or differs from the others.
        """
        await self._open()
        each = {url: await self._facts_of(url) for url in self._replicas}
        check_replicas(each)
        first = next(iter(each.values()))
        if self._server is not None:
            return first | self._server.facts()
        return first | {"base_url": sorted(map(redact_address, each))}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Counts with the first server's own tokenizer and template; `None` if it cannot count."""
        await self._open()
        url = next(iter(self._replicas))
        counts = []
        for prompt in prompts:
            read = await self._tokens_known(url, self._tokenize_body(prompt))
            if read is None or not is_count(read.get("count")):
                return None
            counts.append(read["count"])
        return counts

    async def aclose(self) -> None:
        """Closes the connections, and ends the server that was started here."""
        try:
            if self._session is not None:
                await self._session.close()
        finally:
            if self._server is not None:
                await self._server.stop()

    async def _open(self) -> aiohttp.ClientSession:
        if self._session is not None:
            return self._session
        async with self._opening:
            if self._session is None:
                if self._server is not None:
                    self._replicas = Replicas([await self._server.start()])
                self._session = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(),  # `_limit` and `_facts_limit` have them
                    headers=_HEADERS | self._authorization() | dict(self._settings.headers),
                    auto_decompress=False,
                )
            return self._session

    def _authorization(self) -> dict[str, str]:
        """The header with the key; empty if an address has a user and a password."""
        has_user = any("@" in url for url in self._replicas)
        return {"Authorization": f"Bearer {self._key}"} if self._key and not has_user else {}

    async def _post(self, url: str, path: str, body: Mapping[str, Any]) -> Any:
        assert self._session is not None  # whoever asks has opened it
        try:
            sent = orjson.dumps(body)
        except orjson.JSONEncodeError as error:  # a lone surrogate
            raise BadRequestError(f"the prompt cannot be sent: {error}") from error
        sending = self._session.post(f"{url}{path}", data=sent, allow_redirects=False)
        return await _read(sending, url, self._limit)

    async def _get(self, url: str, path: str) -> Any:
        session = await self._open()
        sending = session.get(f"{url}{path}", allow_redirects=False)
        return await _read(sending, url, self._facts_limit)

    async def _facts_of(self, url: str) -> dict[str, object]:
        model, where = self._settings.model, redact_address(url)
        try:
            read = await self._get(url, "/models")
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
            "version": await self._version(url),
            "chat_template_sha256": await self._template(url),
        }

    async def _version(self, url: str) -> str | None:
        try:
            read = await self._get(url.removesuffix("/v1"), "/version")
        except ProviderError:
            return None
        version = read.get("version") if isinstance(read, dict) else None
        return version if isinstance(version, str) else None

    async def _template(self, url: str) -> str | None:
        """Hash of the tokens of a fixed message: servers do not show the template itself."""
        messages = body_of(_PROBE, replace(self._settings, api="chat"))["messages"]
        read = await self._tokens_known(url, {"messages": messages, "add_generation_prompt": True})
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

    async def _tokens_known(self, url: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The reply of `/tokenize`; `None` where there is none, for whatever reason."""
        try:
            return await self._tokenized(url, body)
        except ProviderError:
            return None

    async def _tokenized(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The reply of `/tokenize` to `body` with the model; raises a `ProviderError`."""
        server, body = url.removesuffix("/v1"), {"model": self._settings.model, **body}
        read = await self._post(server, "/tokenize", body)
        if not isinstance(read, dict):
            raise BadReplyError("the reply of /tokenize is no JSON object")
        return read


class _RefusalError(Exception):
    """The body of a reply of status 400 or 422."""


def _refused(error: ProviderError) -> str | None:
    """What a server said when it refused a request as invalid; `None` for other errors."""
    cause = error.__cause__
    return str(cause) if isinstance(cause, _RefusalError) else None


async def _read(sending: Awaitable[aiohttp.ClientResponse], url: str, limit: TimeLimit) -> Any:
    """The JSON of a reply; raises a `ProviderError` and nothing else.

    Redirects are not followed: prompts are sent only to the address that the user gave, and most
    redirects would turn a request into a GET without one.
    """
    try:
        with limit.started():
            response = await sending
            try:
                content = await read_body(response)
            finally:
                if not response.closed:  # as it is after its end
                    response.release()
    except _CLIENT_ERRORS as error:
        raise _as_ours(error, url, limit.limit_s) from error
    if response.status != OK:
        text = content.decode(errors="replace")
        refusal = _RefusalError(text) if response.status in _INVALID else None
        raise error_of(response.status, text, response.headers) from refusal
    return read_json(content)


def _as_ours(error: Exception, url: str, within_s: float) -> ProviderError:
    """The error of `providers.base` for one of `_CLIENT_ERRORS`, in a request to `url`."""
    if isinstance(error, TimeoutError):
        return ReplyTimeoutError(f"{redact_address(url)}: no reply within {within_s:.0f} s")
    why = " ".join(str(error).split()) or type(error).__name__
    kind = (
        ConnectError if isinstance(error, aiohttp.ClientConnectorError) else BrokenConnectionError
    )
    return kind(f"no connection to {redact_address(url)}: {why}")


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
