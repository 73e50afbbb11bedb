"""Rows of one repeated item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from random import Random

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def repeated(rng: Random, length: int, *, item: str) -> Item:
    """`item`, over and over; the target is how often it stands there."""
    label = "".join(rng.choice(LETTERS) for _ in range(3))
    return Item([item] * length, length, {"label": label})
