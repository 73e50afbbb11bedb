"""Trees of which a root asks one of its leaves."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NAMES, COUNTS = 26**3, 1_000
"""So many names and numbers of blue neighbors at first; ten times as many when half are used."""


def neighbors_match(
    rng: Random, length: int, *, trees: int, breadth: int, values: Sequence[str]
) -> Item:
    """The `length` leaves of `trees` trees, a leaf of each tree in turn, whose order is drawn; the
    target is the value of the leaf that has as many blue neighbors as the root of its tree, for one
    drawn root.

    A leaf has a value, which is drawn, and a number of blue neighbors that no other leaf of its
    tree has. Leaf number i has the same number in each tree, and so have the roots. A node has at
    most `breadth` children, and all leaves of a tree are equally deep.

    Raises:
        ValueError: there are fewer leaves than trees.
    """
    if length < trees:
        msg = f"{trees} trees have at least {trees} leaves"
        raise ValueError(msg)
    other, share, asked = Random(rng.getrandbits(64)), rng.random(), rng.randrange(trees)
    names, counts = _names(other), _distinct(rng, COUNTS)
    wanted = int(share * (length // trees))
    row: list[str] = []
    parents: list[list[str]] = [[] for _ in range(trees)]
    blue, target = 0, ""
    for place in range(-(-length // trees)):
        count = next(counts)
        if place % breadth == 0:
            for one in parents:
                one.append(next(names))
        drawn = [rng.choice(values) for _ in range(trees)]
        if place == wanted:
            blue, target = count, drawn[asked]
        row += rng.sample(
            [
                f"leaf below {one[-1]}: {count} blue neighbors, value {value}"
                for one, value in zip(parents, drawn, strict=True)
            ],
            trees,
        )
    nodes: list[str] = []
    roots = [_root(level, breadth, names, nodes) for level in parents]
    nodes += [f"root {root}: {blue} blue neighbors" for root in roots]
    other.shuffle(nodes)
    return Item(row[:length], target, {"root": roots[asked], "nodes": nodes})


def _root(level: list[str], breadth: int, names: Iterator[str], nodes: list[str]) -> str:
    """The root above the nodes of a level; adds the lines of all nodes below it to `nodes`."""
    while len(level) > 1:
        above = [next(names) for _ in range(-(-len(level) // breadth))]
        nodes += [f"node {name} below {above[at // breadth]}" for at, name in enumerate(level)]
        level = above
    return level[0]


def _distinct(rng: Random, many: int) -> Iterator[int]:
    """Whole numbers from 1 on, each once, drawn from the first `many`, or from ten times as many
    each time that half of them are used.
    """
    used: set[int] = set()
    while True:
        number = rng.randint(1, many)
        if number not in used:
            used.add(number)
            yield number
            many *= 10 if 2 * len(used) >= many else 1


def _names(rng: Random) -> Iterator[str]:
    """Three letters or more, each name once."""
    for number in _distinct(rng, NAMES):
        rest, letters = number - 1, ""
        while rest or len(letters) < 3:
            rest, letter = divmod(rest, len(LETTERS))
            letters = LETTERS[letter] + letters
        yield letters
