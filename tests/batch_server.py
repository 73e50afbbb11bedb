"""A local stand-in for OpenAI's Batch API: files, batches, their states, and what goes wrong.

It also answers single requests, with the same replies, and counts how often each prompt was paid
for. What happens to a batch is its `Plot`; batches take them in turn, and the last one stays.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

WAY = ("validating", "in_progress", "finalizing")
"""States before the last one."""


@dataclass(frozen=True)
class Plot:
    """What becomes of one batch."""

    end: str = "completed"
    way: Sequence[str] = WAY
    """A state a look."""
    answered: int | None = None
    """How many requests are answered before the end; the rest is left out. All, if `None`."""
    rejected: Sequence[int] = ()
    """Places of requests that the model rejects."""
    problems: Sequence[dict[str, Any]] = ()
    """Of a failed one."""
    output_named: bool = True
    output_kept: bool = True
    model: str = "stand-in-1"
    garble: Callable[[list[bytes]], list[bytes]] = list
    """What the vendor makes of the lines of the output."""


@dataclass
class Batch:
    """One batch: what the vendor says of it, and what he knows."""

    said: dict[str, Any]
    plot: Plot
    looks: int = 0


def right(body: dict[str, Any]) -> str:
    """The right reply to the tasks of the `lab`."""
    prompt = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
    row = prompt.removesuffix("\nAnswer:").splitlines()[-1]
    return f"Final answer: {row.count('1')}"


@dataclass
class BatchServer:
    """One account at one vendor."""

    plots: list[Plot] = field(default_factory=lambda: [Plot()])
    says: Callable[[dict[str, Any]], str] = right
    faults: dict[str, list[int]] = field(default_factory=dict)
    """`METHOD /path` -> statuses to answer with, each once, before anything is done; 0 hangs up."""
    lost: dict[str, int] = field(default_factory=dict)
    """`METHOD /path` -> how many replies are lost after all was done."""
    base_url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    paid: Counter[str] = field(default_factory=Counter)
    """How often each request of a batch was answered, by its `custom_id`."""
    single: int = 0
    """How many requests were answered one by one."""
    asked: list[str] = field(default_factory=list)
    """`METHOD /path` of every request."""
    created: int = 0
    page: int = 100
    """Most batches in a page of the list."""
    lists_late: int = 0
    """How often the list of batches is asked for before the newest batch is on it."""
    api: bool = True
    """Whether there is a Batch API."""
    usage: dict[str, int] | None = field(
        default_factory=lambda: {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    )
    """Of every reply."""
    lines_besides: list[bytes] = field(default_factory=list)
    """Lines of every output that nobody asked for."""

    def application(self) -> web.Application:
        """What answers."""
        made = web.Application(middlewares=[self._around], client_max_size=2**28)
        made.router.add_post("/v1/chat/completions", self._complete)
        made.router.add_post("/v1/completions", self._complete)
        if self.api:
            made.router.add_post("/v1/files", self._upload)
            made.router.add_get("/v1/files/{id}/content", self._content)
            made.router.add_post("/v1/batches", self._create)
            made.router.add_get("/v1/batches", self._list)
            made.router.add_get("/v1/batches/{id}", self._look)
        return made

    @web.middleware
    async def _around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        kind = f"{request.method} {'/'.join(request.path.split('/')[:3])}"
        self.asked.append(f"{request.method} {request.path}")
        if self.faults.get(kind):
            status = self.faults[kind].pop(0)
            if status == 0:
                return self._hang_up(request)
            return web.json_response(_error(f"fault {status}"), status=status)
        response = await handler(request)
        if self.lost.get(kind):
            self.lost[kind] -= 1
            return self._hang_up(request)
        return response

    @staticmethod
    def _hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def _reply(self, body: dict[str, Any], model: str) -> dict[str, Any]:
        text = self.says(body)
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        if "messages" in body:
            choice["message"] = {"role": "assistant", "content": text, "refusal": None}
        else:
            choice["text"] = text
        return {"id": "reply", "model": model, "choices": [choice], "usage": self.usage}

    async def _complete(self, request: web.Request) -> web.Response:
        self.single += 1
        return web.json_response(self._reply(await request.json(), self.plots[0].model))

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        upload = form["file"]
        assert isinstance(upload, web.FileField)
        identifier = f"file-{len(self.files) + 1}"
        self.files[identifier] = upload.file.read()
        return web.json_response({"id": identifier, "object": "file", "purpose": "batch"})

    async def _content(self, request: web.Request) -> web.Response:
        content = self.files.get(request.match_info["id"])
        if content is None:
            return web.json_response(_error("No such File object"), status=404)
        return web.Response(body=content, content_type="application/octet-stream")

    async def _create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked["completion_window"] == "24h"
        if asked["input_file_id"] not in self.files:
            return web.json_response(_error("no such file"), status=400)
        plot = self.plots[min(self.created, len(self.plots) - 1)]
        self.created += 1
        said = {
            "id": f"batch_{self.created}",
            "object": "batch",
            "endpoint": asked["endpoint"],
            "errors": None,
            "input_file_id": asked["input_file_id"],
            "completion_window": "24h",
            "status": "validating",
            "output_file_id": None,
            "error_file_id": None,
            "created_at": int(time.time()),
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
            "metadata": asked.get("metadata"),
        }
        self.batches[str(said["id"])] = Batch(said, plot)
        return web.json_response(said)

    async def _list(self, request: web.Request) -> web.Response:
        newest = [batch.said for batch in reversed(self.batches.values())]
        if self.lists_late and newest:
            self.lists_late -= 1
            del newest[0]
        after = request.query.get("after")
        if after is not None:
            newest = newest[[one["id"] for one in newest].index(after) + 1 :]
        size = min(self.page, int(request.query.get("limit", "20")))
        page = {"object": "list", "data": newest[:size], "has_more": len(newest) > size}
        return web.json_response(page)

    async def _look(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return web.json_response(_error("No batch found"), status=404)
        steps = [*batch.plot.way, batch.plot.end]
        state = steps[min(batch.looks, len(steps) - 1)]
        batch.looks += 1
        if state == batch.plot.end and state != batch.said["status"]:
            self._end(batch)
        batch.said["status"] = state
        return web.json_response(batch.said)

    def _end(self, batch: Batch) -> None:
        """Writes the files of a batch that has just ended."""
        plot = batch.plot
        if plot.end == "failed" and plot.answered is None:
            batch.said["errors"] = {"object": "list", "data": list(plot.problems)}
            return
        lines = [json.loads(line) for line in self.files[batch.said["input_file_id"]].splitlines()]
        assert {line["url"] for line in lines} == {batch.said["endpoint"]}
        assert len({line["custom_id"] for line in lines}) == len(lines)
        output, errors = [*self.lines_besides], []
        for place, line in enumerate(lines):
            if plot.answered is not None and place >= plot.answered:
                message = "This request could not be executed before the window expired."
                left_out = {"code": f"batch_{plot.end}", "message": message}
                errors.append(_line(place, line, response=None, error=left_out))
            elif place in plot.rejected:
                response = {"status_code": 400, "request_id": "r", "body": _error("no such thing")}
                errors.append(_line(place, line, response=response, error=None))
            else:
                self.paid[line["custom_id"]] += 1
                body = self._reply(line["body"], plot.model)
                response = {"status_code": 200, "request_id": "r", "body": body}
                output.append(_line(place, line, response=response, error=None))
        counts = {"total": len(lines), "completed": len(output), "failed": len(errors)}
        output = plot.garble(output)
        batch.said["request_counts"] = counts
        for name, content in (("output_file_id", output), ("error_file_id", errors)):
            if content and (plot.output_named or name == "error_file_id"):
                identifier = f"{name.partition('_')[0]}-of-{batch.said['id']}"
                batch.said[name] = identifier
                if plot.output_kept:
                    # in an order of their own, as the real ones are
                    self.files[identifier] = b"".join(reversed(content))


def _line(place: int, asked: dict[str, Any], **more: object) -> bytes:
    said = {"id": f"batch_req_{place}", "custom_id": asked["custom_id"], **more}
    return json.dumps(said).encode() + b"\n"


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}
