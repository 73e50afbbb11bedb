"""Queries and keys of a Hugging Face model that are turned a second time: dual chunk attention,
ReRoPE and dynamic NTK change by which angles a pair of them is turned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from eyechart.providers.base import SetupError
from eyechart_lab.probe.distances import Band
from eyechart_lab.probe.inside import Array, Inside, Positions, Wants, Watcher
from eyechart_lab.probe.intervention import Intervention

_TRIED = 3
"""Places at which a model's rotary positions are tried."""


@dataclass(frozen=True, slots=True)
class SecondRotation:
    """How a change turns queries and keys a second time. Pairs stand half of the turned width
    apart, which are the first numbers of a head.
    """

    change: Intervention
    base: float
    """Of the model's rotary positions."""
    width: int
    """Numbers of a head that are turned."""
    window: int
    """Tokens of the training."""

    def turns(self, at: Positions, tokens: int) -> Iterator[tuple[Any, Any, Any]]:
        """By which angles queries at the places `at`, (P, width / 2), and all keys, (T, width / 2),
        are turned again in a pass of so many tokens, and for which pairs, (P, T).
        """
        was = self.change.frequencies(self.base, self.width, self.window)
        now = self.change.frequencies(self.base, self.width, self.window, tokens)
        keys = np.arange(tokens)
        bands = [] if self.change.distances is None else self.change.distances.bands(at, keys)
        if (now != was).any():
            bands.insert(0, Band(at, keys, np.full((len(at), tokens), fill_value=True)))
        for band in bands:
            if band.where.any():
                yield (
                    np.outer(band.queries, now) - np.outer(at, was),
                    np.outer(band.keys, now) - np.outer(keys, was),
                    band.where,
                )


def turned_again(states: Any, angles: Any) -> Any:
    """Queries or keys (H, S, D), of which the first numbers are turned by angles (S, width / 2)."""
    half = angles.shape[-1]
    given = torch.from_numpy(angles).to(states.device)
    cosines, sines = (one.to(states.dtype) for one in (given.cos(), given.sin()))
    first, second, rest = states.split([half, half, states.shape[-1] - 2 * half], dim=-1)
    return torch.cat(
        [first * cosines - second * sines, second * cosines + first * sines, rest], dim=-1
    )


class _FirstKeys(Watcher):
    """Keeps the keys of the first layer."""

    wants: Wants = {"projections": None}  # noqa: RUF012  as a watcher has it

    def __init__(self) -> None:
        self.found: Array = np.zeros((0, 0, 0), np.float32)
        """(T, K, D)."""

    def projections(
        self, layer: int, _at: Positions, _queries: Array, keys: Array, _values: Array
    ) -> None:
        if layer == 0:
            self.found = keys.copy()


def turning_of(inside: Inside, change: Intervention, window: int) -> SecondRotation | None:
    """How a change turns the queries and keys of a model again, whose training had `window` tokens;
    `None` if it does not.

    Raises:
        SetupError: the model turns other pairs of numbers than those that stand half of the turned
            width apart.
    """
    base, width = inside.anatomy.rotary_base, inside.anatomy.rotary_width
    if not change.turns_again or base is None:
        return None
    keys = _FirstKeys()
    inside.forward([1] * _TRIED, keys)
    first = torch.from_numpy(keys.found).transpose(0, 1)  # (K, places, D)
    angles = np.outer(np.arange(_TRIED), change.frequencies(base, width, window))
    expected = turned_again(first[:, :1].expand_as(first), angles)
    if not torch.allclose(first, expected, atol=1e-3 * float(first.abs().max())):
        raise SetupError(
            f"{inside.anatomy.architecture} turns its pairs of numbers in another order than "
            "Llama, so dual_chunk, ReRoPE and dynamic NTK cannot be applied to it"
        )
    return SecondRotation(change, base, width, window)
