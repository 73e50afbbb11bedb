"""What a command knows of its model before it asks anything; looked up once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.spec import VARIANT
from providers.catalog.model_facts import ModelFacts, Prices, model_facts


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model by its label, with the facts of the catalog."""

    label: str
    """How the model is written in tables and folders: `provider/model`, or `tiny`; with `@` and
    the variant after it, where there is one."""
    facts: ModelFacts
    prices: Prices | None
    """Those that this command pays; `None` where they are not known."""
    variant: str = ""
    """How it is served or asked; "" where nothing says so."""

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self.label.partition("/")[0]

    @property
    def think_tokens(self) -> int:
        """Tokens that a reply may have for reasoning, besides its own maximum."""
        return self.facts.room_to_think

    @property
    def has_batch_price(self) -> bool:
        """Whether the price of a batch is known; else `prices` are the list prices."""
        return self.facts.prices is not None and self.facts.prices.batch is not None

    def window(self, server: Mapping[str, object]) -> int | None:
        """Tokens of prompt and reply together, at most: what the server says, else the catalog."""
        window = server.get("max_model_len")
        return window if isinstance(window, int) and window else self.facts.window


def resolve_model(
    name: str, *, batch: bool = False, variant: str = "", effort: str | None = None
) -> ResolvedModel:
    """Looks up the model of that name; `batch` chooses the prices of a Batch API."""
    facts = model_facts(name).at_effort(effort)
    prices = facts.prices.in_batch() if facts.prices and batch else facts.prices
    label = f"{name}{VARIANT}{variant}" if variant else name
    return ResolvedModel(label, facts, prices, variant)
