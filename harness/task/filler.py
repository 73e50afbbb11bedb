"""Irrelevant text or blank space around a row: the filter `amid` of prompts.

Both fillers are made of units with a known number of tokens, so an amount needs no tokenizer.
The tokenizers of GPT-4o, GPT-4 and DeepSeek counted amounts of 1,000 to 100,000 tokens: they were
off by less than 1 %. DeepSeek counted blank space up to 8,000 tokens.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from random import Random

MOST_TOKENS = 4_000_000
BETWEEN = "between"
"""The depth that puts the filler between the lines of a row."""
_SENTENCE_TOKENS = 10
"""Nine words of at most five letters, and the full stop."""
_BLANK = "\n\n \n"
"""Blank lines that are one token, and n tokens n times in a row, unlike spaces or line ends."""


def _halves(*choices: str) -> tuple[str, ...]:
    """Half sentences: each combination of one choice from every list."""
    return tuple(" ".join(chosen) for chosen in product(*(one.split("|") for one in choices)))


_FIRST = _halves(
    "The",
    "old|young|tall|quiet|kind|proud|tired|brave|calm|busy",
    "baker|pilot|nurse|child|judge|guard|clerk|tutor|rider|miner",
    "finds|sells|wants|keeps|moves|hides|buys|needs|likes|holds",
)
_SECOND = _halves(
    "a",
    "small|green|round|plain|heavy|soft|warm|dark|cheap|clean",
    "boat|lamp|chair|stone|coat|table|spoon|cloth|wheel|plate",
    "near home.|in town.|by noon.|at night.|at dawn.|at sea.|by boat.|on deck.|at work.|by car.",
)


def amid(rows: str, tokens: int, depth: float | str, filler: str, key: str) -> str:
    """The lines of `rows` unchanged, amid `tokens` tokens of `filler`, which is `text` or `blank`.

    A `depth` of 0 puts the filler after the lines, 1 puts it before them, and a number between
    splits it. The depth `between` puts equal parts of it between the lines, or around one line. The
    text is drawn from `key` alone: more tokens continue fewer, and a depth only splits the text.

    Raises:
        ValueError: an argument is not as described.
    """
    if not 0 <= tokens <= MOST_TOKENS:
        msg = f"tokens go from 0 to {MOST_TOKENS:,}, not {tokens!r}"
        raise ValueError(msg)
    if filler not in ("text", "blank"):
        msg = f"a filler is 'text' or 'blank', not {filler!r}"
        raise ValueError(msg)
    lines = rows.strip("\n").split("\n")
    blank = filler == "blank"
    size = tokens if blank else round(tokens / _SENTENCE_TOKENS)
    ends = [round(share * size) for share in _shares(depth, len(lines))]
    parts: list[str] = []
    start = 0
    for end, line in zip(ends, [*lines, None], strict=True):
        if end > start:
            parts.append(_BLANK * (end - start) if blank else _text(key, size, start, end))
        parts += [] if line is None else [line]
        start = end
    return "\n".join([*parts, ""])


def _shares(depth: float | str, lines: int) -> list[float]:
    """The share of the filler that has been written before each line, and after the last one."""
    if depth == BETWEEN and lines > 1:
        return [line / (lines - 1) for line in range(lines)] + [1.0]
    before = 0.5 if depth == BETWEEN else depth
    if isinstance(before, str) or not 0 <= before <= 1:
        msg = f"a depth is {BETWEEN!r} or a number from 0 to 1, not {depth!r}"
        raise ValueError(msg)
    return [before] * lines + [1.0]


def _text(key: str, size: int, start: int, end: int) -> str:
    return " ".join(_sentences(key, size)[start:end])


@lru_cache(maxsize=1)  # neighbours in a plan share it, and the text of a million tokens is large
def _sentences(key: str, count: int) -> list[str]:
    """Sentences of `_SENTENCE_TOKENS`; each half has its own draws, so more continue fewer."""
    halves = (
        Random(f"filler|{number}|{key}").choices(known, k=count)
        for number, known in enumerate((_FIRST, _SECOND))
    )
    return [" ".join(sentence) for sentence in zip(*halves, strict=True)]
