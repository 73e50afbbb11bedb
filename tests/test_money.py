"""Tokens before they are sent, dollars as they are spent."""

from __future__ import annotations

from datetime import date

import pytest

from harness.money import Meter, cost, estimate_tokens
from providers.base import Usage
from providers.model_facts import Prices, model_facts

PRICES = Prices(input=2.0, output=10.0, as_of=date(2025, 10, 1))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("11111", 5),
        ("1,1;1", 5),
        ("word", 1),
        ("sentence", 2),
        ("a b", 2),
        ("Row A:\n1 + 1", 7),
        ("ü_ß", 3),
    ],
)
def test_the_rule_where_no_tokenizer_is_at_hand(text: str, tokens: int) -> None:
    """One a digit, sign and line end, one for five letters."""
    assert estimate_tokens(text) == tokens


def test_a_million_tokens_cost_their_price() -> None:
    """Input and output each by their own."""
    assert cost(PRICES, 1_000_000, 500_000) == 7.0


def test_the_meter_stops_at_its_budget() -> None:
    """Not before; without prices there is nothing to add."""
    meter = Meter(PRICES, budget=0.01)
    meter.charge(Usage(1000, 700))
    assert (round(meter.spent, 9), meter.exhausted) == (0.009, False)
    meter.charge(Usage(1000, 0))
    assert (round(meter.spent, 9), meter.exhausted) == (0.011, True)
    unknown = Meter()
    unknown.charge(Usage(10**9, 10**9))
    assert (unknown.spent, unknown.exhausted) == (0.0, False)


def test_known_models_have_prices_with_their_date() -> None:
    """And reasoning models that are not spelled out have none made up for them."""
    prices = model_facts("openai/gpt-4o", {}).prices
    assert prices is not None
    assert prices.input < prices.output
    assert prices.as_of <= date.today()  # noqa: DTZ011  a day of the vendor's
    assert model_facts("openai/gpt-4o-audio-preview", {}).prices is None
    assert model_facts("openai/o1-pro", {}).prices is None
