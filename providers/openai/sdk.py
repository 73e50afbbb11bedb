"""OpenAI's SDK, which sends and fetches the files of batches.

It does not retry. Where it follows redirects, as vendors ask it to who keep files elsewhere, it
leaves the key behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2
import openai

from eyechart.providers.base import (
    TIMEOUT_S,
    BadReplyError,
    BrokenConnectionError,
    ConnectError,
    ReplyTimeoutError,
    SetupError,
)
from eyechart.providers.http.bodies import ACCEPTED, LIMITS, Limits, bounded
from eyechart.providers.http.client import certificates, failure_of
from eyechart.providers.http.proxy import noted, proxy_for
from eyechart.providers.secrets import redact_address


def http_client(
    address: str, *, limits: Limits = LIMITS, follow_redirects: bool = False
) -> httpx2.AsyncClient:
    """The HTTP client of the SDK for an address; it keeps no cookies and bounds what it reads.

    Raises:
        SetupError: a proxy or the file of certificates is invalid.
    """

    async def bind(response: httpx2.Response) -> None:
        """Limits the body, before any of it is read."""
        encoding = response.headers.pop("Content-Encoding", "")
        response.headers["Content-Type"] = "application/json"  # else Python looks up its `charset`
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, response.status_code, encoding, limits)

    try:
        return openai.DefaultAsyncHttpxClient(
            base_url=address,
            follow_redirects=follow_redirects,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            headers={"Accept-Encoding": ACCEPTED},
            event_hooks={"response": [bind]},
            verify=certificates(),
        )
    except (ImportError, OSError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise SetupError(f"no client for {redact_address(address)}: {problem}") from error


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


@contextmanager
def sdk_errors(address: str) -> Iterator[None]:
    """Raises errors of the SDK, which asks `address`, as errors of `providers.base`."""
    proxy, where = proxy_for(address), redact_address(address)
    try:
        yield
    except openai.APIStatusError as error:
        said = error.response
        raise failure_of(said.status_code, said.text, said.headers, proxy) from error
    except openai.APITimeoutError as error:
        raise ReplyTimeoutError(f"{where}: no reply within {TIMEOUT_S:.0f} s") from error
    except (openai.APIConnectionError, httpx2.HTTPError) as error:
        cause = error.__cause__ or error
        if isinstance(cause, BadReplyError):  # of `bounded`
            raise cause from error
        why = " ".join(str(cause).split()) or type(cause).__name__
        kind = ConnectError if isinstance(cause, httpx2.ConnectError) else BrokenConnectionError
        raise noted(kind(f"no connection to {where}: {why}"), proxy) from error
    except openai.OpenAIError as error:
        raise BadReplyError(" ".join(str(error).split())) from error
