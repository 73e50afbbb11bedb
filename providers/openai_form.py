"""OpenAI's form of question and answer: bodies to send, and JSON read as a `Reply`.

One writing and one reading for every server that speaks it, chat or plain completions.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import orjson

from providers.base import (
    BadReplyError,
    FinishReason,
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    Usage,
    redact,
)
from providers.documents import as_document, stops
from providers.http_errors import error_of

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "SAFETY": "content_filter",
}


_READ, _SHOWN = 4096, 80
"""Bytes of what is no JSON that are looked at for keys, and characters that are shown."""


def body_of(request: Request, settings: ModelSettings) -> dict[str, Any]:
    """What is asked, without the sampling parameters."""
    if settings.api == "completions":
        body: dict[str, Any] = {
            "prompt": as_document(request.prompt),
            "stop": stops(request.prompt),
        }
        return body | ({"logprobs": 1} if settings.logprobs else {})
    system = [{"role": "system", "content": settings.system}] if settings.system else []
    body = {"messages": [*system, {"role": "user", "content": request.prompt}]}
    return body | ({"logprobs": True} if settings.logprobs else {})


def path_of(settings: ModelSettings) -> str:
    """Where, behind the base URL, such a body goes."""
    return "/completions" if settings.api == "completions" else "/chat/completions"


def read_json(content: bytes) -> Any:
    """What a reply's body says; half a character in it does not spoil the rest.

    Raises:
        BadReplyError: it is not JSON.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        begins = redact(" ".join(content[:_READ].decode(errors="replace").split()))[:_SHOWN]
        raise BadReplyError(f"the reply is not JSON; it begins {begins!r}") from error


def reply_of(read: Any) -> Reply:
    """The first choice of `read`.

    Raises:
        BadReplyError: it is no completion, or has no choice.
        ProviderError: it says an error of its own.
    """
    if not isinstance(read, dict):
        raise BadReplyError("the reply is no JSON object")
    if read.get("error"):  # some routers say 200 and mean the error of whom they asked
        raise _error_within(read)
    choices, usage = read.get("choices"), _usage(read.get("usage"))
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise BadReplyError("the reply has no choices", usage=usage)
    finish = str(choices[0].get("finish_reason"))
    if choices[0].get("error") or finish == "error":  # and some say so in the choice
        raise _error_within(choices[0])
    message = choices[0].get("message")
    if isinstance(choices[0].get("text"), str):  # a plain completion
        message = {"content": choices[0]["text"]}
    elif _FINISH.get(finish) == "length" and message is None:  # all of it went into thinking
        message = {}
    if not isinstance(message, dict):
        raise BadReplyError("the reply's choice has no message", usage=usage)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Reply(
        text=_text(message.get("content")),
        finish_reason=_FINISH.get(finish, "other"),
        usage=usage,
        model=read.get("model") if isinstance(read.get("model"), str) else None,
        refusal=message.get("refusal") if isinstance(message.get("refusal"), str) else None,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        logprobs=_logprobs(choices[0].get("logprobs")),
    )


def _error_within(read: dict[str, Any]) -> ProviderError:
    error = read.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and code >= HTTPStatus.BAD_REQUEST else HTTPStatus.OK
    return error_of(status, json.dumps(read), {})


def _text(content: object) -> str:
    """Content as text; some vendors send a list of parts, of which the text ones count."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _logprobs(given: object) -> tuple[tuple[str, float], ...] | None:
    """Of chat: a list of objects; of completions: two lists side by side."""
    if not isinstance(given, dict):
        return None
    try:
        if isinstance(given.get("content"), list):
            return tuple((str(one["token"]), float(one["logprob"])) for one in given["content"])
        pairs = zip(given["tokens"], given["token_logprobs"], strict=True)
        return tuple((str(token), float(value)) for token, value in pairs)
    except (KeyError, TypeError, ValueError):
        return None


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    asked, said = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if isinstance(asked, int) and isinstance(said, int) and min(asked, said) >= 0:
        return Usage(asked, said)
    return None
