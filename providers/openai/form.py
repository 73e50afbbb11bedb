"""OpenAI's form of question and answer: bodies to send, and JSON read as a `Reply`.

One writing and one reading for every server that speaks it, chat or plain completions.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, TypeGuard

import orjson

from providers.base import (
    BadReplyError,
    FinishReason,
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    Usage,
)
from providers.catalog.endpoints import Endpoint
from providers.catalog.model_facts import ModelFacts
from providers.documents import as_document, stops
from providers.http.errors import as_text, error_of
from providers.secrets import redact

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
_OTHER_NAMES = {"max_tokens": "max_completion_tokens"}
"""Parameter -> what newer models call it."""
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


class OpenAIForm:
    """Bodies as one server wants them: by its names for parameters, without those it has not.

    What an entry of `endpoints.yaml` or `models.yaml` says is known from the start, the rest is
    learnt as the server rejects it.
    """

    def __init__(self, settings: ModelSettings, endpoint: Endpoint, facts: ModelFacts) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._facts = facts
        self.dropped: set[str] = set()
        """Parameters that the server turned out not to take."""
        self._renamed: dict[str, str] = {}

    def body(self, request: Request) -> dict[str, Any]:
        """What is sent besides the model."""
        body: dict[str, Any] = {"max_tokens": request.max_tokens}
        if self._facts.reasoning:
            body["max_tokens"] += self._facts.think_tokens
            body["reasoning_effort"] = self._facts.effort
        else:
            body["temperature"] = request.temperature
        body["seed"] = request.seed
        rename = {**self._endpoint.rename, **self._renamed}
        renamed = {
            rename.get(name, name): value
            for name, value in (body_of(request, self._settings) | body).items()
            if value is not None
        }
        for name in (*self._endpoint.drop, *self.dropped):
            renamed.pop(name, None)
        return renamed

    def adapt(self, name: str, said: str) -> bool:
        """Asks without `name` from now on, or by the other name that the server wants for it.

        False for the limit of the reply's tokens, without which there is no limit to the cost.
        """
        if name in self.dropped or name in self._renamed:
            return True  # another request found out meanwhile
        other = next(
            (new for old, new in _OTHER_NAMES.items() if old == name and new in said), None
        )
        model = self._settings.model
        if other is not None:
            self._renamed[name] = other
            self._settings.notify(f"{model} wants {other!r} for {name!r}")
        elif name in _OTHER_NAMES.values() or name in _OTHER_NAMES:
            return False
        else:
            self.dropped.add(name)
            self._settings.notify(f"{model} does not take {name!r}; it is asked without")
        return True


def plain_body(request: Request, settings: ModelSettings) -> dict[str, Any]:
    """What a server without habits of its own is sent, the model included."""
    body = {
        "model": settings.model,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        **body_of(request, settings),
    }
    if request.seed is not None:
        body["seed"] = request.seed
    return body


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
    finish = _text(choices[0].get("finish_reason"))
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
    return error_of(status, as_text(read), {})


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
            pairs = [(one["token"], one["logprob"]) for one in given["content"]]
        else:
            pairs = list(zip(given["tokens"], given["token_logprobs"], strict=True))
        if not all(isinstance(token, str) for token, _ in pairs):
            return None
        return tuple((token, float(value)) for token, value in pairs)
    except (KeyError, OverflowError, TypeError, ValueError):
        return None


def _usage(usage: object) -> Usage | None:
    """What is paid for; some vendors count thinking in the total alone."""
    if not isinstance(usage, dict):
        return None
    asked, said = _whole(usage.get("prompt_tokens")), _whole(usage.get("completion_tokens"))
    if not (is_count(asked) and is_count(said)):
        return None
    total = _whole(usage.get("total_tokens"))
    return Usage(asked, max(said, total - asked) if is_count(total) else said)


def _whole(figure: object) -> object:
    """A whole number as one: what has more than 64 bits is read as a float."""
    return int(figure) if isinstance(figure, float) and figure.is_integer() else figure


def is_count(value: object) -> TypeGuard[int]:
    """Whether it can be a number of tokens or requests."""
    return type(value) is int and value >= 0
