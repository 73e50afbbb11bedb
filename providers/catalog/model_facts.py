"""Facts about models that requests need, from `models.yaml` and from a file of the user's."""

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
    """For replies, with the thinking before them."""
    as_of: date
    """Date of the prices."""
    batch: Annotated[float, Field(gt=0, le=1)] | None = None
    """Price in the vendor's Batch API, as a share of these; `None` if unknown."""

    def in_batch(self) -> Prices:
        """The prices in a batch; the list prices if the share is unknown."""
        share = 1.0 if self.batch is None else self.batch
        return self.model_copy(update={"input": self.input * share, "output": self.output * share})


class ModelFacts(BaseModel):
    """One entry of the table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reasoning: bool = False
    """Whether it thinks before it answers; then it accepts no temperature and needs more tokens."""
    think_tokens: PositiveInt = 8192
    """Tokens for thinking, added to the limit of the reply."""
    effort: str | None = None
    """Sent as `reasoning_effort`."""
    window: PositiveInt | None = None
    """Most tokens of prompt and reply together."""
    prices: Prices | None = None

    def at_effort(self, effort: str | None) -> ModelFacts:
        """The facts of the model when it is asked for this reasoning effort; `None` changes
        nothing. A model that is asked for one is taken for one that thinks.
        """
        if effort is None:
            return self
        return self.model_copy(update={"reasoning": True, "effort": effort})

    @property
    def room_to_think(self) -> int:
        """Tokens for thinking; 0 if the model does not think."""
        return self.think_tokens if self.reasoning else 0


def model_facts(label: str, environ: Mapping[str, str] = os.environ) -> ModelFacts:
    """The entry of `provider/model`, else the longest matching one that ends with `*`."""
    known = entries("models.yaml", USER_FILE, ModelFacts, environ)
    if label in known:
        return known[label]
    matching = [name for name in known if name.endswith("*") and label.startswith(name[:-1])]
    return known[max(matching, key=len)] if matching else ModelFacts()


def known_models(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The names in the table, `provider/model`; with `*` at the end for all that begin so."""
    return list(entries("models.yaml", USER_FILE, ModelFacts, environ))
