"""Rows of brackets."""

from __future__ import annotations

import random

from eyechart import Item


def still_open(rng: random.Random, length: int) -> Item:
    """A row in which no bracket closes before one opens, and how many are open at its end."""
    row: list[str] = []
    depth = 0
    for _ in range(length):
        bracket = "(" if depth == 0 else rng.choice("()")
        depth += 1 if bracket == "(" else -1
        row.append(bracket)
    return Item(row, depth)
