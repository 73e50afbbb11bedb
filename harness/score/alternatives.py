"""Wrong answers to choose between: numbers nearby, and texts with one change.

Each function yields candidates without end or until it has none left; `AnswerType.options` keeps
those that differ from the right answer and from one another.
"""

from __future__ import annotations

import re
import string
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

_STEPS = (1, 2, 5, 10)
_ROUND = (10, 100)
_FARTHEST = 200
_TRIES = 100
"""Changes that are drawn before there are no more; of a text with few, most are drawn twice."""
_WORD = re.compile(r"\S+")
_ALIKE = (string.digits, string.ascii_lowercase, string.ascii_uppercase)


def numbers_nearby(number: int) -> Iterator[int]:
    """`number` ± 1, 2, 5 and 10, the round numbers around it, and then others from near to far.
    None of them is negative, unless `number` is.
    """
    for other in _numbers(number):
        if other >= 0 or number < 0:
            yield other


def _numbers(number: int) -> Iterator[int]:
    for step in _STEPS:
        yield from (number + step, number - step)
    for base in _ROUND:
        yield from ((number - 1) // base * base, (number // base + 1) * base)
    for step in range(3, _FARTHEST):
        yield from (number + step, number - step)


def decimals_nearby(text: str, least: float) -> Iterator[str]:
    """Numbers around the decimal `text`, with as many decimals, more than `least` apart."""
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # it is finite
    place = next(place for place in count(min(exponent, 0)) if Decimal(10) ** place > least)
    unit = Decimal(10) ** place
    for step in (*_STEPS, *range(3, _FARTHEST)):
        yield from (f"{number + step * unit:f}", f"{number - step * unit:f}")


def changed_texts(text: str, rng: Random) -> Iterator[str]:
    """`text` with one word replaced by another of its words, or with two neighbours exchanged;
    where all its words are the same, with one character replaced. White space stays as it is.
    """
    spans = [match.span() for match in _WORD.finditer(text)]
    words = [text[start:end] for start, end in spans]
    if len(set(words)) == 1:
        yield from changed_characters(text, rng)
    for changed in changed_items(words, rng):
        yield _with_words(text, spans, changed)


def changed_items(items: Sequence[str], rng: Random) -> Iterator[list[str]]:
    """`items` with one of them replaced by another of them, or with two neighbours exchanged."""
    kinds = sorted(set(items))
    for _ in range(_TRIES):
        place, changed = rng.randrange(len(items)), list(items)
        if rng.randrange(2):
            changed[place] = rng.choice(kinds)
        else:
            after = (place + 1) % len(items)
            changed[place], changed[after] = changed[after], changed[place]
        yield changed


def changed_characters(text: str, rng: Random) -> Iterator[str]:
    """`text` with one letter or digit replaced by another of its kind."""
    places = [(place, alike) for place, one in enumerate(text) for alike in _ALIKE if one in alike]
    for _ in range(_TRIES if places else 0):
        place, alike = rng.choice(places)
        yield f"{text[:place]}{rng.choice(alike)}{text[place + 1 :]}"


def _with_words(text: str, spans: Sequence[tuple[int, int]], words: Sequence[str]) -> str:
    parts, at = [], 0
    for (start, end), word in zip(spans, words, strict=True):
        parts += [text[at:start], word]
        at = end
    return "".join((*parts, text[at:]))
