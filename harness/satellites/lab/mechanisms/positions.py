"""Positions of a variant."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from eyechart.harness.satellites.lab.variant import Rope


class Rotary(nn.Module):
    """Rotary positions: pair i of a head, at places i and i + D/2, is turned by the angle position
    times base^(-2i/D); Su et al. 2021, arXiv 2104.09864.
    """

    rope_type = "default"

    def __init__(self, base: float, width: int) -> None:
        super().__init__()
        self.base, self.width = base, width
        self.attention_scaling = 1.0
        self.inv_freq: torch.Tensor
        self.register_buffer("inv_freq", self._frequencies(), persistent=False)

    @staticmethod
    def of(config: Any) -> Rotary | None:
        """That of a config's variant; `None` if it has other positions."""
        positions = config.read.positions
        return Rotary(positions.base, config.head_dim) if isinstance(positions, Rope) else None

    def _frequencies(self) -> torch.Tensor:
        return 1.0 / self.base ** (torch.arange(0, self.width, 2).float() / self.width)

    def reset(self) -> None:
        """Computes the frequencies where they were not read from a file."""
        self.inv_freq.copy_(self._frequencies())

    def forward(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, S, D) cosines and sines of positions (B, S)."""
        angles = positions[..., None].float() * self.inv_freq.float()
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos() * self.attention_scaling, angles.sin() * self.attention_scaling


def turned(states: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Queries or keys (B, H, S, D), turned."""
    cosines, sines = (one[:, None].to(states.dtype) for one in angles)
    first, second = states.chunk(2, dim=-1)
    return states * cosines + torch.cat([-second, first], dim=-1) * sines
