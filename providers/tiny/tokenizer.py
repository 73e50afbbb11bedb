"""The tokenizer of the embedded model, without the package `tokenizers`.

It gives the same tokens as that package. Tokenizers of other models need the package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

PIECE = r" ?[A-Za-z]{1,16}| ?[0-9]| ?[^\sA-Za-z0-9]|\s"
"""A text is cut into these pieces, and each piece into the longest tokens."""
_BLANKS = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What `\\s` means in `PIECE` there; Python has four more."""
_PIECE = re.compile(
    PIECE.replace(r"[^\s", f"[^{_BLANKS}").replace(r"|\s", f"|[{_BLANKS}]"), re.DOTALL
)
_LARGEST = 100_000
"""Bytes of the file of such a tokenizer, at most."""
_REMEMBERED = 65_536
"""Pieces of which the tokens are kept."""
_PLAIN_TOKEN = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
_FORM = {
    "normalizer": None,
    "pre_tokenizer": {
        "type": "Split",
        "pattern": {"Regex": PIECE},
        "behavior": "Isolated",
        "invert": False,
    },
    "post_processor": None,
    "decoder": {"type": "Fuse"},
}
_MODEL = {"type": "WordPiece", "continuing_subword_prefix": "", "max_input_chars_per_word": 20}


@dataclass(frozen=True, slots=True)
class Encoding:
    """The tokens of a text."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    """The characters that each token stands for, as (start, end)."""


class PieceTokenizer:
    """Cuts a text into the longest tokens of a vocabulary."""

    def __init__(self, vocabulary: Mapping[str, int], special: Iterable[str], unknown: str) -> None:
        """Token -> id; the `special` tokens, which are found before all others, and the token of
        what no token has.
        """
        self._ids = dict(vocabulary)
        self._tokens = {number: token for token, number in self._ids.items()}
        self._special = frozenset(special)
        self._unknown = self._ids[unknown]
        self._cut = re.compile(f"({'|'.join(map(re.escape, sorted(self._special)))})")
        self._of_piece = lru_cache(maxsize=_REMEMBERED)(self._longest)

    @classmethod
    def read(cls, content: bytes) -> PieceTokenizer | None:
        """The tokenizer in a `tokenizer.json`; `None` if it has another form or none."""
        if len(content) > _LARGEST:
            return None
        try:
            read = json.loads(content)
            model, added = read["model"], read["added_tokens"]
            special = {one["content"]: one["id"] for one in added}
            vocabulary, unknown = model["vocab"], model["unk_token"]
            is_one = (
                _FORM.items() <= read.items()
                and _MODEL.items() <= model.items()
                and all(_PLAIN_TOKEN.items() <= one.items() and one["special"] for one in added)
                and special.items() <= vocabulary.items()
                and all(isinstance(number, int) for number in vocabulary.values())
                and unknown in special
                and "" not in vocabulary
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return cls(vocabulary, special, unknown) if is_one else None

    def get_vocab(self) -> Mapping[str, int]:
        """Token -> id."""
        return self._ids

    def encode(self, text: str, *, add_special_tokens: bool = True) -> Encoding:  # noqa: ARG002  there are none
        """The tokens of a text; raises `TypeError` for a lone surrogate, which is no character."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise TypeError(str(error)) from error
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        start = 0
        for part in self._cut.split(text):
            for piece in (part,) if part in self._special else _PIECE.findall(part):
                for number, length in self._of_piece(piece):
                    ids.append(number)
                    offsets.append((start, start + length))
                    start += length
        return Encoding(ids, offsets)

    def encode_batch_fast(
        self, texts: Sequence[str], *, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """The tokens of each text."""
        return [self.encode(text, add_special_tokens=add_special_tokens) for text in texts]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """The text of tokens."""
        tokens = (self._tokens.get(number, "") for number in ids)
        return "".join(
            token for token in tokens if not (skip_special_tokens and token in self._special)
        )

    def _longest(self, piece: str) -> tuple[tuple[int, int], ...]:
        """Id and length of each token of a piece; one unknown token where it cannot be cut so."""
        found = []
        start = 0
        while start < len(piece):
            ends = range(len(piece), start, -1)
            end = next((end for end in ends if piece[start:end] in self._ids), None)
            if end is None:
                return ((self._unknown, len(piece)),)
            found.append((self._ids[piece[start:end]], end - start))
            start = end
        return tuple(found)
