"""Reads a list of items and compares it with another.

Commas separate the items, so an item has none, unless the task names another separator. The line
after the answer phrase is the list; a line that ends with a comma goes on in the next. Where a
bullet or a number begins that line, each such line is an item. Brackets around the list, quotes and
markup in pairs around an item, one full stop at the end, and `and` or `or` after the last separator
are left out, unless the target has them. Items are compared as texts: case counts, amounts of white
space do not. If all items of the target are numbers, they are compared as numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from .integers import MOST_DIGITS, decimal
from .markup import SOLID, readings, undress
from .normal_form import tidy

if TYPE_CHECKING:
    from collections.abc import Collection

_BULLET = re.compile(r"\s*+(?:[-+*\u2022\u00b7\u2023\u25e6]\s++|\(?\d{1,4}[.)]\s++)")
_LAST = re.compile(r"\A\s*+(?:and|or)\s++(?=\S)", re.IGNORECASE)
_DIGITS = re.compile(r"([-+]?)(\d++)(?:\.(\d++))?")
_PLAIN = re.compile(r"[^\W_](?:[\w ]*+(?<=[^\W_]))?")
SEPARATOR = ","
"""Between the items of a list, unless a task names another."""


def place_of(text: str, bare: str, start: int, end: int) -> tuple[int, int, bool]:
    """Where the list is in `text` from `start`, and whether a line follows it; `bare` is `text`
    without markup. Start and end are equal if there is none.
    """
    solid = SOLID.search(bare, start, end) or SOLID.search(text, start, end)
    if not solid:
        return start, start, False
    first = max(start, bare.rfind("\n", start, solid.start()) + 1)
    bulleted = bool(_BULLET.match(text, first, end))
    at = first
    while True:
        newline = bare.find("\n", at, end)
        if newline < 0:
            return first, end, False
        line = text[at:newline].rstrip().rstrip("*`")
        more = SOLID.search(bare, newline, end)
        if more is None:
            return first, newline, True
        following = bare.rfind("\n", newline, more.start()) + 1
        goes_on = _BULLET.match(text, following, end) if bulleted else line.endswith(",")
        if not goes_on:
            return first, newline, True
        at = following


def items_of(text: str, start: int, end: int, separator: str) -> list[str]:
    """The items as they are written, between bullets or the separator."""
    if _BULLET.match(text, start, end):
        lines = text[start:end].splitlines()
        items = [line[bullet.end() if (bullet := _BULLET.match(line)) else 0 :] for line in lines]
    else:
        items = text[start:end].split(separator if separator.strip() else None)
    if len(items) > 1:
        items[-1] = _LAST.sub("", items[-1], count=1)
    items = [tidy(item.rstrip().rstrip(",")) for item in items]
    return items[:-1] if len(items) > 1 and not items[-1] else items


def plain(item: str, known: Collection[str] = ()) -> str:
    """An item without quotes and markup around it, or as one of `known` has it."""
    if not item or item in known or _PLAIN.fullmatch(item):
        return item
    words = [words for words, *_ in readings(item, undress(item, 0, len(item)))]
    return next((one for one in words if one in known), words[-1] if words else item)


def joint(separator: str) -> str:
    """What stands between the items of a list that was read."""
    return f"{separator.strip()} " if separator.strip() else " "


def as_numbers(*both: list[str]) -> list[list[str]]:
    """Lists of items, in which equal numbers are equal texts, if all items of the last are numbers;
    else as they are.
    """
    values = [[_number(item) for item in items] for items in both]
    if None in values[-1]:
        return list(both)
    return [
        [item if value is None else str(value) for item, value in zip(items, found, strict=True)]
        for items, found in zip(both, values, strict=True)
    ]


def _number(item: str) -> str | None:
    """The number that an item is, in one way of writing; `None` if it is none."""
    if not (parts := _DIGITS.fullmatch(item)):
        found = decimal(item, own_line=False)
        if isinstance(found, str) or item[found.start : found.end] != item:
            return None
        parts = _DIGITS.fullmatch(repr(found.value))
    if not parts or len(item) > MOST_DIGITS:
        return None
    sign, whole, fraction = parts.groups("")
    number = f"{int(whole)}.{fraction}".rstrip("0").rstrip(".")
    return f"-{number}" if sign == "-" and number != "0" else number


def shared(left: list[str], right: list[str]) -> int:
    """The number of items in both lists, whatever their order."""
    return (Counter(left) & Counter(right)).total()
