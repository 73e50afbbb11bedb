"""A local OpenAI-compatible server that goes wrong on purpose, the same way every time.

    python tests/faulty_server.py --port 8765 --seed 1 --faults all --most 3

Each prompt has one right answer, a pure function of the prompt. Which faults come before it is a
function of seed, prompt and attempt, so runs at any speed and in any order meet the same ones, and
after at most `most` of them the answer comes. Permanent faults are never followed by an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import email.utils
import hashlib
import json
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler

MODEL = "fake"
WINDOW = 1_000_000
_JSON, _HTML, _TEXT = "application/json", "text/html", "text/plain"
_PAGE = "<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center></body></html>"


def _error(message: str, **more: str) -> str:
    return json.dumps({"error": {"message": message, **more}})


PAGES: dict[str, tuple[int, str, str]] = {
    "408": (408, _JSON, _error("request timeout", type="timeout")),
    "409": (409, _JSON, _error("conflict, try again")),
    "429": (429, _JSON, _error("rate limit reached for requests", type="requests")),
    "429-date": (429, _JSON, _error("rate limit reached for tokens", type="tokens")),
    "500": (500, _TEXT, "Internal Server Error"),
    "502": (502, _HTML, _PAGE.format("502 Bad Gateway")),
    "503": (503, _JSON, _error("the engine is currently overloaded")),
    "529": (529, _JSON, json.dumps({"error": {"type": "overloaded_error", "message": "over"}})),
    "html": (200, _HTML, _PAGE.format("Sorry, something went wrong")),
    "not-json": (200, _JSON, '{"id": "reply-1", "choices": [{"message": {"cont'),
    "empty-body": (200, _JSON, ""),
    "no-choices": (200, _JSON, json.dumps({"id": "reply-1", "choices": []})),
    "null-choices": (200, _JSON, json.dumps({"id": "reply-1", "choices": None})),
    "error-200": (200, _JSON, _error("provider returned an error", code="502")),
}
"""Fault that is a page -> status, content type, body."""
FAULTS = (*PAGES, "reset", "half")
"""Whatever asking again mends; `reset` hangs up without a word, `half` in the middle of one."""
HANG = "hang"
"""Says nothing for `hang_s` and then hangs up; for clients whose patience is shorter."""
PERMANENT: dict[str, tuple[int, str, str]] = {
    "overflow": (
        400,
        _JSON,
        _error("This model's maximum context length is 9 tokens.", code="context_length_exceeded"),
    ),
    "filter": (400, _JSON, _error("blocked by our content policy", code="content_filter")),
    "bad": (400, _JSON, _error("this request cannot be served")),
}
"""What asking again does not mend."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Which prompts meet which faults."""

    kinds: Sequence[str] = ()
    """Of `FAULTS` and `HANG`."""
    seed: int = 0
    most: int = 2
    """Faults before a prompt's answer, at most; the least is none."""
    share: float = 1.0
    """Of the prompts that may meet any."""
    permanent: Sequence[str] = ()
    """Of `PERMANENT`; each strikes an eighth of the prompts."""

    def at(self, prompt: str, attempt: int) -> str | None:
        """The fault that meets attempt number `attempt`, from 0, of a prompt."""
        forever, struck, count, *kinds = _draws(f"{self.seed}|{prompt}")
        if forever % 8 < len(self.permanent):
            return self.permanent[forever % 8]
        if not self.kinds or struck / 2**16 >= self.share or attempt >= count % (self.most + 1):
            return None
        return self.kinds[kinds[attempt % len(kinds)] % len(self.kinds)]


NONE = Faults()


def _draws(said: str) -> tuple[int, ...]:
    """Sixteen even numbers of 16 bits that `said` decides."""
    return struct.unpack("16H", hashlib.sha256(said.encode(errors="replace")).digest())


def prompt_hash(prompt: str) -> str:
    """As `harness.spec.Sample.prompt_hash`."""
    return hashlib.sha256(prompt.encode(errors="replace")).hexdigest()[:16]


def answer_to(prompt: str) -> tuple[str | None, str]:
    """Text and finish reason; the ones in the prompt's last line, mostly counted right."""
    draw = _draws(f"answer|{prompt}")[0] % 16
    count = prompt.rstrip("\n").rpartition("\n")[2].count("1")
    if draw < 13:
        return f"Final answer: {count + (draw > 10)}", "stop"
    if draw == 13:
        return "I lost count.", "stop"
    return (None, "length") if draw == 14 else ("I'm sorry, but I can't help with that.", "stop")


@dataclass
class Counters:
    """What happened so far; prompts go by their hash."""

    requests: Counter[str] = field(default_factory=Counter)
    """Prompt -> how often it was asked."""
    answers: Counter[str] = field(default_factory=Counter)
    """Prompt -> how often its answer was sent whole."""
    faults: Counter[str] = field(default_factory=Counter)
    """Fault -> how often it struck."""
    concurrent: int = 0
    most_concurrent: int = 0


@dataclass
class FaultyServer:
    """A server's settings, which may be changed while it runs, and what it counted."""

    faults: Faults = NONE
    latency_s: float = 0.0
    retry_after_s: int = 0
    """What 429 asks for."""
    hang_s: float = 1.0
    refuse_after: int | None = None
    """Answers after which every key is wrong."""
    counters: Counters = field(default_factory=Counters)
    base_url: str = ""

    def application(self) -> web.Application:
        """The routes."""
        application = web.Application(client_max_size=2**26, middlewares=[_bear_with])
        application.router.add_post("/v1/chat/completions", self._chat)
        application.router.add_post("/v1/completions", self._completions)
        application.router.add_get("/v1/models", self._models)
        application.router.add_get("/counters", self._count)
        return application

    async def _models(self, _request: web.Request) -> web.Response:
        card = {"id": MODEL, "object": "model", "max_model_len": WINDOW}
        return web.json_response({"object": "list", "data": [card]})

    async def _count(self, _request: web.Request) -> web.Response:
        counters = self.counters
        return web.json_response(
            {
                "requests": counters.requests.total(),
                "answers": counters.answers.total(),
                "answered_twice": sum(count > 1 for count in counters.answers.values()),
                "faults": counters.faults,
                "most_concurrent": counters.most_concurrent,
            }
        )

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["messages"][-1]["content"]
        text, finish = answer_to(prompt)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return await self._meet(request, prompt, _completion("chat.completion", prompt, choice))

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["prompt"]
        text, finish = answer_to(prompt)
        choice = {"index": 0, "text": text or "", "finish_reason": finish}
        return await self._meet(request, prompt, _completion("text_completion", prompt, choice))

    async def _meet(
        self, request: web.Request, prompt: str, answer: dict[str, Any]
    ) -> web.StreamResponse:
        """The answer, or what comes in its place this time."""
        counters, key = self.counters, prompt_hash(prompt)
        attempt = counters.requests[key]
        counters.requests[key] += 1
        counters.concurrent += 1
        counters.most_concurrent = max(counters.most_concurrent, counters.concurrent)
        try:
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            if self.refuse_after is not None and counters.answers.total() >= self.refuse_after:
                return _page((401, _JSON, _error("incorrect API key", code="invalid_api_key")))
            fault = self.faults.at(prompt, attempt)
            if fault is not None:
                counters.faults[fault] += 1
                return await self._go_wrong(request, fault, answer)
            response = web.json_response(answer)
            await response.prepare(request)
            counters.answers[key] += 1  # before the client has it
            try:
                await response.write_eof()
            except BaseException:
                counters.answers[key] -= 1
                raise
            return response
        finally:
            counters.concurrent -= 1

    async def _go_wrong(
        self, request: web.Request, fault: str, answer: dict[str, Any]
    ) -> web.StreamResponse:
        if fault in ("reset", HANG):
            if fault == HANG:
                await asyncio.sleep(self.hang_s)
            return _hang_up(request)
        if fault == "half":
            content = json.dumps(answer).encode()
            response = web.StreamResponse(headers={"Content-Type": _JSON})
            response.content_length = len(content)
            await response.prepare(request)
            await response.write(content[: len(content) // 2])
            await asyncio.sleep(0)
            return _hang_up(request)
        page = _page(PERMANENT.get(fault) or PAGES[fault])
        if fault == "429":
            page.headers["Retry-After"] = str(self.retry_after_s)
        elif fault == "429-date":
            until_s = time.time() + self.retry_after_s
            page.headers["Retry-After"] = email.utils.formatdate(until_s, usegmt=True)
        return page


@web.middleware
async def _bear_with(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A client that hangs up is no error of the server's."""
    try:
        return await handler(request)
    except ConnectionError:
        return _hang_up(request)


def _completion(kind: str, prompt: str, choice: dict[str, Any]) -> dict[str, Any]:
    asked, said = len(prompt), len(str(choice))
    return {
        "id": f"reply-{prompt_hash(prompt)}",
        "object": kind,
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [choice],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": said,
            "total_tokens": asked + said,
        },
    }


def _page(page: tuple[int, str, str]) -> web.Response:
    status, kind, text = page
    return web.Response(status=status, content_type=kind, text=text)


def _hang_up(request: web.Request) -> web.Response:
    """Ends the connection at once, by a reset; the response is for form's sake."""
    if (transport := request.transport) is not None:
        line: socket.socket = transport.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


class Serves(Protocol):
    """What can be served."""

    base_url: str
    """Where, once it is."""

    def application(self) -> web.Application:
        """What answers."""
        ...


_Server = TypeVar("_Server", bound=Serves)


async def _serve(server: Serves, port: int, ready: Callable[[], None]) -> None:
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=2048).start()
        (address,) = runner.addresses
        server.base_url = f"http://127.0.0.1:{address[1]}/v1"
        ready()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


@contextmanager
def serving(server: _Server, port: int = 0) -> Iterator[_Server]:
    """Serves on loopback, in a thread with a loop of its own, until the block ends; on a free port
    where none is given.
    """
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    doing = loop.create_task(_serve(server, port, ready.set))

    def work() -> None:
        try:
            loop.run_until_complete(doing)
        except asyncio.CancelledError:
            pass
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(doing.cancel)
        thread.join()


def _kinds(given: str) -> tuple[str, ...]:
    if given in ("all", "none"):
        return FAULTS if given == "all" else ()
    kinds = tuple(given.split(","))
    if unknown := set(kinds) - {*FAULTS, HANG}:
        raise argparse.ArgumentTypeError(f"unknown {unknown}; known: {', '.join(FAULTS)}, {HANG}")
    return kinds


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Serves until Ctrl-C; the base URL is the first line on stdout."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=_kinds, default=FAULTS, metavar="all|none|NAME[,NAME]")
    parser.add_argument("--most", type=int, default=2, help="faults before an answer")
    parser.add_argument("--share", type=float, default=1.0, help="of prompts that meet any")
    parser.add_argument("--permanent", nargs="*", default=(), choices=list(PERMANENT))
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--retry-after", type=int, default=1, help="seconds, of a 429")
    parser.add_argument("--hang", type=float, default=60.0, help="seconds of silence")
    given = parser.parse_args()
    faults = Faults(given.faults, given.seed, given.most, given.share, given.permanent)
    server = FaultyServer(faults, given.latency, given.retry_after, given.hang)
    try:
        asyncio.run(_serve(server, given.port, lambda: _say(server.base_url)))
    except KeyboardInterrupt:
        sys.stderr.write(f"{server.counters}\n")


if __name__ == "__main__":
    main()
