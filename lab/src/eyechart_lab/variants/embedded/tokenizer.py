"""Builds the tiny model's tokenizer: one token for each word of the built-in prompts, and for each
other character.

WordPiece with an empty continuation prefix takes the longest match in one vocabulary. A space
belongs to the word, digit or sign after it, as in the tokenizers of large models. Digits and the
symbols of a row are always single tokens.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import TYPE_CHECKING

from eyechart import Task
from eyechart.harness.spec import Condition
from eyechart.providers.tiny.chat import ROW_LETTERS
from eyechart.providers.tiny.tokenizer import PIECE
from eyechart_lab.variants import tokens
from eyechart_lab.variants.embedded.examples import LATER, example_of, tasks

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_DRAWS = 200
"""Examples from which the words of one condition are collected."""


@cache
def vocabulary() -> tuple[str, ...]:
    """All tokens: special tokens, printable ASCII with and without a space before it, words."""
    words: set[str] = set()
    for task in tasks().values():
        defaults = task.spec.default_conditions().items()
        usual = Condition((axis, names[0]) for axis, names in defaults)
        for axis, known in task.spec.axes.items():
            for value in known.values if axis not in LATER else ():
                words |= _words(task, usual.with_value(axis, value))
        words |= _words(task, usual)
    return (*tokens.SPECIAL, *tokens.SINGLES, *sorted(words - set(tokens.SINGLES)))


def _words(task: Task, condition: Condition) -> set[str]:
    """The words in examples of a task under a condition."""
    words = set()
    for draw in range(_DRAWS):
        drawn = example_of(random.Random(f"vocabulary|{draw}"), task, condition, 30)
        for piece in re.findall(PIECE, f"{drawn.prompt}\n{drawn.reply}"):
            letters = set(piece.strip())
            is_word = piece.strip().isalpha() and len(piece.strip()) > 1
            if is_word and not (letters <= ROW_LETTERS or piece.strip().isupper()):
                words.add(piece)
    return words


def build() -> Tokenizer:
    """Builds the tokenizer; the result is always the same."""
    return tokens.build(vocabulary())
