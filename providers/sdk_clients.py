"""Whether SDKs can make their clients here; they read more of the environment than our settings."""

from __future__ import annotations

import httpx2

from providers.base import SetupError, redact


def try_client(address: str) -> None:
    """Makes the client beneath both SDKs, whose own would complain once more when it is dropped.

    Raises:
        SetupError: the address, a proxy or the file of certificates is none.
    """
    try:
        httpx2.AsyncClient(base_url=address)
    except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
        said = " ".join(str(error).split())
        raise SetupError(
            redact(
                f"no client for {address}: {said}; look at the address, and in the environment at "
                "the proxies (HTTPS_PROXY, ALL_PROXY) and SSL_CERT_FILE"
            )
        ) from error
