"""Stretching: a trained model with rotary positions, asked for longer rows.

Position interpolation, NTK and YaRN change frequencies, and are those of
`eyechart_lab.probe.intervention`, which names their sources. Dual chunk changes positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from eyechart_lab.probe.intervention import Intervention
from eyechart_lab.variants.mechanisms.places import Move
from eyechart_lab.variants.variant import DualChunk, Mechanism, Stretch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHUNK = 0.75
"""Length of a chunk by that of the training, as in the authors' code."""


def frequencies_of(
    stretch: Mechanism, base: float, width: int, trained_window: int
) -> tuple[NDArray[np.float32], float]:
    """(width / 2,): the angle of each pair from one position to the next, and the factor of cosines
    and sines. `trained_window` is the number of tokens of the longest text of the training.
    """
    change = Intervention()
    if isinstance(stretch, Stretch):
        change = Intervention(scaling=stretch.name, factor=stretch.factor)
    return change.frequencies(base, width, trained_window), change.rotary_size


class Chunks:
    """Dual chunk attention; An et al. 2024, arXiv 2402.17463. No distance is longer than in the
    training.

    With c tokens in the training, a chunk has s = 3c/4 of them. A key at place j is turned as at
    j mod s. A query at place i is turned as at i mod s for the keys of its own chunk; as at
    min(i mod s + s, c - 1) for those of the chunk before it, of which the next c - s keep their
    distance; and as at c - 1 for those of all earlier chunks.
    """

    def __init__(self, trained_window: int) -> None:
        self.longest = trained_window - 1
        self.size = max(1, int(_CHUNK * trained_window))

    @staticmethod
    def of(stretch: Mechanism, trained_window: int) -> Chunks | None:
        """Those of a variant; `None` if its positions are in no chunks."""
        return Chunks(trained_window) if isinstance(stretch, DualChunk) else None

    def own(self, places: torch.Tensor) -> torch.Tensor:
        """The position of a token in its own chunk."""
        return places % self.size

    def beyond(self, queries: torch.Tensor, keys: torch.Tensor) -> list[Move]:
        """The moves of queries at places (B, S), from where they are in their own chunk, for keys
        at places (B, T) in the chunk before, and in earlier ones.
        """
        own = self.own(queries)
        apart = queries[:, None, :, None] // self.size - keys[:, None, None] // self.size
        before = (own + self.size).clamp(max=self.longest)
        moves = [(before - own, apart == 1), (self.longest - own, apart > 1)]
        return [(by, where) for by, where in moves if bool(where.any())]
