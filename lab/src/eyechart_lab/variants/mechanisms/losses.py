"""What a variant adds to the loss of the reply.

Letters in shape comments: B rows, T tokens, C width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from eyechart_lab.variants.choices import SeqVcr

_ETA = 1e-3
"""Added to a variance before its root, so that the root has a derivative at 0."""
_LEAST_ROWS = 2
"""Rows of which a covariance can be computed."""


def extra_loss(
    config: Any, hidden_states: Sequence[torch.Tensor], mask: torch.Tensor | None = None
) -> torch.Tensor:
    """What the variant of `config`, a `LabConfig`, adds to the loss; 0 if it adds nothing.

    `hidden_states`, (B, T, C) each, are those of the model: of the embeddings, and behind each
    layer. `mask` (B, T) is 1 for a token and 0 for padding; `None` for no padding.
    """
    variant = config.read
    if not isinstance(variant.loss, SeqVcr):
        return hidden_states[-1].new_zeros(())
    states = hidden_states[variant.loss.layer or variant.layers - 1]
    variance, covariance = seq_vcr(states, mask)
    return variant.loss.variance * variance + variant.loss.covariance * covariance


def seq_vcr(
    states: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The variance and the covariance term of states (B, T, C). With K_t the covariance of the
    states of all rows at place t, they are the means over t and i of max(0, 1 - sqrt(K_t[i, i] +
    0.001)), and of the sum over j other than i of K_t[i, j]²; Arefin et al. 2024, arXiv 2411.02344.

    The authors widen the states by a linear map to 2048 numbers before; here they are taken as they
    are, since they have few numbers. A place that fewer than two rows have counts for nothing.
    """
    is_token = states.new_ones(states.shape[:2]) if mask is None else mask.to(states)
    is_token, states = is_token.T[..., None], states.transpose(0, 1)
    rows = is_token.sum(dim=1, keepdim=True)  # (T, 1, 1)
    mean = (states * is_token).sum(dim=1, keepdim=True) / rows.clamp(min=1)
    apart = (states - mean) * is_token
    covariances = apart.transpose(1, 2) @ apart / (rows - 1).clamp(min=1)
    variances = covariances.diagonal(dim1=1, dim2=2)
    lacks = (1 - (variances + _ETA).sqrt()).clamp(min=0).mean(dim=1)
    beside = covariances.square().sum(dim=(1, 2)) - variances.square().sum(dim=1)
    counts = (rows[:, 0, 0] >= _LEAST_ROWS).to(states)
    places = counts.sum().clamp(min=1)
    variance, covariance = ((each * counts).sum() / places for each in (lacks, beside))
    return variance, covariance / states.shape[-1]
