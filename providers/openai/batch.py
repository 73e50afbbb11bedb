"""The Batch API of OpenAI, and of vendors with the same API. Files go through the official SDK."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from eyechart.providers.base import (
    BadReplyError,
    ModelSettings,
    SetupError,
    UnknownModelError,
)
from eyechart.providers.batches import BatchState
from eyechart.providers.http.bodies import read_json
from eyechart.providers.http.client import Client
from eyechart.providers.http.error_body import as_text
from eyechart.providers.naming import named
from eyechart.providers.openai.api import OpenAIProvider, open_provider
from eyechart.providers.openai.sdk import sdk_errors, sdk_of
from eyechart.providers.plugins.contract import is_count
from eyechart.providers.secrets import mask, masked, redact, redact_address

TOKEN = "eyechart"  # noqa: S105  no secret
"""Name of the metadata field with the token that marks a batch as ours."""
_WINDOW = "24h"
"""The only completion window that OpenAI has."""
_PAGE, _PAGES = 100, 1000
"""Batches in a page of the list, and most pages that are read."""
_FILE = 8 * 2**30
"""Most bytes of a file of replies; a file of requests has at most 200 MB."""
_LINE = 32 * 2**20
"""Most bytes of one line of such a file; a reply outside of batches has the same limit."""
_SOUND_NAME = re.compile(r"(?!\.{1,2}$)[\w.:@=+/-]{1,200}", re.ASCII)
_SHOWN = 300
"""Most characters of a vendor's text in our messages."""
_SKEW_S = 86_400.0
"""Seconds that the vendor's clock and ours may differ."""


class OpenAIBatches:
    """The batches of one account at one address."""

    def __init__(self, client: Client, provider: OpenAIProvider) -> None:
        self._client = client
        self._provider = provider
        self.address = redact_address(client.address)
        self._sdk = sdk_of(client)
        # some vendors store files elsewhere
        self._fetching = sdk_of(client, follow_redirects=True)

    async def facts(self) -> Mapping[str, object]:
        return await self._provider.facts()

    async def upload(self, file: Path) -> str:
        """Uploads a file of requests; returns the vendor's name for it.

        Raises:
            SetupError: the address has no Batch API.
            ProviderError: the upload failed.
        """
        try:
            with sdk_errors(self._client.address), file.open("rb") as content:
                raw = await self._sdk.files.with_raw_response.create(
                    file=(file.name, content), purpose="batch"
                )
                read = _table(read_json(await raw.http_response.aread()))
        except UnknownModelError as error:
            raise SetupError(f"{self.address} has no Batch API ({error})") from error
        name = _name(read.get("id"))
        if name is None:
            raise BadReplyError("the reply to an upload does not name the file")
        return name

    async def create(self, file: str, url: str, token: str) -> BatchState:
        """Submits an uploaded file as a batch, marked with `token`; returns its first state."""
        body = {
            "completion_window": _WINDOW,
            "endpoint": url,
            "input_file_id": file,
            "metadata": {TOKEN: token},
        }
        return _state(await self._client.post("/batches", body))

    async def find(self, token: str, since_s: float) -> BatchState | None:
        """The batch marked with `token`; looks through the account's batches, the newest first.

        `since_s`, in seconds since 1970: older batches are not looked at, except for the difference
        of clocks.
        """
        wanted = {"limit": str(_PAGE)}
        for _ in range(_PAGES):
            read = _table(await self._client.get(f"/batches?{urlencode(wanted)}"))
            page = read.get("data")
            if not isinstance(page, list) or not all(isinstance(batch, dict) for batch in page):
                raise BadReplyError("the reply is not a list of batches")
            for batch in page:
                if _table(batch.get("metadata")).get(TOKEN) == token:
                    return _state(batch)
            oldest = page[-1].get("created_at") if page else None
            old = isinstance(oldest, int | float) and oldest < since_s - _SKEW_S
            if not page or not read.get("has_more") or old:
                return None
            wanted["after"] = _state(page[-1]).id
        raise BadReplyError(f"the list of batches does not end after {_PAGES * _PAGE:,} batches")

    async def state(self, batch: str) -> BatchState:
        return _state(await self._client.get(f"/batches/{quote(batch, safe='')}"))

    async def fetch(self, file: str, to: Path) -> None:
        """Downloads the file to `to`, which appears when it is complete; keys in it are masked."""
        partial = to.with_name(f"{to.name}.tmp")
        try:
            with sdk_errors(self._client.address), partial.open("wb") as written:
                async with self._fetching.files.with_streaming_response.content(file) as content:
                    async for line in _lines(content.iter_bytes()):
                        written.write(_masked(line))
            partial.replace(to)
        finally:
            partial.unlink(missing_ok=True)

    async def aclose(self) -> None:
        await self._sdk.close()
        await self._fetching.close()
        await self._provider.aclose()


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a file that comes in pieces; raises `BadReplyError` if a line or the file is too
    long.
    """
    begun: list[bytes] = []
    whole = size = 0
    async for piece in pieces:
        whole += len(piece)
        if whole > _FILE:
            raise BadReplyError(f"the file is longer than {_FILE / 2**30:.0f} GiB")
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
    """A line of replies with keys masked, if it repeats any; JSON stays JSON."""
    text = line.decode(errors="surrogateescape")
    clean = mask(text)
    if clean == text:
        return line
    try:
        return orjson.dumps(masked(orjson.loads(line))) + b"\n"
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return clean.encode(errors="surrogateescape")


def _state(read: Any) -> BatchState:
    """The state in a batch object; raises `BadReplyError` if `read` is no batch."""
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
        problems=tuple(_problem(problem) for problem in problems if isinstance(problem, dict))
        if isinstance(problems, list)
        else (),
    )


def _table(read: object) -> dict[str, Any]:
    """`read` if it is a JSON object, else an empty one."""
    return read if isinstance(read, dict) else {}


def _name(given: object) -> str | None:
    """The vendor's name of a batch or a file, if it is safe to store and to use in an address."""
    sound = isinstance(given, str) and _SOUND_NAME.fullmatch(given) and mask(given) == given
    return given if sound and isinstance(given, str) else None


def _problem(error: Mapping[str, Any]) -> str:
    """One line for an error of a batch: line of the input file, message, code."""
    line = f"line {as_text(error['line'])}: " if error.get("line") else ""
    code = f" ({as_text(error['code'])})" if error.get("code") else ""
    message = " ".join(as_text(error.get("message")).split())
    return redact(f"{line}{message}{code}")[:_SHOWN]


def open_service(settings: ModelSettings) -> OpenAIBatches:
    """Opens the Batch API at the address in the settings, or else at the provider's address.

    Raises:
        SetupError: the key is missing, or there are several addresses.
    """
    if len(settings.base_urls) > 1:
        raise SetupError(
            f"a batch is sent to one server: give one {named('base_url')} with "
            f"{named('tier', 'batch')}"
        )
    provider = open_provider(settings)
    (client,) = provider.clients
    return OpenAIBatches(client, provider)
