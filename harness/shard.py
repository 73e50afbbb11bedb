"""A shard of a run: whole rows, so that several commands can ask one run between them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eyechart.harness.errors import UsageError

_SHARD = re.compile(r"([0-9]{1,7})/([0-9]{1,7})")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """Every `of`-th row. A row is an index with all its lengths and conditions, so rows stay nested
    across lengths and paired across conditions.
    """

    number: int
    """From 1 to `of`."""
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def rows(self, size: int) -> range:
        """Its indexes below `size`."""
        return range(self.number - 1, size, self.of)

    def has(self, index: int) -> bool:
        """Whether the row is in it."""
        return index % self.of == self.number - 1

    @property
    def is_whole(self) -> bool:
        """Whether it has all rows."""
        return self.of == 1

    @classmethod
    def read(cls, text: str) -> Shard:
        """The shard that `3/16` names; raises `UsageError` for any other text."""
        match = _SHARD.fullmatch(text)
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not shard.of:
            raise UsageError(
                "--shard is a number from 1, a slash and how many shards there are, as 3/16, not "
                f"{text!r}"
            )
        if not 1 <= shard.number <= shard.of:
            raise UsageError(f"--shard {text!r}: shards are numbered from 1 to {shard.of}")
        return shard


WHOLE = Shard(1, 1)
"""All rows."""
