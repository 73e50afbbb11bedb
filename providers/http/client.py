"""The client of all servers that are asked over HTTP: JSON there and back, over aiohttp. An SDK
takes more time than a short reply.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import aiohttp
import orjson

from eyechart.providers.base import (
    TIMEOUT_S,
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ConnectError,
    ProviderError,
    ReplyTimeoutError,
    SetupError,
)
from eyechart.providers.http.bodies import ACCEPTED, is_success, read_body, read_json
from eyechart.providers.http.errors import error_of
from eyechart.providers.http.proxy import Proxy, noted, proxy_for, without_user
from eyechart.providers.http.time_limit import TimeLimit
from eyechart.providers.secrets import keep_address, redact_address

_FACTS_S = 60.0
"""Longest wait for what a server says of itself, in seconds."""
_IDLE_S = 4.0
"""A connection that is idle for so long is closed: vLLM closes it after 5 seconds, and a request
that is sent meanwhile is lost."""
_LONGEST_HEADER = 2**16
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": ACCEPTED,
    "User-Agent": "eyechart",
}
_CLIENT_ERRORS = (TimeoutError, aiohttp.ClientError, OSError)
"""Exceptions of aiohttp."""
_INVALID = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_OF_PROXIES = (HTTPStatus.NOT_FOUND, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED)


class Client:
    """The client of one address. It keeps no cookies and never asks twice.

    Redirects are not followed: prompts and keys are sent only to the address that the user gave,
    and most redirects would turn a request into a GET without a body.
    """

    def __init__(
        self,
        address: str,
        *,
        headers: Mapping[str, str] | None = None,
        given: Mapping[str, str] | None = None,
        query: str = "",
        uses_proxy: bool = True,
        verifies: bool = True,
        within_s: float | None = None,
    ) -> None:
        """`headers` are the provider's, such as its key; a user and a password in the address
        replace an `Authorization` there, and the headers `given` by the user replace any. `query`
        goes with each request. A reply must come `within_s` seconds, usually `TIMEOUT_S`.

        Raises:
            SetupError: a proxy or the file of certificates is invalid.
        """
        keep_address(address)
        self.address = address.rstrip("/")
        """With its user and password; `url` is without them."""
        self.url, authorization = without_user(self.address)
        basic = {"Authorization": authorization} if authorization else {}
        self.headers = _joined(headers or {}, basic, given or {})
        self._query = f"?{query}" if query else ""
        self._session: aiohttp.ClientSession | None = None
        self._limit, self._facts_limit = TimeLimit(within_s or TIMEOUT_S), TimeLimit(_FACTS_S)
        self._proxy: Proxy | None = None
        # headers of the session itself would go to the proxy in plain text, with the key
        self._how: dict[str, Any] = {
            "headers": _joined(_HEADERS, self.headers),
            "allow_redirects": False,
        }
        if not verifies:
            self._how["ssl"] = False
        try:
            if uses_proxy and (proxy := proxy_for(self.url)) is not None:
                self._use(proxy)
            if verifies and self.url.startswith("https:"):
                self._how["ssl"] = certificates()
        except (OSError, ValueError) as error:
            raise SetupError(
                f"no client for {redact_address(address)}: {' '.join(str(error).split())}; look in "
                "the environment at the proxies (HTTPS_PROXY, ALL_PROXY) and SSL_CERT_FILE"
            ) from error

    def _use(self, proxy: Proxy) -> None:
        if not proxy.address.startswith(("http://", "https://")):
            shown = redact_address(proxy.address)
            raise ValueError(f"the proxy {shown} of {proxy.name} is no HTTP proxy (http://…)")
        self._proxy = proxy
        self._how["proxy"] = proxy.address
        if self.url.startswith("https:"):
            self._how["proxy_headers"] = proxy.headers
        else:
            self._how["headers"].update(proxy.headers)

    async def post(self, path: str, body: Mapping[str, Any], *, at_root: bool = False) -> Any:
        """The JSON of the reply to `body` at a path behind the address, or in place of its `/v1`
        (`at_root`); raises a `ProviderError` and nothing else.
        """
        try:
            sent = orjson.dumps(body)
        except orjson.JSONEncodeError as error:  # a lone surrogate
            raise BadRequestError(f"the prompt cannot be sent: {error}") from error
        session = self._session or self._open()
        sending = session.post(self._at(path, at_root=at_root), data=sent, **self._how)
        return await self._read(sending, self._limit)

    async def get(self, path: str, *, at_root: bool = False) -> Any:
        """The JSON at a path, likewise."""
        session = self._session or self._open()
        sending = session.get(self._at(path, at_root=at_root), **self._how)
        return await self._read(sending, self._facts_limit)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _at(self, path: str, *, at_root: bool) -> str:
        return f"{self.url.removesuffix('/v1') if at_root else self.url}{path}{self._query}"

    def _open(self) -> aiohttp.ClientSession:
        """Opens the session, which needs the event loop."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),  # `TimeLimit` has them
            auto_decompress=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )
        return self._session

    async def _read(self, sending: Awaitable[aiohttp.ClientResponse], limit: TimeLimit) -> Any:
        try:
            with limit.started():
                response = await sending
                try:
                    content = await read_body(response)
                finally:
                    if not response.closed:  # as it is after its end
                        response.release()
            if is_success(response.status):
                return read_json(content)
        except _CLIENT_ERRORS as error:
            raise self._as_ours(error, limit.limit_s) from error
        except BadReplyError as error:  # such as the page of a proxy
            raise noted(error, self._proxy) from error
        text = content.decode(errors="replace")
        refusal = _RefusalError(text) if response.status in _INVALID else None
        raise failure_of(response.status, text, response.headers, self._proxy) from refusal

    def _as_ours(self, error: Exception, within_s: float) -> ProviderError:
        """The error of `providers.base` for one of `_CLIENT_ERRORS`."""
        where = redact_address(self.address)
        if isinstance(error, TimeoutError):
            return ReplyTimeoutError(f"{where}: no reply within {within_s:.0f} s")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            if error.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
                refusal = error_of(error.status, error.message, error.headers or {})
                return noted(refusal, self._proxy)
            error = BrokenConnectionError(f"{error.status} {error.message}")
        why = " ".join(str(error).split()) or type(error).__name__
        is_first = isinstance(error, aiohttp.ClientConnectorError)
        kind = ConnectError if is_first else BrokenConnectionError
        return noted(kind(f"no connection to {where}: {why}"), self._proxy)


def failure_of(
    status: int, text: str, headers: Mapping[str, str], proxy: Proxy | None
) -> ProviderError:
    """The error for a response that is no reply. One without JSON, or that knows no such address,
    may be of a proxy, not of the server.
    """
    error = error_of(status, text, headers)
    is_of_server = text.lstrip().startswith(("{", "[")) and status not in _OF_PROXIES
    return error if is_of_server else noted(error, proxy)


def _joined(*many: Mapping[str, str]) -> dict[str, str]:
    """All headers; of those with one name, in whatever case, the last one."""
    names: dict[str, str] = {}
    joined = {}
    for one in many:
        for name, value in one.items():
            joined[names.setdefault(name.lower(), name)] = value
    return joined


class _RefusalError(Exception):
    """The body of a reply of status 400 or 422."""


def refused(error: ProviderError) -> str | None:
    """What a server said when it refused a request as invalid; `None` for other errors."""
    cause = error.__cause__
    return str(cause) if isinstance(cause, _RefusalError) else None


def certificates() -> ssl.SSLContext:
    """The trusted certificates; raises `OSError` where the environment names others wrongly."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=4)
def _certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """Reading them takes 20 ms. The arguments are everything that the result depends on."""
    import httpx2  # noqa: PLC0415  slow

    return httpx2.create_ssl_context()
