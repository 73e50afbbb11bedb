"""What a variant adds to the loss of the reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def extra_loss(
    config: Any, hidden_states: Sequence[torch.Tensor], mask: torch.Tensor
) -> torch.Tensor:
    """What the variant of `config` adds to the loss; 0 if it adds nothing. `hidden_states` are
    those of the model, (B, S, C) each; `mask` (B, S) is 1 for a token and 0 for padding.
    """
    del config, mask
    return hidden_states[-1].new_zeros(())
