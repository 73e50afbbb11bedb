"""Rows whose symbols are to be counted, and the sentence whose words are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def label(rng: Random) -> str:
    """A three-letter name for the row, so that the samples of a fixed row are different prompts."""
    return "".join(rng.choice(LETTERS) for _ in range(3))


def constant(rng: Random, length: int, *, symbol: str) -> Item:
    """`symbol`, over and over; the target is how often it stands there."""
    return Item([symbol] * length, length, {"label": label(rng)})


def bernoulli(
    rng: Random, length: int, *, symbols: Sequence[str], share: float, counted: str
) -> Item:
    """Independent draws of two symbols, `counted` with probability `share`, and its count."""
    (other,) = (symbol for symbol in symbols if symbol != counted)
    name = label(rng)
    row = [counted if rng.random() < share else other for _ in range(length)]
    return Item(row, row.count(counted), {"label": name})


def density(
    rng: Random, length: int, *, symbols: Sequence[str], shares: Sequence[float], counted: str
) -> Item:
    """The same with a probability that is drawn for the row, evenly between two `shares`: rows of
    one length have many counts.
    """
    share = rng.uniform(*shares)
    return bernoulli(rng, length, symbols=symbols, share=share, counted=counted)


NAMES = ("Mia", "Noah", "Lena", "Omar", "Ivy", "Hugo", "Zoe", "Ravi")
OBJECTS = {
    "reads": ("books", "letters", "poems", "maps"),
    "paints": ("boats", "birds", "hills", "doors"),
    "sings": ("songs", "hymns", "tunes", "carols"),
    "cooks": ("beans", "soups", "eggs", "lentils"),
    "draws": ("maps", "birds", "boats", "trees"),
    "writes": ("letters", "poems", "songs", "plays"),
}
"""Verbs that can do without an object, each with the objects it may take."""
ADVERBS = ("slowly", "daily", "outside", "gladly", "again", "alone")
COUNTABLE = tuple(sorted({*OBJECTS, *ADVERBS, *(word for row in OBJECTS.values() for word in row)}))


def sentence(rng: Random, length: int) -> Item:
    """A sentence of `length` words about one person's doings, and how often one word is in it.

    Grammar: name, then clauses `verb [objects] [adverb]` set off by commas. Every verb can stand
    alone, so from the second word on each beginning of the sentence is itself a sentence, and a
    longer sample continues a shorter one. The word asked for is drawn first and favoured wherever
    it fits; it may also be missing.
    """
    if length < 2:
        msg = "a sentence has at least 2 words"
        raise ValueError(msg)
    word = rng.choice(COUNTABLE)
    leading = tuple(verb for verb, objects in OBJECTS.items() if word in (verb, *objects))
    words = [rng.choice(NAMES)]
    while len(words) < length:
        verb = _favour(rng, leading, tuple(OBJECTS))
        words.append(f" {verb}" if len(words) == 1 else f", {verb}")
        if rng.random() < 0.7:
            words.append(f" {_favour(rng, (word,), OBJECTS[verb])}")
        if rng.random() < 0.5:
            words.append(f" {_favour(rng, (word,), ADVERBS)}")
    del words[length:]
    count = sum(written.strip(", ") == word for written in words)
    return Item(words, count, {"word": word})


def _favour(rng: Random, favoured: Sequence[str], choices: Sequence[str]) -> str:
    """One of `choices`; half the time one of the `favoured` among them, where there is one."""
    among = [choice for choice in choices if choice in favoured]
    return rng.choice(among if among and rng.random() < 0.5 else choices)
