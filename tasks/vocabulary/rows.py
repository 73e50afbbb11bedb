"""Rows over few or many kinds of symbols, to be counted or copied."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BITS = 12
"""Information in the symbols that come twice only inside a stretch: 12 of two kinds, 6 of four, 3
of 26. A row of a few hundred symbols can do without repeating so many."""
NUMBERS = 10_000
"""Four-digit numbers, the kinds of symbols of `of_many_kinds`."""


def label(rng: Random) -> str:
    """A three-letter name for the row."""
    return "".join(rng.choice(CAPITALS) for _ in range(3))


def of_many_kinds(rng: Random, length: int, *, vocabulary: int) -> Item:
    """A row over `vocabulary` four-digit numbers; the target is how often one of them is in it.

    The share of the number asked for is drawn first, evenly from 0 to 1, so every count from 0 to
    `length` is as likely. Each other place has one of the other numbers, each as likely. What is
    drawn for a place does not depend on `vocabulary`, so the number asked for stands at the same
    places of the same row under every vocabulary.
    """
    name, share = label(rng), rng.random()
    others: dict[int, str] = {}
    """Kind -> its number, for the kinds that came up."""
    numbers = _all_different(Random(rng.getrandbits(64)))
    asked = next(numbers)
    row = []
    for _ in range(length):
        is_asked, drawn = rng.random() < share, rng.random()
        kind = int(drawn * (vocabulary - 1))
        if not is_asked and kind not in others:
            others[kind] = next(numbers)
        row.append(asked if is_asked else others[kind])
    return Item(row, row.count(asked), {"label": name, "number": asked})


def _all_different(rng: Random) -> Iterator[str]:
    """The numbers `0000` to `9999` in a random order."""
    given = set[str]()
    while len(given) < NUMBERS:
        number = f"{rng.randrange(NUMBERS):04}"
        if number not in given:
            given.add(number)
            yield number


def ambiguous(rng: Random, length: int, *, alphabet: int, repeats: float, stretch: int) -> Item:
    """A row to be copied, of the first `alphabet` letters; a share `repeats` of a long row stands
    in stretches that were in the row before.

    A stretch of `stretch` symbols comes again from a place that is drawn, and the symbol after it
    is another one than before. So whoever looks up what followed the last symbols finds two
    answers. Outside of stretches no window of `BITS` bits comes again, as long as a symbol is left
    for that.
    """
    name = label(rng)
    letters = CAPITALS[:alphabet].lower()
    window = round(BITS / math.log2(alphabet))
    begins = repeats / (1 - repeats) / stretch
    row, seen = "", set[str]()
    source, left = 0, 0
    while len(row) < length:
        may_begin, drawn = rng.random() < begins, rng.random()
        before = row[source + stretch] if left else ""
        if not left and may_begin and len(row) > stretch:
            source, left = int(drawn * (len(row) - stretch)), stretch + 1
        if left > 1:
            row += row[source + stretch + 1 - left]
        else:
            row += _new(row, letters.replace(before, ""), window, seen, drawn)
        left = max(0, left - 1)
        seen.add(row[-window:])
    return Item(list(row), " ".join(row), {"label": name})


def _new(row: str, letters: str, window: int, seen: set[str], drawn: float) -> str:
    """The next letter of a row. With it the last `window` letters are none of those in `seen`; if
    every letter makes one of these, any letter may come.
    """
    before = row[len(row) + 1 - window :] if len(row) >= window else row
    free = [letter for letter in letters if before + letter not in seen] or letters
    return free[int(drawn * len(free))]
