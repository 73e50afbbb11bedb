"""Replies without end, and what is packed small, cost a request and no memory."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest
from aiohttp import web

from eyechart.providers.base import (
    BadReplyError,
    BadRequestError,
    ModelSettings,
    Reply,
    Request,
    ServerFaultError,
)
from eyechart.providers.http.bodies import BodyLimits, bounded
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from tests.fake_server import chat
from tests.faulty_server import serving

SMALL = BodyLimits(reply=1000, error=100)
MODELS = ("m", "vllm/m", "anthropic/m")
PIECE = b" " * 65_536


def packed(size: int, wbits: int = 31) -> bytes:
    """So many blanks in a thousandth of the bytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, wbits)
    return b"".join([*(packer.compress(PIECE) for _ in range(size // len(PIECE))), packer.flush()])


@dataclass
class Source:
    """Pieces that are taken one by one."""

    pieces: Sequence[bytes]
    taken: int = 0
    closed: bool = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for piece in self.pieces:
                self.taken += 1
                yield piece
        finally:
            self.closed = True


def read(source: Source, status: int = 200, encoding: str = "") -> bytes:
    """What `bounded` makes of the pieces."""

    async def whole() -> bytes:
        return b"".join([piece async for piece in bounded(source, status, encoding, SMALL)])

    try:
        return asyncio.run(whole())
    finally:
        assert source.closed or not source.taken


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("size", [0, 1, 99, 100])
@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "x-gzip", "deflate"])
def test_what_is_short_enough_comes_whole(encoding: str, size: int, status: int) -> None:
    """In any piecing, out of its compression."""
    said = b"x" * size
    sent = gzip.compress(said) if "gzip" in encoding else said
    sent = zlib.compress(said) if encoding == "deflate" else sent
    pieces = [sent[at : at + 7] for at in range(0, len(sent), 7)]
    assert read(Source(pieces), status, encoding) == said


@pytest.mark.parametrize("status", [200, 404, 500])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_what_is_too_long_is_not_read_to_its_end(encoding: str, status: int) -> None:
    """A reply is refused; of an error the beginning is enough."""
    sent = packed(2**24) if encoding else b" " * 2**24
    source = Source([sent[at : at + 64] for at in range(0, len(sent), 64)])
    if status == 200:
        with pytest.raises(BadReplyError, match="longer than"):
            read(source, status, encoding)
    else:
        assert read(source, status, encoding) == b" " * SMALL.error
    assert source.taken <= SMALL.reply // 64 + 1


def test_what_unpacks_to_nothing_is_bounded_too() -> None:
    """Empty blocks of a compression have no end either."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    first = packer.compress(b"x") + packer.flush(zlib.Z_FULL_FLUSH)
    source = Source([first, *[b"\0\0\0\xff\xff"] * 10_000])
    with pytest.raises(BadReplyError, match="longer than"):
        read(source, 200, "gzip")
    assert source.taken < 300


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "gzip", "deflate"])
def test_a_compression_that_is_none_is_said(encoding: str) -> None:
    """Nothing but gzip is asked for; the status of an error counts nevertheless."""
    with pytest.raises(BadReplyError, match=f"unpacked from '{encoding}'"):
        read(Source([b"{}", b"{}"]), 200, encoding)
    source = Source([b"{}", b"{}"])
    assert read(source, 500, encoding) == b""


@dataclass
class Endless:
    """A server that goes on for as long as it is heard."""

    status: int = 200
    encoding: str = ""
    begins: bytes = b""
    piece: bytes = PIECE
    most: int = 2**31
    base_url: str = ""
    sent: int = 0

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_route("*", "/{tail:.*}", self._go_on)
        return made

    async def _go_on(self, _request: web.Request) -> web.StreamResponse:
        headers = {"Content-Encoding": self.encoding} if self.encoding else {}
        response = web.StreamResponse(status=self.status, headers=headers)
        response.enable_chunked_encoding()
        await response.prepare(_request)
        try:
            await response.write(self.begins)
            while self.sent < self.most:
                await response.write(self.piece)
                self.sent += len(self.piece)
        except ConnectionError:
            pass
        return response


def ask(model: str, url: str) -> Reply:
    """The reply of a model there."""

    async def main() -> Reply:
        name = parse_model(model)
        provider = open_model(name, ModelSettings(name.model, base_urls=(url,)))
        try:
            return await provider.complete(Request("Row A: 1", 10))
        finally:
            await provider.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("model", MODELS)
def test_a_reply_without_end_is_none(model: str) -> None:
    """And is asked again, as whatever comes broken."""
    with serving(Endless()) as server, pytest.raises(BadReplyError, match="longer than 32 MiB"):
        ask(model, server.base_url)
    assert server.sent < 64 * 2**20


@pytest.mark.parametrize("model", MODELS)
def test_an_error_without_end_is_what_it_begins_with(model: str) -> None:
    """Of its body 64 KiB are read."""
    fault = pytest.raises(ServerFaultError, match="500: no luck today")
    with serving(Endless(500, begins=b"no luck today, ")) as server, fault:
        ask(model, server.base_url)
    assert server.sent < 16 * 2**20


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [200, 400])
def test_a_bomb_is_not_unpacked(model: str, status: int) -> None:
    """64 MiB in 64 KiB: a reply is none, an error has no more than its beginning."""
    error = BadReplyError if status == 200 else BadRequestError
    bomb = Endless(status, "gzip", begins=packed(2**26), most=0)
    with serving(bomb) as server, pytest.raises(error):
        ask(model, server.base_url)


@pytest.mark.parametrize("model", ["m", "vllm/m"])
def test_a_packed_reply_is_read(model: str) -> None:
    """Servers behind some proxies send no other."""
    body = gzip.compress(json.dumps(chat("Final answer: 7")).encode())
    with serving(Endless(encoding="gzip", begins=body, most=0)) as server:
        assert ask(model, server.base_url).text == "Final answer: 7"
