"""The Batch API of OpenAI and of vendors who copied it, through the official SDK.

Replies are read as JSON and not as the SDK's classes, which take anything for a batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, Omit, omit

from providers.base import (
    BadReplyError,
    BatchState,
    ModelSettings,
    SetupError,
    UnknownModelError,
    redact,
)
from providers.openai_api import TIMEOUT_S, OpenAIProvider, open_provider, sdk_errors
from providers.openai_form import read_json

TOKEN = "eyechart"  # noqa: S105  no secret
"""The name under which a batch's metadata has our token."""
_WINDOW: Any = "24h"
"""The only one there is."""
_PAGE = 100
_SKEW_S = 86_400.0
"""How far the vendor's clock and ours may differ."""


class OpenAIBatches:
    """The batches of one account at one address."""

    def __init__(self, client: AsyncOpenAI, provider: OpenAIProvider) -> None:
        self._client = client
        self._provider = provider
        self.address = redact(str(client.base_url))

    async def facts(self) -> Mapping[str, object]:
        """As for requests that are sent one by one."""
        return await self._provider.facts()

    async def upload(self, file: Path) -> str:
        """The vendor's name for the file.

        Raises:
            SetupError: nobody takes files there.
        """
        try:
            with sdk_errors(self._client), file.open("rb") as content:
                raw = await self._client.files.with_raw_response.create(
                    file=(file.name, content), purpose="batch"
                )
                read = read_json(await raw.http_response.aread())
        except UnknownModelError as error:
            raise SetupError(f"{self.address} has no Batch API ({error})") from error
        if not isinstance(read, dict) or not isinstance(read.get("id"), str):
            raise BadReplyError("the reply to an upload names no file")
        return str(read["id"])

    async def create(self, file: str, url: str, token: str) -> BatchState:
        """The batch as it begins."""
        endpoint: Any = url
        with sdk_errors(self._client):
            async with asyncio.timeout(TIMEOUT_S):
                raw = await self._client.batches.with_raw_response.create(
                    completion_window=_WINDOW,
                    endpoint=endpoint,
                    input_file_id=file,
                    metadata={TOKEN: token},
                )
                return _state(read_json(await raw.http_response.aread()))

    async def find(self, token: str, since_s: float) -> BatchState | None:
        """Goes through the account's batches, newest first."""
        after: str | Omit = omit
        while True:
            with sdk_errors(self._client):
                async with asyncio.timeout(TIMEOUT_S):
                    raw = await self._client.batches.with_raw_response.list(
                        limit=_PAGE, after=after
                    )
                    read = read_json(await raw.http_response.aread())
            page = read.get("data") if isinstance(read, dict) else None
            if not isinstance(page, list) or not all(isinstance(one, dict) for one in page):
                raise BadReplyError("the list of batches is none")
            for one in page:
                if (one.get("metadata") or {}).get(TOKEN) == token:
                    return _state(one)
            oldest = page[-1].get("created_at") if page else None
            old = isinstance(oldest, int | float) and oldest < since_s - _SKEW_S
            if not page or not read.get("has_more") or old:
                return None
            after = _state(page[-1]).id

    async def state(self, batch: str) -> BatchState:
        """How far a batch is."""
        with sdk_errors(self._client):
            async with asyncio.timeout(TIMEOUT_S):
                raw = await self._client.batches.with_raw_response.retrieve(batch)
                return _state(read_json(await raw.http_response.aread()))

    async def fetch(self, file: str, to: Path) -> None:
        """Streams the file to `to`, where it is once it is whole."""
        partial = to.with_name(f"{to.name}.tmp")
        try:
            with sdk_errors(self._client), partial.open("wb") as written:
                async with self._client.files.with_streaming_response.content(file) as content:
                    async for piece in content.iter_bytes():
                        written.write(piece)
            partial.replace(to)
        finally:
            partial.unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._provider.aclose()


def _state(read: Any) -> BatchState:
    """A batch object; raises `BadReplyError` where it is none."""
    known = isinstance(read, dict) and all(isinstance(read.get(k), str) for k in ("id", "status"))
    if not known:
        raise BadReplyError("the reply is no batch: it has no id or status")
    counts = read.get("request_counts") or {}
    total, completed, failed = (
        value if isinstance(value := counts.get(name), int) else 0
        for name in ("total", "completed", "failed")
    )
    problems = (read.get("errors") or {}).get("data") or []
    return BatchState(
        id=read["id"],
        status=read["status"].lower(),
        total=total,
        completed=completed,
        failed=failed,
        output_file=read.get("output_file_id") or None,
        error_file=read.get("error_file_id") or None,
        problems=tuple(_problem(one) for one in problems if isinstance(one, dict)),
    )


def _problem(error: Mapping[str, Any]) -> str:
    line = f"line {error['line']}: " if error.get("line") else ""
    code = f" ({error['code']})" if error.get("code") else ""
    return redact(f"{line}{' '.join(str(error.get('message')).split())}{code}")


def open_service(settings: ModelSettings) -> OpenAIBatches:
    """The Batch API at the settings' address, else at the provider's.

    Raises:
        SetupError: a key is missing, or there are several addresses.
    """
    if len(settings.base_urls) > 1:
        raise SetupError("a batch is in one place: give one --base-url with --batch")
    provider = open_provider(settings)
    return OpenAIBatches(provider.clients[0], provider)
