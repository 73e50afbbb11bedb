"""What must be known of a model before it is asked: `models.yaml`, the user's own over it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt

from providers.catalog.overridable import entries

USER_FILE = "EYECHART_MODELS"
"""Environment variable that names the user's own file."""


class Prices(BaseModel):
    """US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: NonNegativeFloat
    output: NonNegativeFloat
    """Of replies and of the thinking before them."""
    as_of: date
    """When the vendor asked this."""
    batch: Annotated[float, Field(gt=0, le=1)] | None = None
    """The share of them that the vendor's Batch API asks; `None` where that is not known."""

    def in_batch(self) -> Prices:
        """What a batch costs: the list price where no other is known."""
        share = 1.0 if self.batch is None else self.batch
        return self.model_copy(update={"input": self.input * share, "output": self.output * share})


class ModelFacts(BaseModel):
    """One entry."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reasoning: bool = False
    """It thinks before it answers: it takes no temperature and needs room to think."""
    think_tokens: PositiveInt = 8192
    """That room, on top of the reply's own budget."""
    effort: str | None = None
    """Sent as `reasoning_effort`."""
    window: PositiveInt | None = None
    """Most tokens of prompt and reply together."""
    prices: Prices | None = None

    @property
    def room_to_think(self) -> int:
        """Tokens; 0 where it does not."""
        return self.think_tokens if self.reasoning else 0


def model_facts(label: str, environ: Mapping[str, str] = os.environ) -> ModelFacts:
    """The entry of `provider/model`: its own, else the longest that ends with `*` and fits."""
    known = entries("models.yaml", USER_FILE, ModelFacts, environ)
    if label in known:
        return known[label]
    fitting = [name for name in known if name.endswith("*") and label.startswith(name[:-1])]
    return known[max(fitting, key=len)] if fitting else ModelFacts()
