"""Patterns for a text in escaped, percent-encoded, shell-quoted or base64 form."""

from __future__ import annotations

import base64
import html
import re
from functools import cache

_SIX, _EIGHT = 6, 8
"""Bits of a base64 character and of a byte."""


def any_quoting(text: str) -> str:
    """A regular expression that finds `text` as it is, or as JSON, Python, a shell, an address or
    HTML writes its characters. All repetitions in it are bounded, so it takes linear time.
    """
    return "".join(_any_form(part) for part in re.findall(r"\\\\+|.", text, re.DOTALL))


@cache
def _any_form(char: str) -> str:
    """The pattern of one character, or of a run of backslashes: some of them may be escapes."""
    if char.isascii() and char.isalnum():
        return char
    if char[0] == "\\":
        return rf"(?i:\\|%(?:25){{0,2}}5c|&#92;){{{len(char)},{_EIGHT * len(char)}}}"
    percent = "".join(f"%(?:25){{0,2}}{byte:02x}" for byte in char.encode(errors="replace"))
    if char.isspace():
        return rf"(?:\s|\+|\\{{1,8}}[nrtfv]|(?i:{percent}))"
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escapes = "".join(rf"\\{{1,8}}u{units[at : at + 4]}" for at in range(0, len(units), 4))
    forms = [
        rf"\\{{0,8}}{re.escape(char)}",
        escapes,
        percent,
        f"&#{ord(char)};",
        f"&#x{ord(char):x};",
    ]
    if ord(char) < 256:  # noqa: PLR2004  a byte
        forms.append(rf"\\{{1,8}}x{ord(char):02x}")
    if (named := html.escape(char, quote=True)) != char:
        forms.append(named)
    if char == "'":  # as shells and `shlex.quote` write it
        forms += ["'\"'\"'", r"'\\''", "&apos;"]
    if char in "+/":  # as addresses write base64
        forms.append("[-_]")
    return f"(?:{'|'.join(f'(?i:{form})' for form in forms)})"


def within_base64(text: str) -> list[str]:
    """The base64 characters that any text containing `text` has, for each of the three offsets.

    Characters at both ends that depend on neighbouring text are left out.
    """
    content = text.encode(errors="replace")
    cores = []
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode().rstrip("=")
        first = -(-_EIGHT * before // _SIX)
        last = _EIGHT * (before + len(content)) // _SIX
        cores.append(encoded[first:last])
    return cores
