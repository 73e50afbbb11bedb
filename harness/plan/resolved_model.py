"""What a command knows of its model before it asks anything; looked up once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eyechart.harness.spec import VARIANT
from eyechart.providers.catalog.model_facts import EFFORTS, ModelFacts, model_facts
from eyechart.providers.catalog.price_list import offer
from eyechart.providers.catalog.prices import DEFAULT, Prices


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model by its label, with the facts of the catalog."""

    label: str
    """How the model is written in tables and folders: `provider/model`, or `tiny`; with `@` and
    the variant after it, where there is one."""
    facts: ModelFacts
    prices: Prices | None
    """Those that this command pays, in the tier that it asks for; `None` where they are not known.
    """
    listed_window: int | None = None
    """Most tokens of its prompts, as the list of prices says."""
    variant: str = ""
    """How it is served or asked; "" where nothing says so."""
    served_as: str = ""
    """`provider/model` where the label has a name of the user's in its place; else empty."""

    @property
    def provider(self) -> str:
        """The provider's name."""
        return (self.served_as or self.label).partition("/")[0]

    @property
    def think_tokens(self) -> int:
        """Tokens that a reply may have for reasoning, besides its own maximum."""
        return self.facts.room_to_think

    @property
    def likely_thought(self) -> int:
        """Tokens for reasoning that a reply is expected to take."""
        return self.facts.likely_thought

    @property
    def max_reply(self) -> int | None:
        """Most tokens of a reply besides its thinking; `None` if that is not known."""
        return self.facts.max_reply

    @property
    def has_tier_price(self) -> bool:
        """Whether the price of the tier is known; else `prices` are the list prices."""
        return self.prices is not None and self.prices.has(self.prices.tier)

    def window(self, server: Mapping[str, object]) -> int | None:
        """Tokens of prompt and reply together, at most: what the server says, else the catalog."""
        window = server.get("max_model_len")
        if isinstance(window, int) and window:
            return window
        return self.facts.window or self.listed_window


def is_effort(word: str) -> bool:
    """Whether a vendor has a reasoning effort of this name."""
    return word in EFFORTS


def resolve_model(
    name: str,
    *,
    tier: str | None = None,
    addresses: Sequence[str] = (),
    variant: str = "",
    effort: str | None = None,
    called: str = "",
) -> ResolvedModel:
    """Looks up the model of that name, for requests in a tier; `addresses` are those at which it
    is asked, where they are not its provider's own, and `called` is the user's name for it.

    Prices of the user come first, then those of the vendor that has the address.
    """
    facts = model_facts(name).at_effort(effort)
    provider, _, model = name.partition("/")
    offered = offer(provider, model, addresses)
    prices = offered.prices if facts.prices is None else facts.prices.prices()
    prices = None if prices is None else prices.in_tier(tier or DEFAULT)
    label = f"{called or name}{VARIANT}{variant}" if variant else called or name
    served_as = name if called else ""
    return ResolvedModel(label, facts, prices, offered.window, variant, served_as)
