"""Changed distances of rotary positions in a finished model: dual chunk attention and ReRoPE. With
them no distance needs to be longer than in its training.

A query at place i and a key at place j are turned as at other places, by bands of pairs. Arrays are
of numpy or of torch. Letters in shape comments: S queries, T keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

_CHUNK = 0.75
"""Length of a chunk by that of the training."""


@dataclass(frozen=True, slots=True)
class Band:
    """Pairs of queries and keys that are turned as at other places than their own."""

    queries: Any
    """(…, S): the places that queries are turned as at."""
    keys: Any
    """(…, T): those of keys."""
    where: Any
    """(…, S, T): which pairs these are."""


class Distances(Protocol):
    """What changes the distances of a finished model."""

    def bands(self, queries: Any, keys: Any) -> list[Band]:
        """The pairs of queries at places (…, S) and keys at places (…, T) that do not keep their
        distance. No pair is in two bands.
        """


@dataclass(frozen=True, slots=True)
class Chunks:
    """Dual chunk attention; An et al. 2024, arXiv 2402.17463, section 3.

    With c tokens in the training, a chunk has s = 3c/4 of them. A key at place j is turned as at
    j mod s. A query at place i is turned as at i mod s for the keys of its own chunk, so these keep
    their distance; as at min(i mod s + s, c - 1) for those of the chunk before it, of which the
    next c - s keep their distance; and as at c - 1 for those of all earlier chunks.
    """

    trained: int
    """c."""

    @property
    def size(self) -> int:
        """S."""
        return max(1, int(_CHUNK * self.trained))

    def bands(self, queries: Any, keys: Any) -> list[Band]:
        """The chunk before, and all earlier ones."""
        own, longest = queries % self.size, self.trained - 1
        apart = (queries // self.size)[..., None] - (keys // self.size)[..., None, :]
        inside = keys % self.size
        return [
            Band((own + self.size).clip(max=longest), inside, apart == 1),
            Band(own * 0 + longest, inside, apart > 1),
        ]


@dataclass(frozen=True, slots=True)
class Rectified:
    """ReRoPE: a distance of w or more is w; Su 2023, kexue.fm/archives/9708. The leaky one has
    w + (i - j - w) / k there.
    """

    window: float
    """w."""
    slower: float = math.inf
    """k; infinite in ReRoPE."""

    def bands(self, queries: Any, keys: Any) -> list[Band]:
        """All pairs that are w or more apart."""
        far = queries[..., None] - keys[..., None, :] >= self.window
        start = self.window - self.window / self.slower
        return [Band(queries / self.slower + start, keys / self.slower, far)]
