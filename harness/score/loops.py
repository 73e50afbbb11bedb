"""Replies that end with one short text over and over."""

from __future__ import annotations

import re

_CHARS, _TIMES = 40, 12
"""A reply loops if it ends with this many repetitions of a text of at most this many characters."""
_FILLING = re.compile(r"[\s\"'`*,;]+")


def loop_of(text: str) -> str:
    """The text that a reply repeats at its end; empty if it repeats none."""
    for length in range(1, min(_CHARS, len(text) // _TIMES) + 1):
        unit = text[-length:]
        if text.endswith(unit * _TIMES):
            return unit
    return ""


def is_lost(text: str, prompt: str) -> bool:
    """Whether a reply that was cut off loops, other than in a copy of what the prompt repeats."""
    unit = _FILLING.sub("", loop_of(text))
    return bool(unit) and unit * _TIMES not in _FILLING.sub("", prompt)
