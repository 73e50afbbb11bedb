"""Facts about models that requests need, from `models.yaml` and from a file of the user's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt, model_validator

from eyechart.providers.catalog.endpoints import DEFAULT as DEFAULT_PROVIDER
from eyechart.providers.catalog.endpoints import int_of
from eyechart.providers.catalog.overridable import entries
from eyechart.providers.catalog.prices import DEFAULT, Prices, Rates, Steps, Timetable

USER_FILE = "EYECHART_MODELS"
"""Environment variable that names the user's own file."""
EFFORTS = {
    "none": 0,
    "minimal": 1 / 32,
    "low": 1 / 16,
    "medium": 1 / 8,
    "high": 1 / 4,
    "xhigh": 1 / 2,
    "max": 1 / 2,
}
"""Reasoning effort of vendors -> share of its room for thinking that a reply is expected to use.
Forecasts use this assumption.
"""
_Share = Annotated[float, Field(gt=0, le=1)]


class ListedPrices(BaseModel):
    """US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: NonNegativeFloat
    output: NonNegativeFloat
    """For replies, with the thinking before them."""
    cache_read: NonNegativeFloat | None = None
    cache_write: NonNegativeFloat | None = None
    """For tokens of prompts read from a cache, and written to it; `input` if they are not given."""

    def rates(self) -> Rates:
        """The rates of each kind of token."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return Rates(self.input, read, write, self.output, self.output)


class PriceList(ListedPrices):
    """The prices of one model, as they are written in a file."""

    as_of: date
    """Date of the prices."""
    above: Mapping[PositiveInt, ListedPrices] = {}
    """Tokens -> the prices of all tokens of a request whose prompt has more tokens."""
    batch: _Share | None = None
    flex: _Share | None = None
    """Price in the vendor's Batch API, and in its flex tier, as a share of these; `None` if
    unknown."""

    def prices(self) -> Prices:
        """The prices by tier."""
        steps = (-1, self.rates()), *((n, one.rates()) for n, one in sorted(self.above.items()))
        shares = {DEFAULT: 1.0, "batch": self.batch, "flex": self.flex}
        tiers = {tier: _times(steps, share) for tier, share in shares.items() if share is not None}
        return Prices(tiers, self.as_of)


def _times(steps: Steps, share: float) -> Timetable:
    cheaper = tuple((above, Rates(*(rate * share for rate in rates))) for above, rates in steps)
    return Timetable((float("-inf"),), (0,), ((cheaper,),))


class ModelFacts(BaseModel):
    """One entry of the table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reasoning: bool = False
    """Whether the model thinks first: then its replies get more tokens from the start, and a vendor
    takes no temperature."""
    think_tokens: PositiveInt = 8192
    """Tokens for thinking in the first requests, added to the limit of the reply."""
    effort: str | None = None
    """Sent as `reasoning_effort`."""
    window: PositiveInt | None = None
    """Most tokens of prompt and reply together; `None` if the list of prices has the number."""
    max_output: PositiveInt | None = None
    """Most tokens of a reply with its thinking; `None` if it is not known."""
    prices: PriceList | None = None
    """The user's own prices; `None` if those of the list are used."""

    @model_validator(mode="after")
    def _has_room_for_a_reply(self) -> Self:
        if self.max_output is not None and self.max_reply is None:
            raise ValueError(
                f"max_output must be above think_tokens, which are {self.think_tokens}, since a "
                "reply has both"
            )
        return self

    def asked_for(self, effort: str | None, thinking: str | None = None) -> ModelFacts:
        """The facts of the model when it is asked for this reasoning effort, and for thinking in
        the way of `ModelSettings.thinking`; `None` changes nothing. A model that is asked for an
        effort is assumed to think, unless the effort is none.
        """
        changed: dict[str, object] = {}
        if effort is not None:
            changed |= {"reasoning": True, "effort": effort}
        if thinking is not None:
            changed["reasoning"] = thinking != "off"
        if (tokens := int_of(thinking)) is not None:
            changed["think_tokens"] = tokens
        return self.model_copy(update=changed)

    @property
    def room_to_think(self) -> int:
        """Tokens for thinking; 0 if the model does not think."""
        return self.think_tokens if self.reasoning else 0

    @property
    def likely_thought(self) -> int:
        """Tokens of thinking that a reply is expected to take, by an assumption."""
        return round(self.room_to_think * EFFORTS.get(self.effort or "", EFFORTS["medium"]))

    @property
    def max_reply(self) -> int | None:
        """Tokens of a reply beside its room for thinking; `None` if not known, or none."""
        left = 0 if self.max_output is None else self.max_output - self.room_to_think
        return left if left > 0 else None


def model_facts(label: str, environ: Mapping[str, str] = os.environ) -> ModelFacts:
    """The entry of `provider/model`, else the longest matching one that ends with `*`."""
    return _listed(label, environ) or ModelFacts()


def _listed(label: str, environ: Mapping[str, str]) -> ModelFacts | None:
    known = entries("models.yaml", USER_FILE, ModelFacts, environ)
    if label in known:
        return known[label]
    matching = [name for name in known if name.endswith("*") and label.startswith(name[:-1])]
    return known[max(matching, key=len)] if matching else None


def known_not_to_reason(label: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the table has `provider/model` as a model that does not think before it answers. The
    table is complete only for OpenAI.
    """
    listed = _listed(label, environ) if label.startswith(f"{DEFAULT_PROVIDER}/") else None
    return listed is not None and not listed.reasoning


def known_models(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The names in the table, `provider/model`; with `*` at the end for all that begin so."""
    return list(entries("models.yaml", USER_FILE, ModelFacts, environ))
