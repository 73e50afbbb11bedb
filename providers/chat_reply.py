"""A chat completion's JSON as a `Reply`; one reading for every OpenAI-compatible server."""

from __future__ import annotations

from typing import Any

from providers.base import BadReplyError, FinishReason, Reply, Usage

_FINISH: dict[str | None, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "SAFETY": "content_filter",
}


def reply_of(read: Any) -> Reply:
    """The first choice of `read`.

    Raises:
        BadReplyError: it is no chat completion, or has no choice.
    """
    if not isinstance(read, dict):
        raise BadReplyError("the reply is no JSON object")
    choices = read.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise BadReplyError("the reply has no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise BadReplyError("the reply's choice has no message")
    usage = read.get("usage")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Reply(
        text=_text(message.get("content")),
        finish_reason=_FINISH.get(choices[0].get("finish_reason"), "other"),
        usage=_usage(usage) if isinstance(usage, dict) else None,
        model=read.get("model") if isinstance(read.get("model"), str) else None,
        refusal=message.get("refusal") if isinstance(message.get("refusal"), str) else None,
        reasoning=reasoning if isinstance(reasoning, str) else None,
    )


def _text(content: object) -> str:
    """Content as text; some vendors send a list of parts, of which the text ones count."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _usage(usage: dict[str, Any]) -> Usage | None:
    asked, said = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(asked, said) if isinstance(asked, int) and isinstance(said, int) else None
