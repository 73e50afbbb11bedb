"""Rows of steps, pairs and keys, of which something is to be kept in mind."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from eyechart import Item

if TYPE_CHECKING:
    from random import Random

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
KEY_LETTERS = 6
LARGEST = 99
"""Values of the dictionary go from minus this to plus this."""


def _split(words: str) -> list[str]:
    return words.split()


def label(rng: Random) -> str:
    """A three-letter name for the row, so that the samples of a fixed row are different prompts."""
    return "".join(rng.choice(LETTERS) for _ in range(3))


def flip_flop(rng: Random, length: int, *, ignored: float) -> Item:
    """Steps on a memory of one bit: `set` writes it, `skip` does nothing, `read` shows it.

    The first step is `set`; of the others a share `ignored` is `skip`, and half of the rest each is
    `set` and `read`. The target is the bit after the last step.
    """
    name = label(rng)
    row, held = [], ""
    for place in range(length):
        kind, bit = rng.random(), rng.choice("01")
        if place and kind < ignored:
            row.append(f"skip {bit}")
        elif place and kind < (1 + ignored) / 2:
            row.append(f"read {held}")
        else:
            held = bit
            row.append(f"set {bit}")
    return Item(row, held, {"label": name})


def key_values(rng: Random, length: int, *, position: float, asked: int) -> Item:
    """Pairs of a key and a number; the target is the numbers of `asked` keys, or of all if there
    are fewer.

    The keys asked for are neighbours at `position` (0 start, 1 end); the question begins with one
    of them that is drawn, goes on to the last of them, and then has those before it.
    """
    turn = rng.random()
    pairs: dict[str, str] = {}
    while len(pairs) < length:
        key = "".join(rng.choices(LETTERS, k=KEY_LETTERS))
        number = rng.randrange(1_000, 10_000)
        pairs.setdefault(key, str(number))
    keys = list(pairs)
    asked = min(asked, length)
    first = round(position * (length - asked))
    wanted = keys[first : first + asked]
    begin = int(turn * asked)
    wanted = wanted[begin:] + wanted[:begin]
    row = [f"{key}: {number}" for key, number in pairs.items()]
    return Item(row, [pairs[key] for key in wanted], {"keys": wanted})


def running_sum(rng: Random, length: int, *, entries: int) -> Item:
    """Keys of a dictionary with `entries` words and whole numbers; the target is the sum of the
    numbers that the keys stand for.
    """
    row, dictionary = _words_with_values(rng, length, entries=entries)
    return Item(
        [word for word, _ in row], sum(value for _, value in row), {"dictionary": dictionary}
    )


def _words_with_values(
    rng: Random, length: int, *, entries: int
) -> tuple[list[tuple[str, int]], list[str]]:
    """Words of a dictionary, each with its value; and the lines of the dictionary."""
    words = rng.sample(WORDS, len(WORDS))
    values = {word: rng.randint(-LARGEST, LARGEST) for word in words}
    known = words[:entries]
    row = [known[int(rng.random() * len(known))] for _ in range(length)]
    return [(word, values[word]) for word in row], [f"{word}: {values[word]}" for word in known]


def running_sum_in_turns(rng: Random, length: int, *, entries: int, keys: int) -> Item:
    """The same with `keys` words in each of `length` turns: a symbol is the words of a turn, and
    the target of a turn the sum so far.
    """
    row, dictionary = _words_with_values(rng, length * keys, entries=entries)
    starts = range(0, length * keys, keys)
    turns = [", ".join(word for word, _ in row[start : start + keys]) for start in starts]
    sums = list(accumulate(sum(value for _, value in row[s : s + keys]) for s in starts))
    return Item(turns, sums[-1], {"dictionary": dictionary}, turn_targets=sums[:-1])


WORDS = _split(
    "actor agent apple arrow badge baker beach berry blade bread brick broom brush cabin camel "
    "candy chair chalk cheek chess child clock cloth cloud coach coast coral couch crane crown "
    "dance diary dress drill eagle earth fence ferry field flame floor flute forge fruit ghost "
    "giant glass globe glove goose grape grass guest honey horse hotel house jelly juice knife "
    "label ladle lemon linen maple medal melon money mouse ocean olive onion paint panda paper "
    "pearl piano pilot plane plate queen radio river robot salad scale sheep shelf shirt skirt "
    "spoon stone storm sugar table tiger torch train whale wheel"
)
"""A hundred words of five letters."""
