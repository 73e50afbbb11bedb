"""Checks of values that settings can have.

A check returns the value in the type of its setting. It raises `ValueError` with what is wrong with
the value, in words that follow the name of the setting: `must be a number above 0, not -1`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeAlias

from eyechart.providers.secrets import A_KEY, has_secret, holds_key, keep_key, keep_secret

MAX_LENGTH = 1_000_000
"""Most symbols in a row."""
MAX_SAMPLES = 1_000_000
"""Most samples of one cell."""
MAX_DRAWS = 1_000
"""Most draws of one sample."""
FINEST, COARSEST = 0.4, 1.0
"""Octaves: a finer precision is out of reach around some crossings, and a run with a coarser one
ends after so few samples that its intervals hold too seldom (`docs/statistics.md`)."""
_THINKING = "on, off, a number of tokens, or a word such as low"
_PARAM = "top_p=0.95"
_EXACT = 2**53
"""From here on a float cannot hold every integer."""
_LARGEST = sys.float_info.max
_SHOWN = 60
"""Characters of a value in a message, at most."""

Check: TypeAlias = Callable[[Any], Any]


def shown(given: object) -> str:
    """A value as messages show it, shortened."""
    try:
        text = repr(given)
    except ValueError:  # an integer of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The numbers that a setting can have; a check."""

    least: float
    most: float | None = None
    is_whole: bool = True
    is_above: bool = False
    """Whether `least` itself is not allowed."""
    unit: str = ""
    """What stands after the numbers in messages."""

    @property
    def demand(self) -> str:
        """What a number must be: `a whole number from 1 to 10,000`."""
        kind = "a whole number" if self.is_whole else "a number"
        if self.is_above:
            return f"{kind} above {_figure(self.least)}"
        most = "on" if self.most is None else f"to {_figure(self.most)}"
        return f"{kind} from {_figure(self.least)} {most}{self.unit}"

    def allows(self, given: object) -> bool:
        kind = Integral if self.is_whole else Real
        if not isinstance(given, kind) or isinstance(given, bool):
            return False
        number: Any = given
        is_enough = number > self.least if self.is_above else number >= self.least
        return bool(is_enough and number <= (_LARGEST if self.most is None else self.most))

    def __call__(self, given: Any) -> Any:
        """The value as an `int` or a `float`."""
        if not self.allows(given):
            raise ValueError(f"must be {self.demand}, not {shown(given)}")
        return int(given) if self.is_whole else float(given)


def _figure(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


_EXAMPLE = "{'separator': 'comma'}"


def switch(given: Any) -> bool:
    if not isinstance(given, bool):
        raise ValueError(f"must be true or false, not {shown(given)}")
    return given


def text(given: Any) -> str:
    """Checks a text, which may be empty."""
    if not isinstance(given, str):
        raise ValueError(f"must be a text, not {shown(given)}")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{given!r} is not UTF-8; write it in UTF-8") from None
    return given


def full_text(given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError(f"must be a text that is not empty, not {shown(given)}")
    return text(given)


def public_name(given: Any) -> str:
    """Checks a name that is written to files."""
    if holds_key(text(given)):
        raise ValueError(A_KEY)
    return full_text(given)


def path(given: Any) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise ValueError(f"must be a path, not {shown(given)}")
    if not str(given):
        raise ValueError("is empty; name a folder, '.' for this one")
    if "\0" in str(given):
        raise ValueError(f"{shown(str(given))} has a NUL character, which no path has")
    try:
        os.fsencode(given)
    except UnicodeEncodeError:
        raise ValueError(f"{shown(str(given))} is not UTF-8; write it in UTF-8") from None
    return Path(given)


def texts(given: Any, each: Check = full_text) -> tuple[str, ...]:
    """Checks one text, or several, each of them with `each`."""
    given = [given] if isinstance(given, str) else given
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"must be a text or a list of texts, not {shown(given)}")
    return tuple(map(each, given))


def names(given: Any) -> tuple[str, ...]:
    """Checks names, which may stand in one text with commas between; each is kept once."""
    parts = (part.strip() for one in texts(given, text) for part in one.split(","))
    return tuple(dict.fromkeys(parts))


@dataclass(frozen=True, slots=True)
class Lengths:
    """The check of numbers of symbols, which may stand in one text with commas between."""

    bound: NumberRange = NumberRange(1, MAX_LENGTH)

    def __call__(self, given: Any) -> tuple[int, ...]:
        between = ", with commas between" if isinstance(given, str) else ""
        if isinstance(given, str):
            given = [part.strip() for part in given.split(",")]
        elif isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
            given = [given]
        given = list(given)
        if not given:
            raise ValueError("is empty; leave it out for those of the task")
        numbers = [number_of(one) if between else one for one in given]
        for one, number in zip(given, numbers, strict=True):
            if not self.bound.allows(number):
                demand = self.bound.demand.replace("a whole number", "whole numbers")
                raise ValueError(f"must be {demand}{between}, not {shown(one)}")
        return tuple(map(int, numbers))


def number_of(given: Any) -> Any:
    """A text that is a number, as that number; anything else as it was given."""
    if isinstance(given, str) and given.isascii():
        for kind in (int, float):
            try:
                return kind(given)
            except ValueError:
                continue
    return given


@dataclass(frozen=True, slots=True)
class OrWord:
    """The check of a number that can be left open with a word."""

    word: str
    bound: NumberRange

    def __call__(self, given: Any) -> float | None:
        """The number; `None` for the word."""
        if given is None or given == self.word:
            return None
        if not self.bound.allows(given):
            raise ValueError(f"must be {self.word!r} or {self.bound.demand}, not {shown(given)}")
        return int(given) if self.bound.is_whole else float(given)


def axes(given: Any) -> dict[str, tuple[str, ...]]:
    """Checks axes with their values: a mapping of names, or a list of `AXIS=VALUE[,VALUE]`."""
    if isinstance(given, str | Mapping):
        given = [given]
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise ValueError(f"must map axes to values, as {_EXAMPLE}, not {shown(given)}")
    found: dict[str, tuple[str, ...]] = {}
    for part in given:
        for axis, values in _axes_of(part):
            found[axis] = (*found.get(axis, ()), *values)
    return found


def thinking(given: Any) -> tuple[str, ...]:
    """Checks kinds of thinking, which may stand in one text with commas between: `on`, `off`, a
    number of tokens, or an effort. YAML and Python may give true, false and numbers.
    """
    parts = [given] if isinstance(given, str | int) else given
    if isinstance(parts, bytes | Mapping) or not isinstance(parts, Iterable):
        raise ValueError(f"must be {_THINKING}, not {shown(given)}")
    words = {True: "on", False: "off"}
    spelled = [words[one] if isinstance(one, bool) else str(one) for one in parts]
    read = names(spelled)
    for one in read:
        if not re.fullmatch(r"[1-9][0-9]{0,8}|[a-z]{1,20}", one, re.ASCII):
            raise ValueError(f"must be {_THINKING}, not {shown(one)}")
    return read


_SET_HEADERS = frozenset(
    {
        *("accept-encoding", "connection", "content-encoding", "content-length", "content-type"),
        *("host", "transfer-encoding", "upgrade"),
    }
)


def params(given: Any) -> dict[str, Any]:
    """Checks fields of a request's body: a mapping, or a list of `KEY=VALUE`, whose values are JSON
    or, if they are none, texts.
    """
    if isinstance(given, str | Mapping):
        given = [given]
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise ValueError(f"must map names to values, as {_PARAM}, not {shown(given)}")
    found: dict[str, Any] = {}
    for part in given:
        more = dict(part) if isinstance(part, Mapping) else dict([_param(part)])
        if twice := found.keys() & more.keys():
            raise ValueError(f"{min(twice)} is given twice; leave out one of them")
        found |= more
    for name, value in found.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w{0,63}", name, re.ASCII):
            raise ValueError(f"has no field {shown(name)}; a name has letters, digits and _")
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise ValueError(f"{name} must be JSON, not {shown(value)}") from None
        if has_secret(text):
            raise ValueError(
                f"{name} has a key or a password in it, which would be written to the manifest; "
                "leave it out"
            )
    return {name: _in_one_form(value) for name, value in found.items()}


def headers(given: Any) -> tuple[str, ...]:
    """Checks `NAME=VALUE` of headers; no message and no file has a value from now on."""
    read = texts(given, str)
    for one in read:
        name, equals, value = one.partition("=")
        if equals:
            keep_secret(one)  # in commands
            keep_key(value)
        if not value or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_|~-]+", name):
            raise ValueError(
                "wants NAME=VALUE, as 'X-Team=$TEAM', with a NAME of letters, digits and -; "
                + (f"{name[:40]!r} is none, or has no value" if equals else "one has no =")
            )
        if name.lower() in _SET_HEADERS:
            raise ValueError(f"{name} cannot be given here: each request sets it")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(
                f"{name} has a line break or another character that no header can have"
            )
    return read


def _in_one_form(value: Any) -> Any:
    """A JSON value with whole numbers as integers: 1 and 1.0 are one request."""
    if isinstance(value, Mapping):
        return {name: _in_one_form(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_in_one_form(one) for one in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return int(value) if is_whole else value


def param_text(name: str, value: Any) -> str:
    """A field as `KEY=VALUE`, which `params` reads as the same."""
    is_text = isinstance(value, str) and _param(f"{name}={value}") == (name, value)
    return f"{name}={value if is_text else json.dumps(value)}"


def _param(given: Any) -> tuple[str, Any]:
    name, equals, value = full_text(given).partition("=")
    if not equals:
        raise ValueError(f"wants KEY=VALUE, as {_PARAM}, not {given!r}")
    try:
        return name.strip(), json.loads(value)
    except (ValueError, RecursionError):
        if value.strip()[:1] in ("{", "[", '"'):
            raise ValueError(f"{name} is no valid JSON: {shown(value)}") from None
        return name.strip(), value


def _axes_of(given: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The axes of a mapping, or the one of `AXIS=VALUE[,VALUE]`."""
    if isinstance(given, Mapping):
        for axis, values in given.items():
            if not isinstance(axis, str) or not axis.strip():
                raise ValueError(f"must map names of axes to values, not {shown(axis)}")
            yield axis, _values(axis, values)
        return
    axis, equals, values = full_text(given).partition("=")
    if not equals or not values.replace(",", "").strip():
        raise ValueError(f"wants AXIS=VALUE[,VALUE] or AXIS=all, not {given!r}")
    yield axis.strip(), _values(axis, values)


def _values(axis: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        given = list(given)
    else:
        given = [given]
    for one in given:
        if isinstance(one, bool) or not isinstance(one, str | int):
            raise ValueError(f"{axis!r} must have a text or a list of texts, not {shown(one)}")
    parts = (part.strip() for one in given for part in full_text(str(one)).split(","))
    values = tuple(filter(None, parts))
    if not values:
        raise ValueError(f"has no value of {axis!r}; 'all' is every value")
    return values


class OneOf:
    def __init__(self, *words: str) -> None:
        self.words = words

    def __call__(self, given: Any) -> str:
        if given not in self.words:
            *first, last = self.words
            known = f"{', '.join(first)} or {last}" if first else last
            raise ValueError(f"must be {known}, not {shown(given)}")
        return str(given)


def matching(pattern: str, demand: str, check: Check = text) -> Check:
    """The check of texts that match a pattern; `demand` is what is said of others, before `not`."""

    def matched(given: Any) -> Any:
        read = check(given)
        for one in [read] if isinstance(read, str) else read:
            if not re.fullmatch(pattern, one, re.ASCII):
                raise ValueError(f"{demand}, not {shown(one)}")
        return read

    return matched
