"""Words whose letters are to be counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from random import Random

COUNTED = "aeilnorst"


def _split(words: str) -> list[str]:
    return words.split()


def letters(rng: Random, length: int) -> Item:
    """Random words; the target is how often one letter is in all of them together."""
    letter = rng.choice(COUNTED)
    row = [rng.choice(WORDS) for _ in range(length)]
    return Item(row, sum(word.count(letter) for word in row), {"letter": letter})


WORDS = _split(
    "strawberry banana committee parallel bookkeeper cinnamon raspberry tomorrow accommodation "
    "balloon lantern settlement terrarium nonsense illustration rhinoceros tarantula possession "
    "butterfly caterpillar election misspelling orangutan necessary assassin tattoo umbrella "
    "onion recollection successor corridor territory stainless alligator reservoir cotton "
    "saltiness interior loyalty rarely"
)
"""Common words in which letters come several times."""
