"""Answers a file of batch requests with the embedded model, as an engine without a server does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from eyechart.providers.base import ModelSettings, Request
from eyechart.providers.tiny.provider import open_provider


def answer(requests: Path, replies: Path) -> None:
    """Writes the file of replies to a file of chat requests."""
    lines = [json.loads(line) for line in requests.read_text(encoding="utf-8").splitlines()]
    bodies = asyncio.run(_answers([line["body"] for line in lines]))
    answered = [
        {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}}
        for line, body in zip(lines, bodies, strict=True)
    ]
    replies.write_text("".join(f"{json.dumps(line)}\n" for line in answered), encoding="utf-8")


async def _answers(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    provider = open_provider(ModelSettings("tiny"))
    try:
        return await asyncio.gather(*(_answer(provider, body) for body in bodies))
    finally:
        await provider.aclose()


async def _answer(provider: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The body of the reply to one request, in OpenAI's form."""
    (message,) = body["messages"]
    reply = await provider.complete(Request(message["content"], body["max_tokens"]))
    choice = {
        "message": {"role": "assistant", "content": reply.text},
        "finish_reason": reply.finish_reason,
    }
    usage = {
        "prompt_tokens": reply.usage.prompt_tokens,
        "completion_tokens": reply.usage.output_tokens,
    }
    return {"model": body["model"], "choices": [choice], "usage": usage}
