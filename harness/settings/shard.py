"""A shard of a run: a share of its rows, so that several commands can ask one run together."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eyechart.harness.settings.checks import shown

_SHARD = re.compile(r"([0-9]{1,7})/([0-9]{1,7})")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """Every `of`-th row. A row is one sample index at all lengths and under all conditions."""

    number: int
    """From 1 to `of`."""
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def rows(self, size: int) -> range:
        """The indexes of the shard's rows, below `size`."""
        return range(self.number - 1, size, self.of)

    @property
    def is_whole(self) -> bool:
        return self.of == 1

    @classmethod
    def read(cls, text: str) -> Shard:
        """The shard that `3/16` names; raises `ValueError` for anything else."""
        match = _SHARD.fullmatch(text) if isinstance(text, str) else None
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not shard.of:
            raise ValueError(f"must be K/N, the K-th of N shards, such as 3/16, not {shown(text)}")
        if not 1 <= shard.number <= shard.of:
            raise ValueError(f"{text!r}: shards are numbered from 1 to {shard.of}")
        return shard


WHOLE = Shard(1, 1)
"""All rows."""
