"""What a training is to do and how it ended, in the files of its folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from eyechart_lab.variants.study import Training
from eyechart_lab.variants.variant import Variant

ORDER, ENDED, LOSSES, WEIGHTS = "training.json", "ended.json", "loss.csv", "weights"
CHECKPOINT = "checkpoint.pt"
"""Files of a training: what is to be done, how it ended, the curve of the loss, the model, and the
state of a training that is not at its end."""
TRAINED, DIVERGED = "trained", "diverged"
"""How a training ends."""


class TrainingOrder(BaseModel):
    """All that determines a training, and where its examples are: the content of `training.json`.

    Paths are relative to the folder of the training.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    of: Literal["study", "embedded"] = "study"
    """A model of a study, or the embedded one, whose examples are drawn as it is trained."""
    variant: Variant
    training: Training
    seed: int
    examples: str = ""
    tokenizer: str


class TrainingEnd(BaseModel):
    """How a training ended: the content of `ended.json`."""

    model_config = ConfigDict(frozen=True)
    how: str
    """`trained` or `diverged`."""
    step: int
    """The last step."""
    loss: float | None
    """The mean loss of the last steps; `None` where it is not finite."""
    device: str = ""
    """The name of the device that took the last step."""


def ended(folder: Path) -> TrainingEnd | None:
    """How the training in a folder ended; `None` if it did not."""
    with suppress(OSError, ValueError):
        return TrainingEnd.model_validate_json((folder / ENDED).read_bytes())
    return None
