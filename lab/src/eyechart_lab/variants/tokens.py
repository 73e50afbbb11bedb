"""The tokenizer of a study: a token for each word of its prompts, and for each other character.

WordPiece with an empty continuation prefix takes the longest match in one vocabulary. A space
belongs to the word, digit or sign after it, as in the tokenizers of large models. Digits are single
tokens, so a count that no training had can be said. The letters of a row are single tokens too,
unless a study merges them.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from eyechart.harness.plan import Plan
from eyechart.harness.spec import Condition, write_row
from eyechart.providers.base import SetupError
from eyechart.providers.tiny.tokenizer import PIECE
from eyechart_lab.extras import install
from eyechart_lab.variants.choices import ExtraTokens, Memory, Pause
from eyechart_lab.variants.mechanism import Mechanism

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL = ("<unk>", "<bos>", "<eos>", "<user>", "<assistant>")
"""The special tokens; a token's id is its place."""
BOS, EOS = SPECIAL.index("<bos>"), SPECIAL.index("<eos>")
"""The ids with which a chat begins and a reply ends; the latter also fills short rows."""
_BEGIN, _ANSWER = "{{ bos_token }}", "{{ '<assistant>' }}"
"""Where a chat begins, and where a reply is asked for."""
CHAT_TEMPLATE = (
    f"{_BEGIN}"
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}{{ '<assistant>' + message['content'] + eos_token }}"
    "{% else %}{{ '<user>' + message['content'] }}{% endif %}"
    "{% endfor %}"
    f"{{% if add_generation_prompt %}}{_ANSWER}{{% endif %}}"
)
_DRAWS = 100
"""Examples from which the words of one condition are collected."""
_LENGTH = 12
"""Symbols in their rows, or the shortest trained length if that is more."""
_LONGEST_PIECE = 20
_PRINTABLE = string.digits + string.ascii_letters + string.punctuation
SINGLES = (" ", "\n", *_PRINTABLE, *(f" {character}" for character in _PRINTABLE))
"""Printable ASCII, with and without a space before it."""


def opened(prompt: str) -> str:
    """A prompt as the model sees it, up to the reply."""
    return f"<bos><user>{prompt}<assistant>"


def vocabulary(plans: Sequence[Plan], shortest: Sequence[int], merged: int) -> list[str]:
    """All tokens: the special ones, printable ASCII with and without a space before it, the words
    of the prompts, and rows of up to `merged` of their letters. `shortest` has the shortest trained
    length of each plan.
    """
    words: set[str] = set()
    letters: set[str] = set()
    for plan, length in zip(plans, shortest, strict=True):
        for condition in plan.conditions:
            found, of_row = _words(plan, condition, max(length, _LENGTH))
            words |= found
            letters |= of_row
    runs = {
        "".join(run)
        for size in range(2, merged + 1)
        for run in product(sorted(letters), repeat=size)
    }
    return [*SPECIAL, *SINGLES, *sorted((words | runs) - set(SINGLES))]


def _words(plan: Plan, condition: Condition, length: int) -> tuple[set[str], set[str]]:
    """The words around the rows of a condition, and those that are symbols; and the single letters
    that are symbols.
    """
    words, letters, task = set(), set(), plan.task
    separator = condition.get("separator")
    known = task.spec.axes["separator"].values if separator else {}
    for draw in range(_DRAWS):
        rng = random.Random(f"vocabulary|{task.name}|{draw}")
        item = task.draw(rng, condition, length, 0)
        row = write_row(item.symbols, known[separator] if separator else "")
        prompt = task.prompt(item, condition, length).replace(row, "\n")
        texts = [prompt, f"{task.spec.answer.first_phrase} {item.target}"]
        for text in (*texts, *(symbol for symbol in item.symbols if len(symbol) > 1)):
            words |= {piece for piece in re.findall(PIECE, text) if _is_word(piece)}
        letters |= {symbol for symbol in item.symbols if len(symbol) == 1 and symbol.isalpha()}
    return words, letters


def _is_word(piece: str) -> bool:
    """Whether a piece is a word; what is all capitals names a row and is spelled."""
    word = piece.strip()
    return len(word) > 1 and word.isalpha() and not word.isupper()


def build(vocabulary: Iterable[str]) -> Tokenizer:
    """The tokenizer of a vocabulary.

    Raises:
        SetupError: the package `tokenizers` is not installed.
    """
    try:
        from tokenizers import (  # noqa: PLC0415  an extra
            AddedToken,
            Regex,
            Tokenizer,
            decoders,
            models,
            pre_tokenizers,
        )
    except ImportError as error:
        raise SetupError(f"a laboratory study needs tokenizers: {install('train')}") from error
    tokenizer = Tokenizer(
        models.WordPiece(
            {token: number for number, token in enumerate(vocabulary)},
            unk_token=SPECIAL[0],
            continuing_subword_prefix="",
            max_input_chars_per_word=_LONGEST_PIECE,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    return tokenizer


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a file of `Tokenizer.to_str`."""
    from tokenizers import Tokenizer  # noqa: PLC0415  of an extra

    return Tokenizer.from_file(str(path))


def widened(tokenizer: Tokenizer, tokens: Mechanism) -> Tokenizer:
    """The tokenizer of a variant, which has a token more for each of its extra `tokens`."""
    if not isinstance(tokens, ExtraTokens):
        return tokenizer
    from tokenizers import AddedToken, Tokenizer  # noqa: PLC0415  of an extra

    wide = Tokenizer.from_str(tokenizer.to_str())
    names = dict.fromkeys(tokens.names)
    wide.add_special_tokens([AddedToken(name, normalized=False) for name in names])
    return wide


def ids_of(tokenizer: Tokenizer, tokens: Mechanism) -> list[int]:
    """The ids that a variant's tokenizer gives to its extra `tokens`, in the same order."""
    vocabulary = tokenizer.get_vocab()
    return [vocabulary[name] for name in tokens.names] if isinstance(tokens, ExtraTokens) else []


def template_of(tokens: Mechanism) -> str:
    """The chat template of a variant, with its extra `tokens` where the training has them."""
    template = CHAT_TEMPLATE
    if isinstance(tokens, Memory):
        template = template.replace(_BEGIN, f"{_BEGIN}{''.join(tokens.names)}")
    if isinstance(tokens, Pause):
        template = template.replace(_ANSWER, f"{_ANSWER}{''.join(tokens.names)}")
    return template


def save(tokenizer: Tokenizer, folder: Path, window: int, tokens: Mechanism) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json` into `folder`; `window` is the most
    tokens of prompt and reply together, and `tokens` are the extra ones of a variant.
    """
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[BOS],
        "eos_token": SPECIAL[EOS],
        "unk_token": SPECIAL[0],
        "pad_token": SPECIAL[EOS],
        "additional_special_tokens": list(SPECIAL[EOS + 1 :]),
        "clean_up_tokenization_spaces": False,
        "model_max_length": window,
        "chat_template": template_of(tokens),
    }
    text = json.dumps(config, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
