"""The HTTP client of both SDKs: it follows no redirects and limits the size of replies."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeVar

import httpx2

from eyechart.providers.base import (
    BadReplyError,
    BrokenConnectionError,
    ConnectError,
    ProviderError,
    SetupError,
)
from eyechart.providers.http.bodies import ACCEPTED, LIMITS, Limits, bounded
from eyechart.providers.secrets import keep_address, redact_address

_Client = TypeVar("_Client", bound=httpx2.AsyncClient)
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
    kind = ConnectError if isinstance(cause, httpx2.ConnectError) else BrokenConnectionError
    return kind(f"no connection to {redact_address(address)}: {cause}")
