"""The Batch API of OpenAI and of vendors who copied it, through the official SDK.

Replies are read as JSON and not as the SDK's classes, which take anything for a batch.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Omit, omit

from providers.base import (
    BadReplyError,
    BatchState,
    ModelSettings,
    SetupError,
    UnknownModelError,
)
from providers.http.bodies import Limits
from providers.http.errors import as_text
from providers.http.sdk import http_client
from providers.openai.api import TIMEOUT_S, OpenAIProvider, open_provider, sdk_errors
from providers.openai.form import is_count, read_json
from providers.secrets import mask, masked, redact, redact_address

TOKEN = "eyechart"  # noqa: S105  no secret
"""The name under which a batch's metadata has our token."""
_WINDOW: Any = "24h"
"""The only one there is."""
_PAGE, _PAGES = 100, 1000
"""Batches in a page of the list, and pages that are looked through."""
_FILES = Limits(reply=8 * 2**30)
"""Of a file of replies; one of requests has 200 MB at most."""
_LINE = 32 * 2**20
"""The longest line of one, as of a reply that is asked directly."""
_SOUND_NAME = re.compile(r"(?!\.{1,2}$)[\w.:@=+/-]{1,200}", re.ASCII)
_SHOWN = 300
_SKEW_S = 86_400.0
"""How far the vendor's clock and ours may differ."""


class OpenAIBatches:
    """The batches of one account at one address."""

    def __init__(self, client: AsyncOpenAI, provider: OpenAIProvider) -> None:
        self._client = client
        self._provider = provider
        self.address = redact_address(str(client.base_url))
        address = str(client.base_url)  # vendors keep their files elsewhere, at an address of a GET
        self._files = client.with_options(
            http_client=http_client(
                DefaultAsyncHttpxClient, address, limits=_FILES, follow_redirects=True
            )
        )

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
        name = _name(read.get("id")) if isinstance(read, dict) else None
        if name is None:
            raise BadReplyError("the reply to an upload names no file")
        return name

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
        for _ in range(_PAGES):
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
                if _table(one.get("metadata")).get(TOKEN) == token:
                    return _state(one)
            oldest = page[-1].get("created_at") if page else None
            old = isinstance(oldest, int | float) and oldest < since_s - _SKEW_S
            if not page or not read.get("has_more") or old:
                return None
            after = _state(page[-1]).id
        raise BadReplyError(f"the list of batches does not end after {_PAGES * _PAGE:,}")

    async def state(self, batch: str) -> BatchState:
        """How far a batch is."""
        with sdk_errors(self._client):
            async with asyncio.timeout(TIMEOUT_S):
                raw = await self._client.batches.with_raw_response.retrieve(batch)
                return _state(read_json(await raw.http_response.aread()))

    async def fetch(self, file: str, to: Path) -> None:
        """Streams the file to `to`, where it is once it is whole; no line of it has a key."""
        partial = to.with_name(f"{to.name}.tmp")
        try:
            with sdk_errors(self._client), partial.open("wb") as written:
                async with self._files.files.with_streaming_response.content(file) as content:
                    async for line in _lines(content.iter_bytes()):
                        written.write(_masked(line))
            partial.replace(to)
        finally:
            partial.unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._files.close()
        await self._provider.aclose()


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines that the pieces make up; raises `BadReplyError` where one does not end."""
    begun: list[bytes] = []
    size = 0
    async for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for line in ended:
            yield b"".join([*begun, line, b"\n"])
            begun.clear()
            size = 0
        begun.append(rest)
        size += len(rest)
        if size > _LINE:
            raise BadReplyError(f"a line of the file is longer than {_LINE / 2**20:.0f} MiB")
    yield b"".join(begun)


def _masked(line: bytes) -> bytes:
    """A line of replies without keys that somebody said back; JSON stays JSON."""
    said = line.decode(errors="surrogateescape")
    clean = mask(said)
    if clean == said:
        return line
    try:
        return orjson.dumps(masked(orjson.loads(line))) + b"\n"
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return clean.encode(errors="surrogateescape")


def _state(read: Any) -> BatchState:
    """A batch object; raises `BadReplyError` where it is none."""
    read = _table(read)
    name, status = _name(read.get("id")), read.get("status")
    if name is None or not isinstance(status, str):
        raise BadReplyError("the reply is no batch: it has no id or status")
    counts = _table(read.get("request_counts"))
    total, completed, failed = (
        value if is_count(value := counts.get(kind)) else 0
        for kind in ("total", "completed", "failed")
    )
    problems = _table(read.get("errors")).get("data")
    return BatchState(
        id=name,
        status=redact(status)[:_SHOWN].lower(),
        total=total,
        completed=completed,
        failed=failed,
        output_file=_name(read.get("output_file_id")),
        error_file=_name(read.get("error_file_id")),
        problems=tuple(_problem(one) for one in problems if isinstance(one, dict))
        if isinstance(problems, list)
        else (),
    )


def _table(read: object) -> dict[str, Any]:
    return read if isinstance(read, dict) else {}


def _name(given: object) -> str | None:
    """By which a vendor knows a batch or a file: it is kept, and becomes a part of an address."""
    sound = isinstance(given, str) and _SOUND_NAME.fullmatch(given) and mask(given) == given
    return given if sound and isinstance(given, str) else None


def _problem(error: Mapping[str, Any]) -> str:
    line = f"line {as_text(error['line'])}: " if error.get("line") else ""
    code = f" ({as_text(error['code'])})" if error.get("code") else ""
    said = " ".join(as_text(error.get("message")).split())
    return redact(f"{line}{said}{code}")[:_SHOWN]


def open_service(settings: ModelSettings) -> OpenAIBatches:
    """The Batch API at the settings' address, else at the provider's.

    Raises:
        SetupError: a key is missing, or there are several addresses.
    """
    if len(settings.base_urls) > 1:
        raise SetupError("a batch is in one place: give one --base-url with --batch")
    provider = open_provider(settings)
    return OpenAIBatches(provider.clients[0], provider)
