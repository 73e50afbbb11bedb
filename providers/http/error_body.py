"""What the body of an error says, in whatever form: its code, its sentence, and its status."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

_SAID = ("message", "msg", "detail", "description", "reason", "title", "error", "errors")
"""The names of a server's sentence, as they are or at the end of a longer name."""
_CODES = ("code", "type", "status", "status_code", "error_code", "statuscode")
_DEEPEST = 4
_MEANT = {
    **{
        one.name.lower().replace("_", ""): one for one in HTTPStatus if one.value in range(400, 500)
    },
    "invalidrequest": HTTPStatus.BAD_REQUEST,
    "invalidargument": HTTPStatus.BAD_REQUEST,
    "invalidparameter": HTTPStatus.BAD_REQUEST,
    "validation": HTTPStatus.BAD_REQUEST,
    "contextlengthexceeded": HTTPStatus.BAD_REQUEST,
    "authentication": HTTPStatus.UNAUTHORIZED,
    "unauthenticated": HTTPStatus.UNAUTHORIZED,
    "invalidapikey": HTTPStatus.UNAUTHORIZED,
    "permission": HTTPStatus.FORBIDDEN,
    "permissiondenied": HTTPStatus.FORBIDDEN,
    "modelnotfound": HTTPStatus.NOT_FOUND,
    "ratelimit": HTTPStatus.TOO_MANY_REQUESTS,
    "ratelimitexceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "resourceexhausted": HTTPStatus.TOO_MANY_REQUESTS,
    "throttling": HTTPStatus.TOO_MANY_REQUESTS,
    "insufficientquota": HTTPStatus.PAYMENT_REQUIRED,
    "internalserver": HTTPStatus.INTERNAL_SERVER_ERROR,
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
    "server": HTTPStatus.INTERNAL_SERVER_ERROR,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "overloaded": HTTPStatus.SERVICE_UNAVAILABLE,
}
"""A word for an error, without signs and its ending -> the status that servers send with it."""


def said_in(content: Any) -> tuple[str, str]:
    """Code and sentence of an error in JSON; two empty texts where it has no form of an error."""
    codes: list[str] = []
    message = ""
    for one in _tables(content):
        codes += (as_text(one[name]) for name in _CODES if one.get(name))
        message = message or _sentence(one)
    return " ".join(codes), " ".join(message.split())


def status_in(content: Any) -> int:
    """The status that the code in an error means, as a number or a word; 200 where none does."""
    tables = list(_tables(content))
    words = [as_text(one[name]).strip() for one in tables for name in one if name.lower() in _CODES]
    numbers = (int(word) for word in words if re.fullmatch(r"[45]\d\d", word))
    meant = (status for word in words if (status := _MEANT.get(_bare(word))) is not None)
    return next(numbers, next(meant, HTTPStatus.OK))


def as_text(value: object) -> str:
    """A text as it is, any other value as JSON; empty if it is nested too deeply."""
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except (RecursionError, TypeError, ValueError):
        return ""


def _bare(word: str) -> str:
    """`ratelimit` of `rate_limit_error`, `RateLimitError` and `errors.RateLimitException`."""
    name = re.sub("[^a-z]", "", word.lower().rpartition(".")[2])
    return name.removesuffix("exception").removesuffix("error")


def _tables(content: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The mappings of an error, the innermost first: `error`, the first of `errors`, and others."""
    if isinstance(content, list) and content:
        yield from _tables(content[0], depth)
    if isinstance(content, dict) and depth < _DEEPEST:
        for name in ("error", "errors", "base_resp", "message"):
            yield from _tables(content.get(name), depth + 1)
        yield content


def _sentence(table: dict[str, Any]) -> str:
    """The first of `_SAID` in a mapping, also at the end of a longer name; the mistakes in a
    request, which FastAPI lists, as JSON.
    """
    for wanted in _SAID:
        for name, value in table.items():
            text = value
            if isinstance(value, list) and value:
                text = value[0] if isinstance(value[0], str) else as_text(value)
            if name.lower().endswith(wanted) and isinstance(text, str) and text:
                return text
    return ""
