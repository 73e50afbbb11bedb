"""The HTTP client of both SDKs: it follows no redirects and limits the size of replies."""

from __future__ import annotations

import os
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2

from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BrokenConnectionError,
    ConnectError,
    ProviderError,
    SetupError,
    StopRunError,
)
from eyechart.providers.http.bodies import ACCEPTED, LIMITS, Limits, bounded
from eyechart.providers.http.errors import error_of
from eyechart.providers.secrets import keep_address, redact_address

_Client = TypeVar("_Client", bound=httpx2.AsyncClient)
_OF_PROXIES = (HTTPStatus.NOT_FOUND, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED)
NO_KEY = "none"
"""Sent to servers that need no key: the SDKs require one."""
_PLAIN = "application/json"
"""Replaces the content type of the server, whose `charset` Python may not know."""


def http_client(
    make: Callable[..., _Client],
    address: str,
    *,
    limits: Limits = LIMITS,
    follow_redirects: bool = False,
) -> _Client:
    """The client for an address, made by the SDK's own class `make`.

    It keeps no cookies. It follows redirects only with `follow_redirects`: prompts are sent only to
    the address that the user gave, and most redirects would turn a request into a GET without one.

    Raises:
        SetupError: the address, a proxy or the file of certificates is invalid.
    """
    keep_address(address)

    async def bind(response: httpx2.Response) -> None:
        """Limits the body, before any of it is read."""
        encoding = response.headers.pop("Content-Encoding", "")
        response.headers["Content-Type"] = _PLAIN
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, response.status_code, encoding, limits)

    try:
        return make(
            base_url=address,
            follow_redirects=follow_redirects,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            headers={"Accept-Encoding": ACCEPTED},
            event_hooks={"response": [bind]},
            verify=_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        )
    except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
        problem = " ".join(str(error).split())
        raise SetupError(
            f"no client for {redact_address(address)}: {problem}; look at the address, and in the "
            "environment at the proxies (HTTPS_PROXY, ALL_PROXY) and SSL_CERT_FILE"
        ) from error


@lru_cache(maxsize=4)
def _certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """The trusted certificates for all clients; reading them takes 20 ms. The arguments are
    everything that the result depends on.
    """
    return httpx2.create_ssl_context()


class _Bounded(httpx2.AsyncByteStream):
    """A body whose size is limited."""

    def __init__(
        self, raw: httpx2.AsyncByteStream, status: int, encoding: str, limits: Limits
    ) -> None:
        self._raw = raw
        self._pieces = bounded(raw, status, encoding, limits)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._raw.aclose()


def broken(error: BaseException, address: str) -> ProviderError:
    """The error for a connection to `address` that an SDK reported as broken."""
    cause = error.__cause__ or error
    if isinstance(cause, BadReplyError):  # of `bounded`
        return cause
    why = " ".join(str(cause).split()) or type(cause).__name__
    no_access = str(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED.value)
    if isinstance(cause, httpx2.ProxyError) and why.startswith(no_access):
        return proxied(error_of(int(no_access), why, {}), address)
    kind = ConnectError if isinstance(cause, httpx2.ConnectError) else BrokenConnectionError
    return proxied(kind(f"no connection to {redact_address(address)}: {why}"), address)


def status_error(response: httpx2.Response, address: str) -> ProviderError:
    """The error for a response that is no reply. One without JSON, or that knows no such address,
    may be of a proxy, not of the server.
    """
    error = error_of(response.status_code, response.text, response.headers)
    is_json = response.text.lstrip().startswith(("{", "["))
    is_of_server = is_json and response.status_code not in _OF_PROXIES
    return error if is_of_server else proxied(error, address)


def proxied(error: ProviderError, address: str) -> ProviderError:
    """The error with the proxy through which the request went; itself where there was none. No
    access may then be the proxy's word: no key is to blame.
    """
    parts, proxies = urlsplit(address), urllib.request.getproxies()
    names = (f"{parts.scheme}_proxy", "all_proxy")
    host = parts.hostname or ""
    name = next((name for name in names if proxies.get(name.removesuffix("_proxy"))), None)
    if name is None or urllib.request.proxy_bypass(host):
        return error
    variable = next((one for one in (name, name.upper()) if os.environ.get(one)), "this system")
    noted = (StopRunError if isinstance(error, AuthError) else type(error))(
        f"{error}; the request went to the proxy "
        f"{redact_address(proxies[name.removesuffix('_proxy')])} of {variable}: "
        f"NO_PROXY={host} asks the server itself"
    )
    vars(noted).update({one: value for one, value in vars(error).items() if one != "lines"})
    return noted
