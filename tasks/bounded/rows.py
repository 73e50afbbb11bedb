"""Rows whose right answers are the same few at every length, each as likely."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def label(rng: Random) -> str:
    """A three-letter name for the row."""
    return "".join(rng.choice(LETTERS) for _ in range(3))


def parity(rng: Random, length: int) -> Item:
    """Independent draws of 0 and 1, both as likely; the target is whether the ones are even or odd.

    Both are as likely at every length, also where all symbols but one are known.
    """
    name = label(rng)
    row = [rng.choice("01") for _ in range(length)]
    return Item(row, "odd" if row.count("1") % 2 else "even", {"label": name})


def modulo(rng: Random, length: int, *, divisor: int) -> Item:
    """A row of 0 and 1 with any count of ones, each as likely; the target is the remainder of the
    count divided by `divisor`.

    The share of ones is drawn for the row, evenly from 0 to 1.
    """
    name, share = label(rng), rng.random()
    row = ["1" if rng.random() < share else "0" for _ in range(length)]
    return Item(row, row.count("1") % divisor, {"label": name})


def majority(rng: Random, length: int, *, symbols: Sequence[str], lead: float) -> Item:
    """Two symbols in a random order; the target is the one that is there more often, each as
    likely.

    It is there more often by `lead` times `length`, rounded up to a number that is even where the
    length is even, and odd where it is odd: by at least 1 or 2. So a longer row has a few other
    symbols than the shorter one at its beginning.
    """
    name = label(rng)
    more, less = rng.sample(symbols, 2)
    apart = max(1, math.ceil(lead * length - 1e-9))
    apart += (length - apart) % 2
    drawn = [rng.random() for _ in range(length)]
    row = [less] * length
    for place in sorted(range(length), key=drawn.__getitem__)[: (length + apart) // 2]:
        row[place] = more
    return Item(row, more, {"label": name})


def selective(
    rng: Random, length: int, *, asked: int, between: str, digits: str, dense: int
) -> Item:
    """`digits` among symbols of `between`, all drawn; the target is digit number `asked` from the
    end.

    The first `dense` places have digits, and place i of the others, counted from 1, has one with
    the probability `dense` / i. So of rows of all lengths the last digits stand at the same shares
    of the row.
    """
    if length < asked:
        msg = f"a row has at least {asked} symbols"
        raise ValueError(msg)
    name = label(rng)
    row, marked = [], []
    for place in range(1, length + 1):
        is_digit, digit, other = (
            rng.random() < dense / place,
            rng.choice(digits),
            rng.choice(between),
        )
        row.append(digit if is_digit else other)
        marked += [digit] * is_digit
    return Item(row, marked[-asked], {"label": name})
