"""Reads and decompresses the bodies of replies, up to a limit: a server may send without end, or
send a gigabyte as a megabyte of gzip.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eyechart.providers.base import BadReplyError

if TYPE_CHECKING:
    import aiohttp

OK = 200
ACCEPTED = "gzip"
"""The compression that requests ask for."""
_GZIP_OR_ZLIB = 47
"""`wbits` of zlib: detects the format from the header."""
_AT_ONCE = 65_536
"""Most decompressed bytes in one piece."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Most bytes of a decompressed body."""

    reply: int = 32 * 2**20
    """Limit for a reply. 100,000 tokens with their probabilities have 11 MiB."""
    error: int = 64 * 2**10
    """Limit for any status but 200; the rest is not read."""


LIMITS = Limits()


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """The body of a reply; of an error only its beginning.

    aiohttp must not decompress it (`auto_decompress=False`).

    Raises:
        BadReplyError: the reply is too long or cannot be decompressed.
    """
    encoding, length = response.headers.get("Content-Encoding", ""), response.content_length
    most = LIMITS.reply if response.status == OK else LIMITS.error
    if not encoding and length is not None and length <= most:
        return await response.read()
    pieces = bounded(response.content.iter_any(), response.status, encoding)
    return b"".join([piece async for piece in pieces])


async def bounded(
    raw: AsyncIterable[bytes], status: int, encoding: str, limits: Limits = LIMITS
) -> AsyncIterator[bytes]:
    """The decompressed pieces of a body, up to the limits.

    Raises:
        BadReplyError: the reply is too long or cannot be decompressed.
    """
    failed = status != OK
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
