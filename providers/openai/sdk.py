"""OpenAI's SDK, which sends and fetches the files of batches. It does not retry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import openai

from eyechart.providers.base import (
    TIMEOUT_S,
    BadReplyError,
    BrokenConnectionError,
    ConnectError,
    ReplyTimeoutError,
)
from eyechart.providers.http.client import Client, certificates, failure_of
from eyechart.providers.http.proxy import noted, proxy_for
from eyechart.providers.secrets import redact_address


def sdk_of(client: Client, *, follow_redirects: bool = False) -> openai.AsyncOpenAI:
    """The SDK at the address of a client, with its headers. The key does not go where a redirect
    leads to.
    """
    return openai.AsyncOpenAI(
        api_key="none",  # the headers have it
        base_url=client.url,
        max_retries=0,
        timeout=TIMEOUT_S,
        default_headers={**client.headers, "Accept-Encoding": "identity"},
        http_client=openai.DefaultAsyncHttpxClient(
            follow_redirects=follow_redirects, verify=certificates()
        ),
    )


@contextmanager
def sdk_errors(address: str) -> Iterator[None]:
    """Raises errors of the SDK, which asks `address`, as errors of `providers.base`."""
    proxy, where = proxy_for(address), redact_address(address)
    try:
        yield
    except openai.APIStatusError as error:
        said = error.response
        text = said.content.decode(errors="replace")
        raise failure_of(said.status_code, text, said.headers, proxy) from error
    except openai.APITimeoutError as error:
        raise ReplyTimeoutError(f"{where}: no reply within {TIMEOUT_S:.0f} s") from error
    except (openai.APIConnectionError, httpx2.HTTPError) as error:
        cause = error.__cause__ or error
        why = " ".join(str(cause).split()) or type(cause).__name__
        kind = ConnectError if isinstance(cause, httpx2.ConnectError) else BrokenConnectionError
        raise noted(kind(f"no connection to {where}: {why}"), proxy) from error
    except openai.OpenAIError as error:
        raise BadReplyError(" ".join(str(error).split())) from error
