"""Keys and passwords that were read, and texts without them.

`redact` is for messages (errors, commands, addresses): what is known to be secret goes, and what
looks like it. `mask` is for what models and servers say, which is kept and judged: only what is
known goes, and only where it is too long and too mixed to stand there by chance.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from providers.quoting import any_quoting, within_base64

HIDDEN = "***"
_SHORTEST_SECRET = 4
_SHORTEST_VARIABLE = 8
"""Variables of such names also hold words like `none`."""
_SHORTEST_CORE = 8
"""Of base64 that holds a secret."""
_SECRET_VARIABLE = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRET_QUERY = re.compile(r"key|token|sig|secret|passw|credential|auth|^code$", re.IGNORECASE)
_PATH = re.compile(r"~|/|\.{1,2}/|[A-Za-z]:\\")
_QUOTE = r"['\"](?![\s,:;)\]}]|$)"
"""A quote that does not end what it stands in."""
_USER_INFO = re.compile(rf"://((?:[^/<>\s'\"]|{_QUOTE}){{1,500}})@")
_PAIR = re.compile(rf"([?&#]|&amp;)([\w.-]{{1,64}})=(?:[^?&#<>\s'\"]|{_QUOTE}){{1,4000}}")
_SCHEME = re.compile(r"\b(basic|bearer)(\s+|%20|\+)([\w.~+/-]{4,4000}={0,2})", re.IGNORECASE)
_NO_WORD = re.compile(r"\d|=$|[a-z][A-Z]")
"""What a token after `Basic` or `Bearer` has and a word has not."""
_RUN = re.compile(r"[A-Za-z0-9]+")


def keep_secret(value: str) -> None:
    """Makes `redact` and `mask` leave out `value` from now on; of `Bearer value`, the value."""
    value = value.strip()
    scheme, _, rest = value.partition(" ")
    if rest and scheme.lower() in ("basic", "bearer"):
        keep_secret(rest)
        if scheme.lower() == "basic":
            _keep_user_info(_from_base64(rest))
    else:
        _KNOWN.keep(value)


def keep_address(url: str) -> None:
    """The same for the password in an address, and for the keys in its query."""
    _keep_user_info(_user_info(url))
    for name, value in _pairs(url):
        if _SECRET_QUERY.search(name):
            keep_secret(value)
            keep_secret(unquote(value))


def _keep_user_info(given: str) -> None:
    for one in {given, unquote(given)} - {""}:
        user, colon, password = one.partition(":")
        keep_secret(password if colon else user)
        _KNOWN.keep(base64.b64encode(one.encode(errors="replace")).decode())


def _user_info(url: str) -> str:
    """User and password, also of an address that is none: whatever stands before the last `@`."""
    before, slashes, rest = url.partition("://")
    return (rest if slashes else before).rpartition("@")[0]


def _pairs(url: str) -> Iterator[tuple[str, str]]:
    """Names and values of a query, and of a fragment, which may be a value alone."""
    for said in re.split(r"[?&#]", url)[1:]:
        name, equals, value = said.partition("=")
        yield (name, value) if equals else ("key", said)


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode(f"{text}==").decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""


def redact(text: str, secret: str = "") -> str:
    """A message without keys: `secret`, those that were read, those of the environment, and what
    looks like one in an address or after `Basic` or `Bearer`.
    """
    if secret:
        keep_secret(secret)
    _KNOWN.read_environment()
    text = _KNOWN.in_messages.leave_out(text)
    text = _USER_INFO.sub(f"://{HIDDEN}@", text)
    text = _PAIR.sub(_without_value, text)
    return _SCHEME.sub(_without_token, text)


def _without_value(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}={HIDDEN}" if _SECRET_QUERY.search(match[2]) else match[0]


def _without_token(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{HIDDEN}" if _NO_WORD.search(match[3]) else match[0]


def redact_address(url: str) -> str:
    """What may be shown of an address, be it one or not: no user, password, query or fragment."""
    before, slashes, rest = url.partition("://")
    scheme, rest = (f"{before}://", rest) if slashes else ("", before)
    _, at, rest = rest.rpartition("@")
    rest, *mark = re.split(r"([?#])", rest, maxsplit=1)[:2]
    return redact(f"{scheme}{HIDDEN if at else ''}{at}{rest}{mark[0] + HIDDEN if mark else ''}")


def mask(text: str) -> str:
    """What a model or server said, as it is but for secrets that are known and stand out.

    Of the environment those are known that it held when `redact` or `watch_environment` was last
    called.
    """
    return _KNOWN.in_replies.leave_out(text)


def masked(value: Any) -> Any:
    """A JSON value with every text in it masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(name): masked(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(masked, value))
    return value


def masked_fields(record: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    """`record` with its fields of these names masked; the others are never touched."""
    changed: dict[str, Any] = {}
    for name in names:
        if value := record.get(name):
            new = _masked_tokens(value) if name == "logprobs" else masked(value)
            if new != value:
                changed[name] = new
    return {**record, **changed} if changed else record


def _masked_tokens(logprobs: Sequence[tuple[str, float]]) -> Sequence[tuple[str, float]]:
    """Tokens that are parts of a secret go, together as they make it up."""
    clean = _KNOWN.in_replies.leave_out_of_parts([token for token, _ in logprobs])
    return tuple((token, value) for token, (_, value) in zip(clean, logprobs, strict=True))


def watch_environment() -> None:
    """Makes known to `mask` what the environment holds of keys now."""
    _KNOWN.read_environment()


def scrub(log: Path, begins: int = 0) -> None:
    """Masks in place what a program that had our environment wrote, from byte `begins` on."""
    watch_environment()
    with log.open("rb+") as file:
        file.seek(begins)
        lines = [_masked_line(line) for line in file]
        if any(changed for _, changed in lines):
            file.seek(begins)
            file.truncate()
            file.writelines(line for line, _ in lines)


def _masked_line(line: bytes) -> tuple[bytes, bool]:
    said = line.decode(errors="surrogateescape")
    clean = mask(said)
    return (line, False) if clean == said else (clean.encode(errors="surrogateescape"), True)


@dataclass(frozen=True)
class _Finder:
    """Finds some secrets, in whatever quoting."""

    secrets: frozenset[str]

    @cached_property
    def _needles(self) -> tuple[str, ...]:
        """A part of each that no quoting changes: mostly none is there, which is quickly seen."""
        return tuple({max(_RUN.findall(one), key=len, default="") for one in self.secrets})

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_source, sorted(self.secrets, key=len, reverse=True))))

    def leave_out(self, text: str) -> str:
        for needle in self._needles:
            if needle in text:
                return self._pattern.sub(HIDDEN, text)
        return text

    def leave_out_of_parts(self, parts: list[str]) -> list[str]:
        """Parts of one text; what is part of a secret in any way goes as a whole."""
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
    """A regular expression for a secret; a short word is none as a part of another word."""
    found = any_quoting(secret.rstrip("="))
    if len(secret) < _SHORTEST_VARIABLE and secret.isalnum():
        return rf"(?<![A-Za-z0-9]){found}(?![A-Za-z0-9])"
    return rf"{found}(?:=|%3D){{0,2}}" if secret.endswith("=") else found


def _stands_out(secret: str) -> bool:
    """Whether no reply has it by chance: a row of digits or a word would be in an answer."""
    letters, digits = re.search(r"[^\W\d_]", secret), re.search(r"\d", secret)
    mixed = letters and (digits or re.search(r"[\W_]", secret))
    shortest = 5 if mixed else 12 if letters else 16
    return len(secret) >= shortest and len(set(secret)) >= _SHORTEST_SECRET


class _Known:
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
        self._variables = frozenset(one for one in named if len(one) >= _SHORTEST_VARIABLE)
        for value in environ.values():
            if match := _USER_INFO.search(value):  # of a proxy
                _keep_user_info(match[1])
        self._find()

    def _find(self) -> None:
        cores = {core for one in self._kept for core in within_base64(one)}
        sent = self._kept | {core for core in cores if len(core) >= _SHORTEST_CORE}
        others = {one for one in self._variables if not _PATH.match(one)}
        self.in_messages = _Finder(frozenset(sent | self._variables))
        self.in_replies = _Finder(frozenset(filter(_stands_out, sent | others)))


_KNOWN = _Known()
