"""The one normal form in which texts are compared: NFC of Unicode (annex 15).

`é` is one character, or `e` and an accent that is combined with it. Both are the same text, and a
model writes the one or the other. A reply is read in NFC, and targets, options and answer phrases
are compared in it.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FORM: Final = "NFC"
_MOST_MARKS = 30
"""Marks on one character, as Unicode's stream-safe texts have at most; more stay as they are, since
to sort n of them takes n² steps."""


@dataclass(frozen=True, slots=True)
class ComposedText:
    """A text in NFC."""

    text: str
    origin: Sequence[int] | None
    """Index of each character, and of the end, in the text as it was; `None` if it was the same."""


def composed(text: str) -> ComposedText:
    """`text` in NFC, in time linear in its length."""
    if unicodedata.is_normalized(_FORM, text):
        return ComposedText(text, None)
    parts: list[str] = []
    origin: list[int] = []
    for start, end in pairwise(_starts(text)):
        part = text[start:end]
        if end - start <= 1 + _MOST_MARKS:
            part = unicodedata.normalize(_FORM, part)
        is_same = len(part) == end - start
        parts.append(part)
        origin += range(start, end) if is_same else [start] * len(part)
    return ComposedText("".join(parts), [*origin, len(text)])


def nfc(text: str) -> str:
    """`text` in the form in which it is compared."""
    return text if text.isascii() else composed(text).text


def tidy(text: str) -> str:
    """`text` in NFC, with one space between words."""
    return " ".join(nfc(text).split())


def _starts(text: str) -> Iterator[int]:
    """Where a character begins to which the following marks or letters belong, and the end."""
    yield 0
    for place, sign in enumerate(text[1:], start=1):
        is_in_syllable = "\u1160" <= sign <= "\u11ff"  # of Korean: a vowel or a last consonant
        if not is_in_syllable and not unicodedata.category(sign).startswith("M"):
            yield place
    yield len(text)
