"""Remembers keys and passwords, and removes them from texts.

`redact` is for messages (errors, commands, addresses): it removes known secrets and whatever looks
like one. `mask` is for texts of models and servers, which are stored and scored: it removes only
known secrets, and only those that no reply would contain by chance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
A_KEY = "has a key in it, which would be written to files; a key goes into a variable"
"""What is said of a name that `holds_key`."""
_SHORTEST_SECRET = 4
_SHORTEST_VARIABLE = 8
"""Shorter values of variables with such names may be words like `none`."""
_WORD = re.compile(r"(?=.{1,12}$)(?:[a-z]+(?:[-_][a-z]+)*|[A-Z]+|[A-Z][a-z]+)")
"""A key of this form is none, but a word for a server that needs none: `local`, `EMPTY`,
`not-needed`. Hiding it would make messages unreadable."""
_SECRET_VARIABLE = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRET_QUERY = re.compile(r"key|token|sig|secret|passw|credential|auth|^code$", re.IGNORECASE)
_PATH = re.compile(r"~|/|\.{1,2}/|[A-Za-z]:\\")
_USER_INFO = re.compile(r"://([^/<>\s'\"]{1,500})@")
_PAIR = re.compile(r"([?&])([\w.-]{1,64})=[^?&#<>\s'\"]{1,4000}")
_SCHEME = re.compile(r"\b(basic|bearer)(\s+)([\w.~+/-]{4,4000}={0,2})", re.IGNORECASE)
_NO_WORD = re.compile(r"\d|=$|[a-z][A-Z]")
"""Matches in a token after `Basic` or `Bearer`, but not in a word."""
_RUN = re.compile(r"[A-Za-z0-9]+")
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-(?=[\w-]*[0-9A-Z])[\w-]{16,}|(?:csk|nvapi|pplx|xai)-[\w-]{20,}"
    r"|(?:gsk|hf|ghp|github_pat|r8)_\w{20,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]+\.)"
)
"""How keys of vendors begin."""


def keep_secret(value: str) -> None:
    """Makes `redact` and `mask` remove `value` from now on; of `Bearer value`, only the value."""
    value = value.strip()
    scheme, _, rest = value.partition(" ")
    _KNOWN.keep(rest.strip() if scheme.lower() in ("basic", "bearer") and rest else value)


def keep_key(value: str) -> None:
    """Does the same for a key, unless it is an ordinary word."""
    if not _WORD.fullmatch(value.strip()):
        keep_secret(value)


def keep_address(url: str) -> None:
    """Does the same for the password in an address and the keys in its query."""
    _keep_user_info(_user_info(url))
    for name, value in _pairs(url):
        if _SECRET_QUERY.search(name):
            keep_secret(value)
            keep_secret(unquote(value))


def _keep_user_info(given: str) -> None:
    for user_info in {given, unquote(given)} - {""}:
        user, colon, password = user_info.partition(":")
        keep_secret(password if colon else user)


def _user_info(url: str) -> str:
    """User and password, even in an invalid address: all text before the last `@`."""
    before, slashes, rest = url.partition("://")
    return (rest if slashes else before).rpartition("@")[0]


def _pairs(url: str) -> Iterator[tuple[str, str]]:
    """Names and values in query and fragment; a value without a name gets the name `key`."""
    for pair in re.split(r"[?&#]", url)[1:]:
        name, equals, value = pair.partition("=")
        yield (name, value) if equals else ("key", pair)


def redact(text: str, secret: str = "") -> str:
    """A message without keys: without `secret`, the remembered ones, those of the environment, and
    what looks like one in an address or after `Basic` or `Bearer`.
    """
    if secret:
        keep_secret(secret)
    _KNOWN.read_environment()
    text = _KNOWN.in_messages.leave_out(text)
    text = _USER_INFO.sub(f"://{HIDDEN}@", text)
    text = _PAIR.sub(_without_value, text)
    return _SCHEME.sub(_without_token, text)


def has_secret(text: str) -> bool:
    """Whether `redact` would remove something from `text`."""
    return redact(text) != text


def holds_key(name: str) -> bool:
    """Whether a name, which is written to files and shown, has a key in it: one of the environment,
    or what begins as keys of vendors do.
    """
    watch_environment()
    return mask(name) != name or _KEY.search(name) is not None


def _without_value(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}={HIDDEN}" if _SECRET_QUERY.search(match[2]) else match[0]


def _without_token(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{HIDDEN}" if _NO_WORD.search(match[3]) else match[0]


def redact_address(url: str) -> str:
    """An address, valid or not, without user, password, query and fragment."""
    before, slashes, rest = url.partition("://")
    scheme, rest = (f"{before}://", rest) if slashes else ("", before)
    _, at, rest = rest.rpartition("@")
    rest, *mark = re.split(r"([?#])", rest, maxsplit=1)[:2]
    return redact(f"{scheme}{HIDDEN if at else ''}{at}{rest}{mark[0] + HIDDEN if mark else ''}")


def mask(text: str) -> str:
    """A text of a model or server without the known secrets that are not there by chance.

    Secrets of the environment are those at the last call of `redact` or `watch_environment`.
    """
    return _KNOWN.in_replies.leave_out(text)


def masked(value: Any) -> Any:
    """A JSON value with every text in it masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(name): masked(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(masked, value))
    return value


def masked_fields(record: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    """`record` with the fields `names` masked, and all others as they are."""
    changed: dict[str, Any] = {}
    for name in names:
        if value := record.get(name):
            if name == "top_logprobs":
                new = _masked_tops(value, record.get("logprobs") or ())
            else:
                new = _masked_tokens(value) if name == "logprobs" else masked(value)
            if new != value:
                changed[name] = new
    return {**record, **changed} if changed else record


def may_hold_secret(line: bytes) -> bool:
    """Whether `mask` may remove something from a text in `line`, which is JSON; a fast check. It
    does not see a secret that stands there in several pieces.
    """
    return _KNOWN.in_replies.may_be_in(line)


def _masked_tokens(logprobs: Sequence[tuple[str, float]]) -> Sequence[tuple[str, float]]:
    """The pairs with each token masked that is a part of a secret."""
    clean = _KNOWN.in_replies.leave_out_of_parts([token for token, _ in logprobs])
    return tuple((token, value) for token, (_, value) in zip(clean, logprobs, strict=True))


def _masked_tops(tops: Sequence[Any], logprobs: Sequence[tuple[str, float]]) -> Sequence[Any]:
    """The most probable tokens at each place. Where the token of the reply there, or one of the
    same rank, is a part of a secret, all are masked.
    """
    ranks = max(map(len, tops), default=0)
    rows = [[token for token, _ in logprobs]]
    rows += [[top[rank][0] if rank < len(top) else "" for top in tops] for rank in range(ranks)]
    hidden: set[int] = set()
    for row in rows:
        clean = _KNOWN.in_replies.leave_out_of_parts(row)
        hidden |= {
            place for place, pair in enumerate(zip(row, clean, strict=True)) if len({*pair}) > 1
        }
    return tuple(
        tuple((HIDDEN, value) for _, value in top) if place in hidden else top
        for place, top in enumerate(tops)
    )


def watch_environment() -> None:
    """Makes `mask` remove the keys that are in the environment now."""
    _KNOWN.read_environment()


def scrub(log: Path, begins: int = 0) -> None:
    """Masks a log in place, from byte `begins` on; its program had the keys of our environment."""
    watch_environment()
    with log.open("rb+") as file:
        file.seek(begins)
        lines = [_masked_line(line) for line in file]
        if any(changed for _, changed in lines):
            file.seek(begins)
            file.truncate()
            file.writelines(line for line, _ in lines)


def _masked_line(line: bytes) -> tuple[bytes, bool]:
    text = line.decode(errors="surrogateescape")
    clean = mask(text)
    return (line, False) if clean == text else (clean.encode(errors="surrogateescape"), True)


@dataclass(frozen=True)
class _Finder:
    """Finds `secrets` in a text."""

    secrets: frozenset[str]

    @cached_property
    def _needles(self) -> tuple[str, ...]:
        """A part of each secret that JSON does not escape, for a fast check."""
        return tuple({max(_RUN.findall(secret), key=len, default="") for secret in self.secrets})

    @cached_property
    def _needles_in_bytes(self) -> tuple[bytes, ...]:
        return tuple(needle.encode() for needle in self._needles)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_source, sorted(self.secrets, key=len, reverse=True))))

    def may_be_in(self, line: bytes) -> bool:
        return any(map(line.__contains__, self._needles_in_bytes))

    def leave_out(self, text: str) -> str:
        for needle in self._needles:
            if needle in text:
                return self._pattern.sub(HIDDEN, text)
        return text

    def leave_out_of_parts(self, parts: list[str]) -> list[str]:
        """Hides each part of a text that overlaps a secret, as a whole."""
        whole = "".join(parts)
        if self.leave_out(whole) == whole:
            return parts
        spans = [match.span() for match in self._pattern.finditer(whole)]
        clean = []
        begin = 0
        for part in parts:
            end = begin + len(part)
            hit = any(begin < last and first < end for first, last in spans)
            clean.append(HIDDEN if hit else part)
            begin = end
        return clean


def _source(secret: str) -> str:
    """A regular expression for a secret; a short word is not matched inside another word."""
    pattern = re.escape(secret)
    is_short = len(secret) < _SHORTEST_VARIABLE and secret.isalnum()
    return rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])" if is_short else pattern


def _stands_out(secret: str) -> bool:
    """Whether a reply would hardly contain it by chance, unlike a word or a row of digits."""
    letters, digits = re.search(r"[^\W\d_]", secret), re.search(r"\d", secret)
    mixed = letters and (digits or re.search(r"[\W_]", secret))
    shortest = 5 if mixed else 12 if letters else 16
    return len(secret) >= shortest and len(set(secret)) >= _SHORTEST_SECRET


class _KnownSecrets:
    """The secrets of this process."""

    def __init__(self) -> None:
        self._kept: frozenset[str] = frozenset()  # replaced and never changed: threads read it
        self._environ: dict[str, str] = {}
        self._variables: frozenset[str] = frozenset()
        self.in_messages = _Finder(frozenset())
        self.in_replies = _Finder(frozenset())

    def keep(self, secret: str) -> None:
        if len(secret) >= _SHORTEST_SECRET and secret not in self._kept:
            self._kept |= {secret}
            self._find()

    def read_environment(self) -> None:
        environ = dict(os.environ)
        if environ == self._environ:
            return
        self._environ = environ
        named = {value.strip() for name, value in environ.items() if _SECRET_VARIABLE.search(name)}
        self._variables = frozenset(
            value
            for value in named
            if len(value) >= _SHORTEST_VARIABLE and not _WORD.fullmatch(value)
        )
        for value in environ.values():
            if match := _USER_INFO.search(value):  # of a proxy
                _keep_user_info(match[1])
        self._find()

    def _find(self) -> None:
        others = {value for value in self._variables if not _PATH.match(value)}
        self.in_messages = _Finder(self._kept | self._variables)
        self.in_replies = _Finder(frozenset(filter(_stands_out, self._kept | others)))


_KNOWN = _KnownSecrets()
