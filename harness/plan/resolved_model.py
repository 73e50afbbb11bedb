"""What a command knows about its model before it asks anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eyechart.harness.spec import VARIANT
from eyechart.providers.catalog.model_facts import ModelFacts, model_facts
from eyechart.providers.catalog.price_list import offer
from eyechart.providers.catalog.prices import DEFAULT, Prices
from eyechart.providers.descriptors import descriptor_of


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model with the facts that the catalog has about it."""

    label: str
    """How the model is written in tables and folders: `provider/model`, or `tiny`; with `@` and
    the variant after it, where there is one."""
    facts: ModelFacts
    prices: Prices | None
    """The prices that this command pays, in its tier; `None` if they are not known."""
    listed_window: int | None = None
    """Most tokens of a prompt, by the list of prices."""
    variant: str = ""
    """How the model is served or asked; "" if nothing says so."""
    served_as: str = ""
    """`provider/model`, if the label has another name instead; else empty."""

    @property
    def provider(self) -> str:
        return (self.served_as or self.label).partition("/")[0]

    @property
    def is_file(self) -> bool:
        """Whether it is asked by a path on this machine, which does not say which model it is."""
        return descriptor_of(self.provider).models_are_files

    @property
    def is_code(self) -> bool:
        """Whether it is a function or an object of Python."""
        return descriptor_of(self.provider).executes is not None

    @property
    def has_tokenizer(self) -> bool:
        """Whether it reads a row as tokens."""
        return descriptor_of(self.provider).has_tokenizer

    @property
    def is_embedded(self) -> bool:
        """Whether it is the model of this package, which is there to try the program with."""
        about = descriptor_of(self.provider)
        return about.service.kind == "ours" and bool(about.only_model)

    @property
    def has_tier_price(self) -> bool:
        """Whether the price of the tier is known; otherwise `prices` are the list prices."""
        return self.prices is not None and self.prices.has(self.prices.tier)

    def window(self, server: Mapping[str, object]) -> int | None:
        """Most tokens of prompt and reply together, from the server or else the catalog."""
        window = server.get("max_model_len")
        if isinstance(window, int) and window:
            return window
        return self.facts.window or self.listed_window


def resolve_model(
    name: str,
    *,
    tier: str | None = None,
    addresses: Sequence[str] = (),
    variant: str = "",
    effort: str | None = None,
    thinking: str | None = None,
    called: str = "",
) -> ResolvedModel:
    """Looks up a model for requests in a tier. `addresses` are the user's, if not the provider's
    own are asked. `called` is the user's name for the model. The user's own prices come first, then
    those of the vendor that has the address.
    """
    facts = model_facts(name).asked_for(effort, thinking)
    provider, _, model = name.partition("/")
    offered = offer(provider, model, addresses)
    prices = offered.prices if facts.prices is None else facts.prices.prices()
    prices = None if prices is None else prices.in_tier(tier or DEFAULT)
    label = f"{called or name}{VARIANT}{variant}" if variant else called or name
    served_as = name if called else ""
    return ResolvedModel(label, facts, prices, offered.window, variant, served_as)
