"""Over-squashing: how much the answer depends on each symbol of the row.

Barbero et al. 2024, arXiv 2406.04267, Theorem 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.inside import Array
from eyechart_lab.probe.reading import SampleReading

TENTHS = 10


def along_the_row(slopes: Array, ends: Sequence[int]) -> Iterator[SampleReading]:
    """Readings of the derivative (T, C) of the answer's logit; `ends` are the places of the tokens
    that end a symbol, in order.
    """
    norms = np.linalg.norm(slopes[list(ends)].astype(float), axis=1)
    yield SampleReading("slope", float(np.linalg.norm(slopes.astype(float))))
    yield SampleReading("row_slope", float(np.linalg.norm(norms)))
    total = norms.sum()
    if not total > 0:
        return
    tenths = _tenths(norms / total)
    yield SampleReading("first_tenth", float(tenths[0]))
    yield SampleReading("last_tenth", float(tenths[-1]))
    if tenths[-1] > 0:
        yield SampleReading("first_to_last", float(tenths[0] / tenths[-1]))
    for number, share in enumerate(tenths, 1):
        yield SampleReading(f"tenth_{number:02}", float(share * TENTHS))


def _tenths(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """(10,): what each tenth of a row has of the shares of its symbols. A symbol that two tenths
    meet in belongs to both in part, so that equal shares give 0.1 at any length.
    """
    ends = np.linspace(0, len(shares), TENTHS + 1)
    upto = np.interp(ends, np.arange(len(shares) + 1), np.append(0, shares.cumsum()))
    tenths: NDArray[np.float64] = np.diff(upto)
    return tenths


def largest_slope(
    embedded: Array,
    logits_of: Callable[[Array], Array],
    gradients: Callable[[Array], Array],
    *,
    rounds: int = 8,
) -> float:
    """The largest singular value of the derivative of all logits by all embeddings (T, C), by
    power iteration. It is a lower bound of the Lipschitz constant near the prompt.

    The product of the derivative with a direction is computed from differences, that of its
    transpose with weights (V,) by `gradients`. From below, since the iteration is cut off.
    """
    draw = np.random.default_rng(0)
    direction: NDArray[np.float64] = draw.normal(size=embedded.shape)
    step = 1e-2 * float(np.sqrt(np.mean(np.square(embedded, dtype=float)))) * direction.size**0.5
    found = 0.0
    for _ in range(rounds):
        direction /= np.linalg.norm(direction)
        ahead, behind = (
            logits_of((embedded + sign * step * direction).astype(np.float32)).astype(float)
            for sign in (1, -1)
        )
        moved = ahead - behind
        size = np.linalg.norm(moved)
        if not size > 0:
            return 0.0
        direction = gradients((moved / size).astype(np.float32)).astype(float)
        found = float(np.linalg.norm(direction))
    return found
