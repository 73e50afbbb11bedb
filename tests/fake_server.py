"""A local server that speaks chat completions, or whatever fault it is told to."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Response:
    """What the server sends back."""

    status: int = 200
    body: object = None
    """Sent as JSON; bytes as they are."""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    """Announce the whole body, send half of it and hang up."""


def chat(text: str | None, finish: str = "stop", **message: object) -> dict[str, Any]:
    """The body of an ordinary reply."""
    return {
        "id": "reply-1",
        "object": "chat.completion",
        "model": "fake-model-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


@dataclass
class Asked:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]


@dataclass
class FakeServer:
    """Where it listens and what it was asked."""

    base_url: str
    asked: list[Asked]


class _Server(ThreadingHTTPServer):
    """Says nothing of clients that hang up."""

    request_queue_size = 1024  # with the usual 5, who connects sixth waits a second and tries again

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def fake_server(
    answer: Callable[[Asked, int], Response], *, reads_json: bool = True
) -> Iterator[FakeServer]:
    """Serves on loopback until the block ends; `answer` gets the request and its number."""
    asked: list[Asked] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else a body waits 40 ms for the client's word of its head

        def do_GET(self) -> None:
            self.respond({})

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            content = self.rfile.read(length)
            self.respond(json.loads(content) if reads_json else {})

        def respond(self, asked_for: dict[str, Any]) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Asked(self.path, headers, asked_for)
            with lock:
                asked.append(request)
                number = len(asked) - 1
            response = answer(request, number)
            body = response.body
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(response.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if response.cut:
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            else:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield FakeServer(f"http://127.0.0.1:{server.server_port}/v1", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
