"""Reads the body of a reply of OpenAI's Responses API as one of its chat API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

_UNFINISHED = "length"
_REASONS = {"max_output_tokens": _UNFINISHED}
"""Why a response is incomplete -> the word of the chat API."""
_USAGE = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "total_tokens": "total_tokens",
    "prompt_tokens_details": "input_tokens_details",
    "completion_tokens_details": "output_tokens_details",
}
"""Field of the chat API -> that of the Responses API."""


def is_response(body: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a body is one of the Responses API."""
    return isinstance(body, dict) and (
        body.get("object") == "response"
        or ("choices" not in body and isinstance(body.get("output"), list))
    )


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same reply in the form of the chat API; of a failed response its error."""
    status, error = body.get("status"), body.get("error")
    if error or status not in (None, "completed", "incomplete"):
        return {"error": error or {"message": f"the response has the status {status!r}"}}
    items = [item for item in body.get("output") or () if isinstance(item, dict)]
    said = [item for item in items if item.get("type", "message") == "message"]
    thought = [item for item in items if item.get("type") == "reasoning"]
    message = {
        "content": "\n".join(filter(None, (_texts(item, "content", "text") for item in said))),
        "refusal": "".join(_texts(item, "content", "refusal") for item in said) or None,
        "reasoning": "\n".join(
            filter(
                None,
                (_texts(item, name, "text") for item in thought for name in ("summary", "content")),
            )
        ),
    }
    usage = body.get("usage")
    return {
        "model": body.get("model"),
        "service_tier": body.get("service_tier"),
        "choices": [{"message": message, "finish_reason": _finish(status, body)}],
        "usage": {name: usage.get(theirs) for name, theirs in _USAGE.items()}
        if isinstance(usage, dict)
        else None,
    }


def _finish(status: str | None, body: Mapping[str, Any]) -> str | None:
    if status != "incomplete":
        return status and "stop"
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return _REASONS.get(reason, reason) if isinstance(reason, str) else _UNFINISHED


def _texts(item: Mapping[str, Any], name: str, kind: str) -> str:
    """The texts of one kind in the parts of an item, joined."""
    parts = item.get(name)
    if isinstance(parts, str):
        return parts if kind == "text" else ""
    texts = (part.get(kind) for part in parts or () if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))
