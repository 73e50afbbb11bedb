"""Reads a list of items and compares it with another.

Commas separate the items, so an item has none. The line after the answer phrase is the list; a line
that ends with a comma goes on in the next. Where a bullet or a number begins that line, each such
line is an item. Brackets around the list, quotes and markup around an item, one full stop at the
end, and `and` or `or` after the last comma are left out. Items are compared as texts: case counts,
amounts of white space do not.
"""

from __future__ import annotations

import re
from collections import Counter

from .markup import BRACKETS, QUOTES, SOLID, peel

_BULLET = re.compile(r"\s*+(?:[-+*\u2022\u00b7\u2023\u25e6]\s++|\(?\d{1,4}[.)]\s++)")
_LAST = re.compile(r"(?:and|or)\s++(?=\S)", re.IGNORECASE)
SEPARATOR = ", "
"""Between the items of a list that was read."""


def place_of(text: str, bare: str, start: int, end: int) -> tuple[int, int, bool]:
    """Where the list is in `text` from `start`, and whether a line follows it; `bare` is `text`
    without markup. Start and end are equal if there is none.
    """
    solid = SOLID.search(bare, start, end)
    if not solid:
        return start, start, False
    first = max(start, bare.rfind("\n", start, solid.start()) + 1)
    bulleted = bool(_BULLET.match(text, first, end))
    at = first
    while True:
        newline = bare.find("\n", at, end)
        if newline < 0:
            return first, end, False
        line = bare[at:newline].rstrip()
        more = SOLID.search(bare, newline, end)
        if more is None:
            return first, newline, True
        following = bare.rfind("\n", newline, more.start()) + 1
        goes_on = _BULLET.match(text, following, end) if bulleted else line.endswith(",")
        if not goes_on:
            return first, newline, True
        at = following


def items_of(text: str, bare: str, start: int, end: int) -> list[str]:
    if _BULLET.match(text, start, end):
        parts = []
        for line in re.finditer(r"[^\n]++", text[start:end]):
            bullet = _BULLET.match(text, start + line.start(), start + line.end())
            first = bullet.end() if bullet else start + line.start()
            parts.append((first, start + line.end()))
    else:
        start, end = peel(bare, start, end, BRACKETS | QUOTES)
        commas = [start - 1, *(mark.start() + start for mark in re.finditer(",", bare[start:end]))]
        parts = [(left + 1, right) for left, right in zip(commas, [*commas[1:], end], strict=True)]
    if len(parts) > 1:
        first, last = parts[-1]
        solid = SOLID.search(bare, first, last)
        lead = _LAST.match(bare, solid.start(), last) if solid else None
        parts[-1] = (lead.end() if lead else first, last)
    items = [_item(text, *peel(bare, first, last, QUOTES)) for first, last in parts]
    return items[:-1] if len(items) > 1 and not items[-1] else items


def _item(text: str, start: int, end: int) -> str:
    words = text[start:end].rstrip(",").split()
    return " ".join(word.strip("*`") or word for word in words)


def shared(left: list[str], right: list[str]) -> int:
    """The number of items in both lists, whatever their order."""
    return (Counter(left) & Counter(right)).total()
