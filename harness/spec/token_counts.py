"""Tokens of some prompts of a condition, counted by the model's own tokenizer, as a manifest has
them: `0:10:57 1:10:58`, each with its row (the index of its sample), length and tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

PATTERN = r"^(\d{1,9}:\d{1,9}:\d{1,12}( \d{1,9}:\d{1,9}:\d{1,12})*)?$"


class CountedPrompt(NamedTuple):
    """One prompt with its tokens."""

    row: int
    length: int
    tokens: int


def written(prompts: Iterable[CountedPrompt]) -> str:
    """The text in the manifest."""
    return " ".join(":".join(map(str, one)) for one in prompts)


def read(text: str) -> list[CountedPrompt]:
    """The prompts of a text in a manifest."""
    return [CountedPrompt(*map(int, one.split(":"))) for one in text.split()]


MOST_TOKENS = 10**12
"""The most tokens that a request and its reply can have together. A server that reports more has
counted wrong."""


def token_count(value: object) -> int | None:
    """`value` if it is a valid number of tokens, else `None`."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
