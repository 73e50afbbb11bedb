"""Rows with one symbol or word that differs, to be copied."""

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


def odd_one_out(
    rng: Random,
    length: int,
    *,
    position: str,
    layout: str,
    odd: str,
    repeated: str,
    odd_symbols: str,
    block: int,
) -> Item:
    """A row of `repeated` with an odd symbol at the asked end; the target is the symbol there.

    `odd` is `zero` (always "0"), `random` (one of `odd_symbols`) or `absent` (the asked end holds
    `repeated`, the control against a model that has learned what the odd one out is). In the
    `interleaved` layout odd and repeated symbols alternate; in the `doubled` one they alternate up
    to the asked end, where the last one comes twice (`1010…100`). In the `repeated` layout a block
    of `block` symbols with the odd one at the asked end comes again and again, set off by spaces.
    """
    name = label(rng)
    drawn = rng.choice(odd_symbols)
    symbol = drawn if odd == "random" else "0"
    alternating = layout in ("interleaved", "doubled")
    period = 2 if alternating else block if layout == "repeated" else length
    if odd == "absent" and alternating:
        from_end = [symbol if place % 2 else repeated for place in range(length)]
    else:
        stands_out = repeated if odd == "absent" else symbol
        from_end = [repeated if place % period else stands_out for place in range(length)]
    if layout == "doubled":
        from_end = [from_end[0], *from_end][:length]
    target = from_end[0]
    row = from_end if position == "first" else from_end[::-1]
    if layout == "repeated":
        first_of_block = 0 if position == "first" else length % block
        row = [
            f" {written}" if place and place % block == first_of_block else written
            for place, written in enumerate(row)
        ]
    return Item(row, target, {"label": name})


def one_changed_word(
    rng: Random, length: int, *, position: float, pair: str, words: Sequence[Sequence[str]]
) -> Item:
    """One word over and over with a changed one at `position` (0 start, 1 end), to be copied.

    Both are the words of `pair`, or drawn from `words` if it is empty.
    """
    name = label(rng)
    drawn = rng.choice(words)
    word, changed = pair.split() or drawn
    row = [word] * length
    row[round(position * (length - 1))] = changed
    return Item(row, " ".join(row), {"label": name})
