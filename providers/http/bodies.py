"""Reads and decompresses the bodies of replies, up to a limit: a server may send without end, or
send a gigabyte as a megabyte of gzip.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from eyechart.providers.base import BadReplyError
from eyechart.providers.secrets import redact

if TYPE_CHECKING:
    import aiohttp

ACCEPTED = "gzip"
"""The compression that requests ask for."""
_GZIP_OR_ZLIB = 47
"""`wbits` of zlib: detects the format from the header."""
_AT_ONCE = 65_536
"""Most decompressed bytes in one piece."""
_BEGINNING, _SHOWN = 4096, 200
"""Bytes of a non-JSON body that are searched for keys, and characters that are shown."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Most bytes of a decompressed body."""

    reply: int = 32 * 2**20
    """Limit for a reply. 100,000 tokens with their probabilities have 11 MiB."""
    error: int = 64 * 2**10
    """Limit for any status but success; the rest is not read."""


LIMITS = BodyLimits()


def is_success(status: int) -> bool:
    """Whether a reply of this status has what was asked for."""
    return status // 100 == 2  # noqa: PLR2004


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """The body of a reply; of an error only its beginning.

    aiohttp must not decompress it (`auto_decompress=False`).

    Raises:
        BadReplyError: the reply is too long or cannot be decompressed.
    """
    encoding, length = response.headers.get("Content-Encoding", ""), response.content_length
    most = LIMITS.reply if is_success(response.status) else LIMITS.error
    if not encoding and length is not None and length <= most:
        return await response.read()
    pieces = bounded(response.content.iter_any(), response.status, encoding)
    return b"".join([piece async for piece in pieces])


async def bounded(
    raw: AsyncIterable[bytes], status: int, encoding: str, limits: BodyLimits = LIMITS
) -> AsyncIterator[bytes]:
    """The decompressed pieces of a body, up to the limits.

    Raises:
        BadReplyError: the reply is too long or cannot be decompressed.
    """
    failed = not is_success(status)
    most = limits.error if failed else limits.reply
    received = decompressed = 0
    iterator = aiter(raw)
    try:
        unpacker = _unpacker(encoding)
        async for piece in iterator:
            received += len(piece)
            for unpacked in _unpacked(piece, unpacker):
                decompressed += len(unpacked)
                if max(received, decompressed) > most:
                    if failed:
                        yield unpacked[: most - decompressed] if decompressed > most else unpacked
                        return
                    raise BadReplyError(f"the reply is longer than {_size(most)}; it is not read")
                yield unpacked
            if unpacker is not None and unpacker.eof:
                return
    except zlib.error as error:
        if not failed:
            raise BadReplyError(f"the reply cannot be unpacked from {encoding!r}") from error
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()


def read_json(content: bytes) -> Any:
    """The JSON of a reply's body, also with a lone surrogate in it.

    Raises:
        BadReplyError: it is not JSON.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        begins = redact(" ".join(content[:_BEGINNING].decode(errors="replace").split()))[:_SHOWN]
        raise BadReplyError(f"the reply is not JSON; it begins {begins!r}") from error


def _unpacker(encoding: str) -> zlib._Decompress | None:
    """The decompressor for an encoding; raises `zlib.error` for an unknown one."""
    kind = encoding.strip().lower()
    if kind in ("", "identity"):
        return None
    if kind in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(_GZIP_OR_ZLIB)
    raise zlib.error


def _unpacked(piece: bytes, unpacker: zlib._Decompress | None) -> Iterator[bytes]:
    """Decompresses a piece of a body; yields it in parts of at most `_AT_ONCE` bytes."""
    if unpacker is None:
        yield piece
        return
    while not unpacker.eof:
        unpacked = unpacker.decompress(piece, _AT_ONCE)
        yield unpacked
        if len(unpacked) < _AT_ONCE:
            return
        piece = unpacker.unconsumed_tail


def _size(most: int) -> str:
    return f"{most / 2**20:,.0f} MiB"
