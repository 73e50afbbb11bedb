"""JSON with exact integers of any length.

orjson refuses to write integers beyond 64 bits and reads them as floats. The standard library
handles them, at a tenth of the speed.
"""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any

import orjson


def loads(text: bytes | str) -> Any:
    """The value of the JSON in `text`, which may begin with a byte order mark.

    Raises:
        json.JSONDecodeError: `text` is not JSON; the error has the place.
        ValueError: it has an integer that Python does not read (more than 4,300 digits), or is
            nested deeper than Python reads.
    """
    try:
        if isinstance(text, str):
            return _loads(text.removeprefix("\ufeff"))
        return _loads(text.removeprefix(BOM_UTF8))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _loads(text: bytes | str) -> Any:
    try:
        read = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "infinity" not in error.msg:  # the message for integers beyond 10^308
            raise
    else:
        if not _long_number_in(text) or not _may_be_rounded(read):
            return read
    return json.loads(text, parse_float=_finite, parse_constant=_no_constant)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"{digits} is too large for a number with a fraction or an exponent")
    return number


def _long_number_in(text: bytes | str) -> bool:
    """Whether `text` has 19 digits in a row: every integer of more than 64 bits has at least 19."""
    found = _DIGITS.search(text) if isinstance(text, str) else _DIGITS_IN_BYTES.search(text)
    return found is not None


def _may_be_rounded(read: Any) -> bool:
    """Whether a float in `read` may be a rounded integer of more than 64 bits."""
    if isinstance(read, float):
        return abs(read) >= _FIRST_ROUNDED
    if isinstance(read, dict):
        return any(map(_may_be_rounded, read.values()))
    return isinstance(read, list) and any(map(_may_be_rounded, read))


_FIRST_ROUNDED = 2.0**63
_DIGITS, _DIGITS_IN_BYTES = re.compile(r"[0-9]{19}"), re.compile(rb"[0-9]{19}")


def dumps(value: Any, *, indent: bool = False) -> bytes:
    """`value` as JSON in UTF-8.

    JSON has no infinite numbers and no lone surrogates: a number that is not finite becomes null, a
    lone surrogate U+FFFD.

    Raises:
        TypeError: `value` holds something other than mappings, lists, texts, numbers and None.
    """
    option = orjson.OPT_INDENT_2 if indent else 0
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        sound = _sound(value)
    try:
        return orjson.dumps(sound, option=option)
    except TypeError:
        separators = (",", ": ") if indent else (",", ":")
        text = json.dumps(
            sound, ensure_ascii=False, indent=2 if indent else None, separators=separators
        )
        return text.encode()


def _sound(value: Any) -> Any:
    """`value` with everything replaced that JSON cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_sound(name): _sound(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(item) for item in value]
    return value
