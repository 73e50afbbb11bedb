"""The unit of a task's lengths, in texts: `symbols`, `tokens`, `words`, `items`."""

from __future__ import annotations

from collections.abc import Iterable

SYMBOLS = "symbols"
"""The unit of a task whose file names none."""
_ENDINGS = (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("s", ""))
"""Ending of a plural -> ending of its singular; the first that fits."""


def singular(unit: str) -> str:
    """One of a unit: `symbol` of `symbols`, `entry` of `entries`, `box` of `boxes`."""
    for plural, single in _ENDINGS:
        if unit.endswith(plural):
            return unit.removesuffix(plural) + single
    return unit


def counted(number: str, unit: str, *, is_one: bool) -> str:
    """`20 symbols`, `1 symbol`; `number` is a text, such as `less than 5`."""
    return f"{number} {singular(unit) if is_one else unit}"


def length_title(units: Iterable[str]) -> str:
    """The title of an axis of lengths: `length (symbols)`; `length` where units differ."""
    different = set(units)
    return f"length ({different.pop()})" if len(different) == 1 else "length"
