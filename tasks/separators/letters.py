"""Random strings of letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from random import Random


def uniform(rng: Random, length: int, *, alphabet: str, letter: str) -> Item:
    """Letters of `alphabet`, each as likely; the target is how often `letter` is among them."""
    row = [rng.choice(alphabet) for _ in range(length)]
    return Item(row, row.count(letter))
