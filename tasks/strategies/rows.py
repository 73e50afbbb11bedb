"""Rows to be copied, at once or step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def copied(rng: Random, length: int, *, symbols: Sequence[str]) -> Item:
    """Symbols, each drawn from a few; the target is the row itself, with spaces between them."""
    label = "".join(rng.choice(LETTERS) for _ in range(3))
    row = [rng.choice(symbols) for _ in range(length)]
    return Item(row, " ".join(row), {"label": label})
