"""Builds the tiny model's tokenizer: one token for each word of the built-in prompts, and for each
other character.

WordPiece with an empty continuation prefix takes the longest match in one vocabulary. A space
belongs to the word, digit or sign after it, as in the tokenizers of large models. Digits and the
symbols of a row are always single tokens.
"""

from __future__ import annotations

import json
import random
import re
import string
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from eyechart.harness.satellites.training.examples import LATER, example_of, tasks
from eyechart.harness.spec import Condition
from eyechart.harness.task.catalogue import Task
from eyechart.providers.tiny.tokenizer import PIECE

SPECIAL = ("<unk>", "<bos>", "<eos>", "<user>", "<assistant>")
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}{{ '<assistant>' + message['content'] + eos_token }}"
    "{% else %}{{ '<user>' + message['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)
ROW_LETTERS = frozenset("abxy")
"""A text of only these letters is a row, not a word."""
_DRAWS = 200
"""Examples from which the words of one condition are collected."""


def vocabulary() -> list[str]:
    """All tokens: special tokens, printable ASCII with and without a space before it, words."""
    words: set[str] = set()
    for task in tasks().values():
        defaults = task.spec.default_conditions().items()
        usual = Condition((axis, names[0]) for axis, names in defaults)
        for axis, known in task.spec.axes.items():
            for value in known.values if axis not in LATER else ():
                words |= _words(task, usual.with_value(axis, value))
        words |= _words(task, usual)
    printable = string.digits + string.ascii_letters + string.punctuation
    singles = [" ", "\n", *printable, *(f" {character}" for character in printable)]
    return [*SPECIAL, *singles, *sorted(words - set(singles))]


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
    vocab = {token: number for number, token in enumerate(vocabulary())}
    tokenizer = Tokenizer(
        models.WordPiece(
            vocab=vocab,
            unk_token="<unk>",  # noqa: S106  # a token of text
            continuing_subword_prefix="",
            max_input_chars_per_word=20,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    return tokenizer


def save(folder: Path, window: int) -> Tokenizer:
    """Writes `tokenizer.json` and `tokenizer_config.json` into `folder`; returns the tokenizer.

    `window` is the most tokens of prompt and reply together.
    """
    tokenizer = build()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "unk_token": "<unk>",
        "pad_token": "<eos>",
        "additional_special_tokens": ["<user>", "<assistant>"],
        "clean_up_tokenization_spaces": False,
        "model_max_length": window,
        "chat_template": CHAT_TEMPLATE,
    }
    text = json.dumps(config, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    return tokenizer
