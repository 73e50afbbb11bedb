"""The HTTP client beneath both SDKs: it goes where it is told, and reads of a reply what it may."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeVar

import httpx2

from providers.base import BadReplyError, SetupError
from providers.http.bodies import ACCEPTED, LIMITS, Limits, bounded
from providers.secrets import keep_address, redact_address

_Client = TypeVar("_Client", bound=httpx2.AsyncClient)
_PLAIN = "application/json"
"""Stands for whatever type a server names: its `charset` may be one that Python cannot read."""


def http_client(
    make: Callable[..., _Client],
    address: str,
    *,
    limits: Limits = LIMITS,
    follow_redirects: bool = False,
) -> _Client:
    """The client for an address, by the class that an SDK takes for its own.

    It keeps no cookies. A redirect is not followed unless said so: a prompt goes nowhere but to the
    address that the user named, and most redirects would turn it into a GET without one.

    Raises:
        SetupError: the address, a proxy or the file of certificates is none.
    """
    keep_address(address)

    async def bind(response: httpx2.Response) -> None:
        """Before any of the body is read."""
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
        )
    except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
        said = " ".join(str(error).split())
        raise SetupError(
            f"no client for {redact_address(address)}: {said}; look at the address, and in the "
            "environment at the proxies (HTTPS_PROXY, ALL_PROXY) and SSL_CERT_FILE"
        ) from error


class _Bounded(httpx2.AsyncByteStream):
    """A body within the limits."""

    def __init__(
        self, raw: httpx2.AsyncByteStream, status: int, encoding: str, limits: Limits
    ) -> None:
        self._raw = raw
        self._pieces = bounded(raw, status, encoding, limits)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._raw.aclose()


def bad_reply(error: BaseException) -> BadReplyError | None:
    """The error of `bounded` that made an SDK say that the connection broke."""
    cause = error.__cause__
    return cause if isinstance(cause, BadReplyError) else None
