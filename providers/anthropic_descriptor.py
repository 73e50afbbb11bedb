"""The descriptor of Anthropic, and its environment variables."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.providers.catalog.endpoints import ITS_OWN
from eyechart.providers.descriptor import (
    Descriptor,
    Destination,
    Environment,
    Service,
    at,
    key_in,
    key_needed,
)

ANTHROPIC = "https://api.anthropic.com"
ANTHROPIC_BASE_URL = "ANTHROPIC_BASE_URL"
"""The variable of another address."""
ANTHROPIC_KEY = "ANTHROPIC_API_KEY"


def _destination(
    addresses: Sequence[str], _model_args: Sequence[str], environ: Environment
) -> Destination:
    """A server at an address of the user's is not Anthropic and gets no key."""
    if addresses:
        return at(addresses, "")
    own = environ.get(ANTHROPIC_BASE_URL)
    variable = ANTHROPIC_BASE_URL if own else ""
    return Destination((own or ANTHROPIC,), key_in(ANTHROPIC_KEY, environ), variable)


DESCRIPTOR = Descriptor(
    name="anthropic",
    title="Anthropic",
    needs=lambda environ: key_needed(ANTHROPIC_KEY, environ),
    opens="eyechart.providers.anthropic:open_provider",
    takes_completions=False,
    gives_logprobs=False,
    thinking=lambda _addresses: ITS_OWN,
    takes_turns=True,
    takes_params=True,
    takes_headers=True,
    thinking_takes_temperature=lambda _addresses: False,
    tiers=lambda _addresses: ("default",),
    destination=_destination,
    prices="anthropic",
    service=Service("own models", "anthropic", "closed", "api.anthropic.com"),
)
