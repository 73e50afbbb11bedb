"""Rotary position embeddings without a model: how similarity changes with distance, and which base
a context needs.

Rotary positions turn pair i of a query and of a key by the angle position · base^(-2i/d), where d
is the width of a head (Su et al. 2021, arXiv 2104.09864). So for a query and a key that are equal
the score depends on their distance m alone: it is proportional to

    B(m) = sum over i < d/2 of cos(m · base^(-2i/d)).

B(m) is also what is left of a score, on average over Gaussian queries, when that of a random key is
subtracted from that of a similar key. Where it is negative, a random key gets more weight than a
similar one (Men et al. 2024, arXiv 2405.14591).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

SEARCHED = 1 << 20
"""Distances below this one are searched for a negative similarity."""
STEP = 1.001
"""Ratio of neighbouring bases in the search for the least one."""
_BASES = (2.0, 1e12)
"""The range of that search."""
_FIRST_BLOCK, _LARGEST_BLOCK = 1 << 10, 1 << 15
_CHUNK = 256
"""Bases that are looked at together."""
_STRETCH = 128
"""Neighbouring distances of which the worst one is looked at."""
_DRAWS = 0
"""Seed of the drawn query and key."""

Floats = NDArray[np.float64]


def frequencies(base: float, head_dim: int) -> Floats:
    """(d/2,): radians by which one step of distance turns each pair."""
    angles: Floats = base ** (-np.arange(0, head_dim, 2) / head_dim)
    return angles


def similarity(base: float, head_dim: int, distances: Sequence[int] | NDArray[np.intp]) -> Floats:
    """B(m) / (d/2) for each distance m: 1 at distance 0."""
    turned = np.cos(np.outer(distances, frequencies(base, head_dim)))
    mean: Floats = turned.mean(axis=1)
    return mean


def drawn_similarity(
    base: float, head_dim: int, distances: Sequence[int] | NDArray[np.intp]
) -> Floats:
    """The same for a query and a key with Gaussian numbers, drawn once with a fixed seed: their
    product over d. It does not decay (Barbero et al. 2025, arXiv 2410.06205).
    """
    rng = np.random.default_rng(_DRAWS)
    query, key = rng.standard_normal((2, head_dim // 2, 2)) @ np.array([1, 1j])
    turned = np.exp(1j * np.outer(distances, frequencies(base, head_dim)))
    product: Floats = (turned @ (query * key.conj())).real / head_dim
    return product


def decay_bound(base: float, head_dim: int, distances: Sequence[int] | NDArray[np.intp]) -> Floats:
    """The upper bound of scores that Su et al. 2021 draw as the decay of RoPE (section 3.4.3), as
    a share of that at distance 0.

    With h_i the product of pair i of a query and of a key as complex numbers, a score is the real
    part of sum over i < d/2 of h_i exp(i m base^(-2i/d)). Its size is at most max |h_(i+1) - h_i|
    times the sum over 0 < j <= d/2 of |S_j|, where S_j is the sum of the first j exponentials and
    h_(d/2) is 0. That sum is drawn: at distance 0 it is d/4 (d/2 + 1).
    """
    turned = np.exp(1j * np.outer(distances, frequencies(base, head_dim)))
    sums: Floats = np.abs(turned.cumsum(axis=1)).sum(axis=1)
    return sums / (head_dim / 4 * (head_dim / 2 + 1))


def first_negative(base: float, head_dim: int, searched: int = SEARCHED) -> int | None:
    """The least distance below `searched` at which B is negative, `None` if there is none.

    Distances in a context of n tokens go to n - 1, so with this base B is nowhere negative in
    contexts of up to this many tokens.
    """
    for start, values in _blocks(base, head_dim, searched):
        negative = np.flatnonzero(values < 0)
        if len(negative):
            return start + int(negative[0])
    return None


def _blocks(base: float, head_dim: int, searched: int) -> Iterator[tuple[int, Floats]]:
    """B at all distances below `searched` in blocks, each with the distance where it starts.

    cos((s + j) w) is taken apart into cosines and sines of s w and j w, so that a block is a
    product of two matrices.
    """
    angles = frequencies(base, head_dim)
    near = np.outer(angles, np.arange(_STRETCH))  # (d/2, _STRETCH)
    near = np.concatenate([np.cos(near), -np.sin(near)])
    start, size = 0, _FIRST_BLOCK
    while start < searched:
        far = np.outer(np.arange(start, start + size, _STRETCH), angles)
        values = np.concatenate([np.cos(far), np.sin(far)], axis=1) @ near
        yield start, values.ravel()[: searched - start]
        start, size = start + size, min(2 * size, _LARGEST_BLOCK)


def _worst(base: float, head_dim: int, searched: int) -> Iterator[int]:
    """The distance at which B is least in each stretch of distances, where it is negative there."""
    for start, values in _blocks(base, head_dim, searched):
        for at in range(0, len(values), _STRETCH):
            place = at + int(values[at : at + _STRETCH].argmin())
            if values[place] < 0:
                yield start + place


def least_base(context: int, head_dim: int) -> float | None:
    """The least base with which B is nowhere negative in a context of `context` tokens; `None` if
    no base from 2 to 1e12 has this.

    All bases of a grid with the ratio `STEP` are tried from below. A larger base can be worse, so a
    bisection would not find the least one. Neighbouring bases fail at about the same distances, so
    those of one base in each chunk are tried first on the others.
    """
    low, high = _BASES
    exponents = np.arange(0, head_dim, 2) / head_dim
    count = int(np.log(high / low) / np.log(STEP)) + 1
    for start in range(0, count, _CHUNK):
        bases = low * STEP ** np.arange(start, min(count, start + _CHUNK), dtype=np.float64)
        turns = bases[:, None] ** -exponents  # (bases, d/2)
        left = np.ones(len(bases), bool)
        tried = len(bases) // 2
        while True:
            failing = [*_worst(float(bases[tried]), head_dim, context)]
            for distance in failing:
                left[left] = np.cos(distance * turns[left]).sum(axis=1) >= 0
            if not failing and tried == left.argmax():
                return float(bases[tried])
            left[tried] = not failing
            if not left.any():
                break
            tried = int(left.argmax())
    return None


def drawn_distances(longest: int) -> NDArray[np.intp]:
    """Distances of a curve from 0 to `longest`: all of the first ones, then ever wider apart."""
    spread = np.geomspace(1, max(longest, 1), 600).round().astype(np.intp)
    return np.unique(np.concatenate([[0], spread, [longest]]))
