"""The delta rule: a recurrent layer with one matrix as its state, which can be read as weights.

Letters in shape comments: B rows, H heads, P queries, T tokens, D width of a head, C width.
"""

from __future__ import annotations

import torch
from torch import nn

_NORM_EPSILON = 1e-5


class DeltaRule(nn.Module):
    """DeltaNet: the state of a head is S_t = S_(t-1) (I - β k kᵀ) + β v kᵀ, and S_t q is what it
    gives, divided by its root mean square; Yang et al. 2024, arXiv 2406.06484. β is the sigmoid of
    a linear map of the layer's states; q and k are of length 1, after SiLU.

    Written out from S_0 = 0 this is a sum of values with the weights
    (Q Kᵀ, lower triangle) (I + (diag(β) K Kᵀ, below the diagonal))⁻¹ diag(β), which are computed
    here. So a pass is a matrix, and kept keys and values are the state.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.strength = nn.Linear(width, heads, bias=False)
        self.norm = nn.RMSNorm(width // heads, eps=_NORM_EPSILON)

    def with_strength(
        self, states: torch.Tensor, queries: torch.Tensor, keys: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, H, T, D + 1) each: keys with β as their last number, so that it is kept with them,
        and queries with 0 there.
        """
        strength = torch.sigmoid(self.strength(states)).transpose(1, 2)[..., None]
        return nn.functional.pad(queries, (0, 1)), torch.cat([keys, strength], dim=-1)

    @staticmethod
    def weights(
        queries: torch.Tensor, keys: torch.Tensor, seen: torch.Tensor, is_token: torch.Tensor
    ) -> torch.Tensor:
        """(B, H, P, T): weights of queries (B, H, P, D + 1) on keys (B, H, T, D + 1), of which each
        query sees some (B, 1, P, T). What is no token (B, T) changes no state.
        """
        mine, its = (
            nn.functional.normalize(nn.functional.silu(one[..., :-1].float()), dim=-1)
            for one in (queries, keys)
        )
        strength = keys[..., -1].float() * is_token[:, None]
        among = (its @ its.transpose(-1, -2) * strength[..., None]).tril(-1)
        written = torch.linalg.solve_triangular(
            among, torch.diag_embed(strength), upper=False, unitriangular=True
        )
        return (mine @ its.transpose(-1, -2)).masked_fill(~seen, 0) @ written

    def scaled(self, mixed: torch.Tensor) -> torch.Tensor:
        """What heads give (B, P, H, D), divided by its root mean square."""
        normed: torch.Tensor = self.norm(mixed)
        return normed
