"""Rows of words and of machine-made records, to be copied."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


def _split(words: str) -> list[str]:
    return words.split()


def verbatim(rng: Random, length: int, *, content: str) -> Item:
    """Records of one kind, each of its own draws; the target is the row itself."""
    make = CONTENTS[content]
    row = [make(rng) for _ in range(length)]
    return Item(row, (" " if content == "words" else "\n").join(row))


def _fields(rng: Random) -> tuple[int, str, str, float]:
    number = rng.randrange(10_000, 100_000)
    return number, rng.choice(WORDS), rng.choice(COLOURS), rng.randrange(1, 10_000) / 100


def _json(rng: Random) -> str:
    number, word, colour, price = _fields(rng)
    return json.dumps({"id": number, "name": word, "colour": colour, "price": price})


def _csv(rng: Random) -> str:
    return ",".join(map(str, _fields(rng)))


def _uuid(rng: Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _decimal(rng: Random) -> str:
    return f"{rng.choice(('', '-'))}{rng.randrange(10)}.{rng.randrange(10**10):010}"


def _word(rng: Random) -> str:
    return rng.choice(WORDS)


CONTENTS: dict[str, Callable[[Random], str]] = {
    "words": _word,
    "json": _json,
    "csv": _csv,
    "uuids": _uuid,
    "decimals": _decimal,
}
COLOURS = ("red", "green", "blue", "white", "black", "brown", "grey", "yellow")
WORDS = _split(
    "anchor basket bottle bridge bucket button candle carpet castle cherry circle coffee copper "
    "corner cotton dragon engine fabric feather finger flower forest garden guitar hammer helmet "
    "island jacket kettle ladder lantern marble meadow mirror mountain needle orange palace "
    "pencil pepper pillow planet pocket potato rabbit ribbon rocket saddle school shadow silver "
    "spider spring square summer tunnel valley velvet violin walnut willow window winter yellow"
)
