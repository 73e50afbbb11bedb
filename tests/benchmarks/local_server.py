"""The fastest OpenAI-compatible server at hand: every prompt gets the same answer at once.

    python tests/benchmarks/local_server.py [--port 0] [--latency 0.2]

Just enough HTTP/1.1 with keep-alive over a bare asyncio protocol (uvloop's loop where it is
installed), so that whatever asks is what is measured. The base URL is the first line on stdout.
`GET /count` says how many answers there were and the seconds from the first question to the last
answer; `GET /reset` starts a new count.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, cast

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END = b"\r\n\r\n"
_USAGE = {"prompt_tokens": 60, "completion_tokens": 4, "total_tokens": 64}
_TEXT = "Final answer: 7"


def _http(status: str, said: object) -> bytes:
    content = json.dumps(said).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    return head.encode() + _END + content


def _completion(kind: str, **said: object) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, **said}
    reply = {"id": "reply-1", "object": kind, "created": 1_700_000_000, "model": "fake"}
    return _http("200 OK", {**reply, "choices": [choice], "usage": _USAGE})


CHAT = _completion("chat.completion", message={"role": "assistant", "content": _TEXT})
COMPLETION = _completion("text_completion", text=_TEXT)
MODELS = _http(
    "200 OK",
    {"object": "list", "data": [{"id": "fake", "object": "model", "max_model_len": 10**6}]},
)
MISSING = _http("404 Not Found", {"error": {"message": "no such page"}})


@dataclass(slots=True)
class Count:
    """Answers so far, and when."""

    answers: int = 0
    first_s: float = 0.0
    last_s: float = 0.0


@dataclass(slots=True)
class Site:
    """What all connections share."""

    latency_s: float
    loop: asyncio.AbstractEventLoop
    count: Count = field(default_factory=Count)

    def answer(self, transport: asyncio.Transport, head: bytes) -> None:
        """To one request, now or after the latency."""
        if not head.startswith(b"POST") or b"completions" not in head[:80]:
            transport.write(self._page(head.split(b" ", 2)[1]))
            return
        said = CHAT if b"/chat/" in head[:80] else COMPLETION
        if not self.count.answers and not self.count.first_s:
            self.count.first_s = perf_counter()
        if self.latency_s:
            self.loop.call_later(self.latency_s, self._write, transport, said)
        else:
            self._write(transport, said)

    def _write(self, transport: asyncio.Transport, said: bytes) -> None:
        if not transport.is_closing():
            transport.write(said)
            self.count.answers += 1
            self.count.last_s = perf_counter()

    def _page(self, path: bytes) -> bytes:
        if path == b"/v1/models":
            return MODELS
        if path == b"/reset":
            self.count = Count()
        elif path != b"/count":
            return MISSING
        seconds = self.count.last_s - self.count.first_s
        return _http("200 OK", {"answers": self.count.answers, "seconds": seconds})


class Connection(asyncio.Protocol):
    """Cuts the stream into requests."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        data = self._pending + data
        while (end := data.find(_END)) >= 0:
            head = data[:end]
            length = _LENGTH.search(head)
            whole = end + len(_END) + (int(length[1]) if length else 0)
            if len(data) < whole:
                break
            self._site.answer(self._transport, head)
            data = data[whole:]
        self._pending = data


async def serve(port: int, latency_s: float) -> None:
    """Serves until SIGTERM."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    site = Site(latency_s, loop)
    server = await loop.create_server(lambda: Connection(site), "127.0.0.1", port, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await ended.wait()
    server.close()


def fastest() -> Callable[[], asyncio.AbstractEventLoop]:
    """Makes the fastest loop there is here."""
    with suppress(ImportError):
        uvloop: Any = importlib.import_module("uvloop")
        return cast("Callable[[], asyncio.AbstractEventLoop]", uvloop.new_event_loop)
    return asyncio.new_event_loop


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    given = parser.parse_args()
    with asyncio.Runner(loop_factory=fastest()) as runner:
        runner.run(serve(given.port, given.latency))
