"""The tokens of a text with each of its options, from a server that says the tokens of a text.

Asked for each option, the server tokenizes the whole text eleven times. Only the end of a text
decides how an option behind it is tokenized, and most samples of a run end alike. So the text is
tokenized once, and its end with each option once for all samples. The first sample is tokenized in
both ways: where they differ, all samples are tokenized option by option.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

Tokenize: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[list[int] | None]]
"""The tokens of what a body of `/tokenize` has; `None` from servers that do not say them."""
_END = 64
"""Most characters of the end of a text, which is its last line: the answer phrase."""
_COMMON = 2
"""Tokens that the end alone and the end of the whole text must have in common."""
_KEPT = 100_000
"""Most texts whose tokens are kept."""


class OptionTokens:
    """Tokens of texts with options, as one server of one model says them."""

    def __init__(self, tokenize: Tokenize) -> None:
        self._tokenize = tokenize
        self._ends: dict[str, list[int]] = {}
        self._agrees: bool | None = None
        """Whether both ways gave the same tokens; `None` before they were compared."""
        self._comparing = asyncio.Lock()

    async def of(
        self, bodies: Sequence[Mapping[str, Any]], text: str, wholes: Sequence[str]
    ) -> list[list[int]] | None:
        """The tokens before the options, and those with each; `None` where the server says none.

        `bodies` are those of `/tokenize`; `text` and `wholes` are the same without what a chat
        template writes before them.
        """
        async with self._comparing if self._agrees is None else nullcontext():
            before = await self._tokenize(bodies[0])
            if before is None:
                return None
            quick = None if self._agrees is False else await self._by_end(before, text, wholes)
            if quick is not None and self._agrees:
                return quick
            each = [before]
            for body in bodies[1:]:
                tokens = await self._tokenize(body)
                if tokens is None:
                    return None
                each.append(tokens)
            if quick is not None:
                self._agrees = quick == each
            return each

    async def _by_end(
        self, before: list[int], text: str, wholes: Sequence[str]
    ) -> list[list[int]] | None:
        """The same from the end of the text; `None` where that says too little."""
        start = max(0, len(text) - _END, text.rfind("\n"))
        alone = await self._of_end(text[start:])
        if alone is None:
            return None
        common = _common_end(before, alone)
        if common < _COMMON:
            return None
        head = alone[: len(alone) - common]
        each = [before]
        for whole in wholes:
            end = await self._of_end(whole[start:])
            if end is None or end[: len(head)] != head:
                return None
            each.append([*before[: len(before) - common], *end[len(head) :]])
        return each

    async def _of_end(self, text: str) -> list[int] | None:
        known = self._ends.get(text)
        if known is None:
            known = await self._tokenize({"prompt": text, "add_special_tokens": False})
            if known is not None and len(self._ends) < _KEPT:
                self._ends[text] = known
        return known


def _common_end(one: Sequence[int], two: Sequence[int]) -> int:
    """How many of the last tokens of both are the same."""
    pairs = zip(reversed(one), reversed(two), strict=False)
    return next(
        (at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(two))
    )
