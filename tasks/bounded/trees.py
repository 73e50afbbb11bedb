"""Trees of which a root asks one of its leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

LEAST = 2
"""Nodes of a tree: a root and a leaf."""


def neighbors_match(
    rng: Random, length: int, *, trees: int, breadth: int, values: Sequence[str]
) -> Item:
    """A line for each of the `length` nodes of `trees` trees, in a drawn order; the target is the
    value of the leaf that has as many blue neighbors as the root of its tree, for one drawn root.

    A node has at most `breadth` children, and the levels of a tree are filled from its root. The
    leaves of a tree have 1, 2, 3, … blue neighbors in a drawn order, each with a value that is
    drawn. Every tree has a leaf with the number that is asked for.

    Raises:
        ValueError: a tree would have no leaf besides its root.
    """
    if length < LEAST * trees:
        msg = f"{trees} trees have at least {LEAST * trees} nodes"
        raise ValueError(msg)
    names = rng.sample(range(1, length + 1), length)
    leaves = [[*range((size - 2) // breadth + 1, size)] for size in _sizes(length, trees)]
    asked = rng.randrange(trees)
    wanted = rng.randint(1, min(map(len, leaves)))
    lines, target = [], ""
    for tree, places in enumerate(leaves):
        counts = rng.sample(range(1, len(places) + 1), len(places))
        own = names[tree::trees]
        root = wanted if tree == asked else rng.randint(1, len(places))
        lines.append(f"node {own[0]}: root, {root} blue")
        below = [
            f"node {own[place]}: parent {own[(place - 1) // breadth]}"
            for place in range(1, len(own))
        ]
        lines += below[: -len(places)]
        for line, count in zip(below[-len(places) :], counts, strict=True):
            value = rng.choice(values)
            lines.append(f"{line}, {count} blue, value {value}")
            if tree == asked and count == wanted:
                target = value
    rng.shuffle(lines)
    return Item(lines, target, {"root": names[asked]})


def _sizes(length: int, trees: int) -> list[int]:
    """The numbers of nodes of trees that have `length` nodes together, as equal as they can be."""
    return [len(range(tree, length, trees)) for tree in range(trees)]
