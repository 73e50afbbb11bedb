"""A text as it comes back: escaped, percent-encoded, quoted for a shell, or within base64."""

from __future__ import annotations

import base64
import html
import re
from functools import cache

_SIX, _EIGHT = 6, 8
"""Bits of a base64 character and of a byte."""


def any_quoting(text: str) -> str:
    """A regular expression that finds `text` however its characters are written: as they are, or
    as JSON, Python, a shell, an address or HTML writes them. Linear: no part repeats without end.
    """
    return "".join(_any_form(part) for part in re.findall(r"\\\\+|.", text, re.DOTALL))


@cache
def _any_form(char: str) -> str:
    """Of a character, or of a row of backslashes, which nobody can tell from what escapes them."""
    if char.isascii() and char.isalnum():
        return char
    if char[0] == "\\":
        return rf"(?i:\\|%(?:25){{0,2}}5c|&#92;){{{len(char)},{_EIGHT * len(char)}}}"
    percent = "".join(f"%(?:25){{0,2}}{byte:02x}" for byte in char.encode(errors="replace"))
    if char.isspace():
        return rf"(?:\s|\+|\\{{1,8}}[nrtfv]|(?i:{percent}))"
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escapes = "".join(rf"\\{{1,8}}u{units[at : at + 4]}" for at in range(0, len(units), 4))
    ways = [
        rf"\\{{0,8}}{re.escape(char)}",
        escapes,
        percent,
        f"&#{ord(char)};",
        f"&#x{ord(char):x};",
    ]
    if ord(char) < 256:  # noqa: PLR2004  a byte
        ways.append(rf"\\{{1,8}}x{ord(char):02x}")
    if (named := html.escape(char, quote=True)) != char:
        ways.append(named)
    if char == "'":  # as shells and `shlex.quote` write it
        ways += ["'\"'\"'", r"'\\''", "&apos;"]
    if char in "+/":  # as addresses write base64
        ways.append("[-_]")
    return f"(?:{'|'.join(f'(?i:{way})' for way in ways)})"


def within_base64(text: str) -> list[str]:
    """What the base64 of anything with `text` in it has, for each place where `text` may begin;
    a character at either end that other text decides as well is no part of it.
    """
    content = text.encode(errors="replace")
    found = []
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode().rstrip("=")
        first = -(-_EIGHT * before // _SIX)
        last = _EIGHT * (before + len(content)) // _SIX
        found.append(encoded[first:last])
    return found
