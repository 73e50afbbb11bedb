"""How much of a reply's body is read, and taken out of its compression: a server may go on without
end, or send a gigabyte as a megabyte of gzip.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from providers.base import BadReplyError

if TYPE_CHECKING:
    import aiohttp

OK = 200
ACCEPTED = "gzip"
"""The compression that is asked for; `bounded` can take no other away."""
_GZIP_OR_ZLIB = 47
"""`wbits` of zlib: the header says which it is."""
_AT_ONCE = 65_536
"""Bytes that come out of the compression in one piece."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many bytes of a body are read, once it is out of its compression."""

    reply: int = 32 * 2**20
    """A longer one is none: a reply of 100,000 tokens with their probabilities has 11 MiB."""
    error: int = 64 * 2**10
    """Of any other status; what follows is not read."""


LIMITS = Limits()


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """The body of a reply; of an error its beginning.

    aiohttp must leave it as it came (`auto_decompress=False`).

    Raises:
        BadReplyError: it is too long, or in a compression that was not asked for.
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
    """The pieces of a body, within the limits and out of its compression.

    Raises:
        BadReplyError: a reply is too long, or in a compression that was not asked for.
    """
    failed = status != OK
    most = limits.error if failed else limits.reply
    came = taken = 0
    iterator = aiter(raw)
    try:
        unpacker = _unpacker(encoding)
        async for piece in iterator:
            came += len(piece)
            for unpacked in _unpacked(piece, unpacker):
                taken += len(unpacked)
                if max(came, taken) > most:
                    if failed:
                        yield unpacked[: most - taken] if taken > most else unpacked
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
    """What takes a compression away; raises `zlib.error` for one that nothing here does."""
    kind = encoding.strip().lower()
    if kind in ("", "identity"):
        return None
    if kind in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(_GZIP_OR_ZLIB)
    raise zlib.error


def _unpacked(piece: bytes, unpacker: zlib._Decompress | None) -> Iterator[bytes]:
    """What a piece has in it, never more than a little at once."""
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
