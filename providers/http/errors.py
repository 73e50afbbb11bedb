"""Maps HTTP error replies to errors of `providers.base`, for all HTTP providers."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    OverloadedError,
    PromptOverflowError,
    ProviderError,
    RateLimitError,
    RefusedError,
    ServerFaultError,
    StopRunError,
    UnknownModelError,
    Usage,
)
from eyechart.providers.http.error_body import as_text, said_in, status_in
from eyechart.providers.http.overflow import is_other_limit, is_too_long
from eyechart.providers.secrets import redact, redact_address

_NO_KEY = re.compile(
    r"api[ _-]?key.{0,30}(?:not valid|invalid|incorrect|expired)"
    r"|(?:invalid|incorrect|expired).{0,20}api[ _-]?key",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content[_ ](?:filter|policy|management)|responsible.?ai|moderation"
    r"|safety[ _](?:filter|polic|system|setting|reason)|(?:for|because of) safety"
    r"|(?:prompt|input|request|content).{0,30}flagged|violat.{0,30}usage[ _]polic"
    r"|usage_polic|content exists risk|data_?inspection_?failed|sensitive ?content|^1301\b"
    r"|sensitive information",
    re.IGNORECASE,
)
_THE_PROMPT = re.compile(
    r"\b(?:input|prompt|content)(?: (?:was|is|has been))? (?:flagged|blocked|violates usage)",
    re.IGNORECASE,
)
"""In a 403: it is about what was sent, unless it is about who sends."""
_WHO_ASKS = re.compile(
    r"account|organi[sz]ation|\bkey\b|region|country|suspended|disabled", re.IGNORECASE
)
_NO_MODEL = re.compile(
    r"model\b(?:(?!; |: |\. ).){0,80}(?:not (?:found|exist)|does ?n.t exist|is unknown)"
    r"|unknown model|model_not_found|no such model",
    re.IGNORECASE,
)
_BROKE = re.compile(
    r"insufficient[_ ](?:quota|balance|funds?|credits?)|exceeded your current quota"
    r"|payment required|balance is too low|(?:no|out of|used all)(?: \w+){0,3} credits?\b|arrear"
    r"|(?:credits?|balance)(?: \w+){0,3} exhausted|余额不足|欠费",
    re.IGNORECASE,
)
"""What is said of an account without money, and of no limit of rates unless there is a wait."""
_NO_MONEY = re.compile(rf"{_BROKE.pattern}|billing|credit balance", re.IGNORECASE)
_EMPTY_ACCOUNT = re.compile(r"insufficient_quota|billing|credit", re.IGNORECASE)
"""In a 429's code. Its prose mentions quota and billing for a rate limit too."""
_PER_TIME = re.compile(r"\bper[ _-](?:min|hour|day|second)|\brate\b|try again|retry", re.IGNORECASE)
_RETRY_IN = re.compile(
    r"retry(?:Delay\"?\s*:\s*\"?| in | after )(\d+(?:\.\d+)?)\s?s", re.IGNORECASE
)
_UNKNOWN_NAME = re.compile(
    r"unsupported|unrecogni[sz]ed|n[o'’]t support|unknown|unexpected|deprecated|not permitted"
    r"|extra.?(?:inputs?|fields?|forbidden)",
    re.IGNORECASE,
)
_OUR_PROMPT = re.compile(r"[\"'](?:messages|prompt)[\"']")
"""In a refusal: it repeats the whole body, or is about the prompt."""
_PARAM = re.compile(r"[\"'](?:param|loc)[\"']\s*:\s*(\"[^\"]{0,99}\"|\[[^\]]{0,999}\])")
_TRANSIENT = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY)
_REDIRECTS = range(300, 400)
_NO_CAPACITY = 498
"""Groq's, of its tier `flex`."""
_TOO_MUCH = (HTTPStatus.SERVICE_UNAVAILABLE, 529, _NO_CAPACITY)
_SHOWN, _BEGINNING = 300, 200
_LOOKED_AT = 64 * 2**10
"""Most characters of a body that are searched, which limits the time of the expressions."""
_LONGEST_S = 1e10
"""The longest wait in seconds; replaces longer ones."""
_MOMENT, _MILLISECONDS = 1e9, 1e12
"""Numbers above the first are points in time, and above the second are in milliseconds."""
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


def error_of(
    status: int, body: str, headers: Mapping[str, str], *, secret: str = ""
) -> ProviderError:
    """The error for a reply of `status`; `secret` is removed from its message."""
    body = body[:_LOOKED_AT]
    code, message = _message(body)
    shown = redact(f"{status}: {message or 'no reason given'}", secret)[:_SHOWN]
    if status in _REDIRECTS:
        target = redact_address(
            next((v for k, v in headers.items() if k.lower() == "location"), "")
        )
        return BadReplyError(
            f"{status}: the server redirects to {target[:_SHOWN]!r}, and redirects are not "
            "followed; give the address where it is"
        )
    if status == HTTPStatus.TOO_MANY_REQUESTS and not _EMPTY_ACCOUNT.search(code):
        wait_s = retry_after_s(headers)
        wait_s = _body_wait_s(body) if wait_s is None else wait_s
        if wait_s is not None or not _BROKE.search(message) or _PER_TIME.search(message):
            return RateLimitError(shown, retry_after_s=wait_s)
    if status in (*_TRANSIENT, _NO_CAPACITY) or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        wait_s = retry_after_s(headers)
        kind = OverloadedError if status in _TOO_MUCH or wait_s is not None else ServerFaultError
        means = PromptOverflowError(shown) if is_too_long(f"{code} {message}") else None
        return kind(shown, retry_after_s=wait_s, means=means)
    return _refusal(status, code, message, shown)


def _refusal(status: int, code: str, message: str, shown: str) -> ProviderError:
    """The error for a reply that another try would not change."""
    code_and_message = f"{code} {message}"
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return StopRunError(
            f"a proxy asks for a user and a password ({shown}); they are a part of its address, "
            "http://USER:PASSWORD@HOST"
        )
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        about_prompt = _THE_PROMPT.search(message) and not _WHO_ASKS.search(message)
        has_code = bool(code)  # else it is some proxy's page
        if _FILTERED.search(code) or (status == HTTPStatus.FORBIDDEN and has_code and about_prompt):
            return RefusedError(shown)
        return AuthError(f"no access ({shown})")
    if status == HTTPStatus.PAYMENT_REQUIRED or _NO_MONEY.search(code_and_message):
        return StopRunError(f"the account has no money left ({shown})")
    if _NO_KEY.search(code_and_message):
        return AuthError(f"no access ({shown})")
    too_large = status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    if is_too_long(code_and_message) or (too_large and not is_other_limit(message)):
        return PromptOverflowError(shown)
    if status == HTTPStatus.NOT_FOUND or _NO_MODEL.search(code_and_message):
        return UnknownModelError(
            f"no such model or address ({shown}); check the model's name and the address"
        )
    if _FILTERED.search(code_and_message) and not _WHO_ASKS.search(message):
        return RefusedError(shown)
    if status >= HTTPStatus.BAD_REQUEST:
        return BadRequestError(shown)
    return BadReplyError(f"an error in place of a reply ({shown})")


def error_within(read: Any, problem: str, usage: Usage | None = None) -> ProviderError:
    """The error that a server sent in place of a reply, with status 200; `problem` says what a body
    lacks that is no error in any known form.
    """
    status, (_, message) = status_in(read), said_in(read)
    if not message and status == HTTPStatus.OK:
        begins = redact(as_text(read)[:_LOOKED_AT])[:_BEGINNING]
        return BadReplyError(f"{problem}; it begins {begins!r}", usage=usage)
    return error_of(status, as_text(read), {})


def _message(body: str) -> tuple[str, str]:
    """Code and message of an error body; the code is empty where the body is no JSON."""
    text = " ".join(body.split())
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "", text
    code, message = said_in(content)
    return f"{code} ", message or text


def refused_parameters(
    body: str, sent: Collection[str], taken: Collection[str] = ()
) -> tuple[list[str], bool]:
    """The parameters of `sent` that the body of a 400 or 422 is about, in its order, and whether it
    says that the server does not take them at all, whatever their value.

    It names one in a field of its own, in quotes, or as a word; one that is also a usual word
    (`seed`, `stop`) only in quotes, or where something is not supported. One that the server has
    `taken` before is refused only by its name in quotes, as by another server behind a router.
    """
    body = body[:_LOOKED_AT]
    code, message = _message(body)
    said = f"{code} {message}"
    is_unknown = bool(_UNKNOWN_NAME.search(said))
    sent = [name for name in sent if is_unknown or name not in taken]
    if is_other_limit(said) or is_too_long(said):
        return [], is_unknown
    if field := _PARAM.search(body):
        names = [name for name in sent if f'"{name}"' in field[1]]
        if names or _OUR_PROMPT.search(field[1]):
            return names, is_unknown
    if _OUR_PROMPT.search(message):
        return [], is_unknown
    places = {}
    for name in sent:
        quoted = rf"['\"`]{re.escape(name)}['\"`]"
        word = rf"(?<![a-z0-9_]){re.escape(name)}(?![a-z0-9_])"
        is_usual = name.isalpha() and name != "temperature" and not is_unknown
        in_quotes = is_usual or name in taken
        if place := re.search(quoted if in_quotes else word, message, re.IGNORECASE):
            places[name] = place.start()
    return sorted(places, key=places.__getitem__), is_unknown


def retry_after_s(headers: Mapping[str, str], *, now_s: float | None = None) -> float | None:
    """Seconds until the next try, from the headers that vendors use; `None` if they have none.

    `Retry-After` in seconds or as a date, `retry-after-ms`, else the latest of the
    `x-ratelimit-reset…` and `anthropic-ratelimit-…-reset` of limits that are used up.
    """
    lower_case = {name.lower(): value.strip() for name, value in headers.items()}
    now = time.time() if now_s is None else now_s
    if (milliseconds := _number(lower_case.get("retry-after-ms", ""))) is not None:
        return _wish_s(milliseconds / 1000)
    if given := lower_case.get("retry-after"):
        if (seconds := _number(given)) is not None:
            return _wish_s(seconds)
        try:
            return _wish_s(email.utils.parsedate_to_datetime(given).timestamp() - now)
        except (ValueError, OverflowError, OSError):  # no date, or none that this system has
            return None
    waits = [
        _until_s(lower_case.get(name.replace("remaining", "reset"), ""), now)
        for name, left in lower_case.items()
        if "ratelimit-" in name and "remaining" in name and left == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def _until_s(text: str, now_s: float) -> float | None:
    """Seconds until a reset: a duration, a moment in ISO form or in (milli)seconds since 1970."""
    if (wait_s := _duration_s(text)) is not None:
        at_s = wait_s / 1000 if wait_s > _MILLISECONDS else wait_s
        return _wait_s(at_s - now_s if at_s > _MOMENT else wait_s)
    try:
        return _wait_s(datetime.fromisoformat(text).timestamp() - now_s)
    except (ValueError, OverflowError, OSError):
        return None


def _wish_s(seconds: float) -> float | None:
    """The wait that a server asks for: 0 is at once; a negative one, or a past date, is none."""
    return None if seconds < 0 else _wait_s(seconds)


def _wait_s(seconds: float) -> float:
    return min(max(0.0, seconds), _LONGEST_S)


def _body_wait_s(body: str) -> float | None:
    """Seconds to wait, from the body; `None` if it has none."""
    match = _RETRY_IN.search(body)
    return None if match is None else _wait_s(float(match[1]))


def _number(text: str) -> float | None:
    """The number in a text, infinite if it is too large; `None` if there is none."""
    try:
        return None if text.strip("+-").isalpha() else float(text)  # `nan`, `infinity`
    except ValueError:
        return None


def _duration_s(text: str) -> float | None:
    """`1s`, `6m0s`, `120ms` or plain seconds."""
    if (plain := _number(text)) is not None:
        return plain
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds + milliseconds / 1000
