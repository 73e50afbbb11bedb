"""What vendors charge: ten exchanges, each with the arithmetic of its vendor's price page."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from eyechart.harness.plan.cost import Budget, MaxUsage, cost, most_cost
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.providers import anthropic
from eyechart.providers.base import SetupError, Usage
from eyechart.providers.catalog import price_list
from eyechart.providers.catalog.price_list import offer
from eyechart.providers.openai import form

NOVEMBER = datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()
PEAK = datetime(2026, 11, 18, 2, 30, tzinfo=UTC).timestamp()
MILLION = 1_000_000


def chat(prompt: int, output: int, tier: str | None = None, **details: Any) -> Usage:
    """What OpenAI's form says of an exchange."""
    usage = {"prompt_tokens": prompt, "completion_tokens": output, **details}
    read = form.reply_of(
        {"choices": [{"message": {"content": "7"}}], "usage": usage, "service_tier": tier}
    ).usage
    assert read is not None
    return read


def message(**usage: Any) -> Usage:
    """What Anthropic's form says."""
    read = anthropic.reply_of({"content": [], "usage": usage}).usage
    assert read is not None
    return read


def cached(read: int = 0, written: int = 0) -> dict[str, Any]:
    return {"prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written}}


EXCHANGES = {
    "gpt-4o: half price for what a cache had": (
        "openai/gpt-4o",
        chat(2000, 300, **cached(read=1536)),
        NOVEMBER,
        464 * 2.50 + 1536 * 1.25 + 300 * 10,
    ),
    "gpt-6-sol: 1.25 times the price for what was written to a cache": (
        "openai/gpt-6-sol",
        chat(3000, 500, **cached(written=2900)),
        NOVEMBER,
        100 * 2.00 + 2900 * 2.50 + 500 * 10,
    ),
    "gpt-5.5: above 272,000 tokens twice the price, and 1.5 times for the reply": (
        "openai/gpt-5.5",
        chat(300_000, 1000, **cached()),
        NOVEMBER,
        300_000 * 10 + 1000 * 45,
    ),
    "gpt-5-mini: half of it in the flex tier, thinking is output": (
        "openai/gpt-5-mini",
        chat(1000, 2000, "flex", completion_tokens_details={"reasoning_tokens": 1900}, **cached()),
        NOVEMBER,
        1000 * 0.125 + 2000 * 1.00,
    ),
    "claude-haiku-5-5: above 100,000 tokens five times the price": (
        "anthropic/claude-haiku-5-5",
        message(input_tokens=100_001, output_tokens=200),
        NOVEMBER,
        100_001 * 0.50 + 200 * 2.50,
    ),
    "claude-sonnet-5: the cache's tokens are beside the others": (
        "anthropic/claude-sonnet-5",
        message(
            input_tokens=50,
            cache_read_input_tokens=4000,
            cache_creation_input_tokens=1000,
            output_tokens=700,
            output_tokens_details={"thinking_tokens": 600},
            service_tier="standard",
        ),
        NOVEMBER,
        50 * 2 + 4000 * 0.20 + 1000 * 2.50 + 700 * 10,
    ),
    "deepseek-v4-pro off peak": (
        "deepseek/deepseek-v4-pro",
        chat(1000, 400, prompt_cache_hit_tokens=640, prompt_cache_miss_tokens=360),
        NOVEMBER,
        360 * 0.66 + 640 * 0.022 + 400 * 1.98,
    ),
    "deepseek-v4-pro at peak: twice as much": (
        "deepseek/deepseek-v4-pro",
        chat(1000, 400, prompt_cache_hit_tokens=640, prompt_cache_miss_tokens=360),
        PEAK,
        2 * (360 * 0.66 + 640 * 0.022 + 400 * 1.98),
    ),
    "gemini-2.5-pro: thinking is in the total alone, above 200,000 tokens more": (
        "gemini/gemini-2.5-pro",
        chat(210_000, 10, total_tokens=211_510),
        NOVEMBER,
        210_000 * 2.50 + 1510 * 15,
    ),
    "grok-4.7: from 200,000 tokens twice the price, and the cache's as well": (
        "xai/grok-4.7",
        chat(200_000, 100, **cached(read=150_000)),
        NOVEMBER,
        50_000 * 4 + 150_000 * 1 + 100 * 12,
    ),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_an_exchange_costs_what_its_vendor_asks(name: str) -> None:
    """By the rules of the vendor's price page, in dollars per million tokens."""
    label, usage, at_s, millionths = EXCHANGES[name]
    prices = resolve_model(label).prices
    assert prices is not None
    paid = cost(prices, usage, at_s)
    assert paid is not None
    assert paid == pytest.approx(millionths / MILLION)
    most = MaxUsage(usage.prompt_tokens, usage.output_tokens)
    assert paid <= Budget(prices).worst(most) + 1e-12


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 3}}, (3, None, None)),
        ({"prompt_tokens_details": None}, (None, None, None)),
        ({"prompt_cache_hit_tokens": 4}, (4, None, None)),
        ({"cached_tokens": 5}, (5, None, None)),
        (cached(3, 4), (3, 4, None)),
        (cached(6, 6), (None, None, None)),
        ({"prompt_tokens_details": {"cached_tokens": -1, "cache_write_tokens": "9"}}, (None,) * 3),
        ({"completion_tokens_details": {"reasoning_tokens": 2}}, (None, None, 2)),
        ({"completion_tokens_details": {"reasoning_tokens": 99}}, (None, None, None)),
    ],
)
def test_the_parts_of_usage(usage: dict[str, Any], read: tuple[int | None, ...]) -> None:
    """From each vendor's own field; more than the whole is none."""
    said = chat(10, 5, **usage)
    assert (said.prompt_tokens, said.output_tokens) == (10, 5)
    assert (said.cache_read_tokens, said.cache_write_tokens, said.thought_tokens) == read


@pytest.mark.parametrize(
    ("word", "tier"),
    [("flex", "flex"), ("on_demand", "default"), ("auto", None), (None, None), (3, None)],
)
def test_the_tier_of_a_reply(word: Any, tier: str | None) -> None:
    """In one vocabulary; what is no word is unknown."""
    assert chat(1, 1, word).tier == tier


def test_what_is_not_known_counts_as_the_dearest() -> None:
    """Whether a cache was written, and the hour; a short prompt writes none."""
    luna, deepseek = (
        resolve_model(label).prices for label in ("openai/gpt-6-luna", "deepseek/deepseek-v4-pro")
    )
    assert luna is not None
    assert deepseek is not None
    assert cost(luna, Usage(2000, 0), NOVEMBER) == pytest.approx(2000 * 0.125 / MILLION)
    assert cost(luna, Usage(1000, 0), NOVEMBER) == pytest.approx(1000 * 0.1 / MILLION)
    assert cost(luna, Usage(2000, 0, 0, 0), NOVEMBER) == pytest.approx(2000 * 0.1 / MILLION)
    assert cost(deepseek, Usage(1000, 0)) == cost(deepseek, Usage(1000, 0), PEAK)
    assert most_cost(luna.most(272_001), 100, 100) == pytest.approx(
        (100 * 0.25 + 100 * 0.75) / MILLION
    )


def test_prices_are_those_of_the_address(tmp_path: Path) -> None:
    """A server of the user's has none; a vendor's has the vendor's, whatever name it is given."""
    own = ("http://127.0.0.1:8000/v1",)
    assert offer("openai", "gpt-4o", own).prices is None
    assert offer("openai", "gpt-4o", ("https://api.openai.com/v1",)).prices is not None
    routed = offer("openai", "deepseek/deepseek-v4-pro", ("https://openrouter.ai/api/v1",)).prices
    assert routed is not None
    assert routed == offer("openrouter", "deepseek/deepseek-v4-pro").prices
    own_file = tmp_path / "endpoints.yaml"
    own_file.write_text("lab: {base_url: 'http://user:secret-1@127.0.0.1:1/v1', prices: openai}\n")
    environment = {"EYECHART_ENDPOINTS": str(own_file)}
    for addresses in ((), ("http://user:***@127.0.0.1:1/v1/",)):
        assert offer("lab", "gpt-4o", addresses, environment).prices is not None
    assert offer("lab", "gpt-4o", own, environment).prices is None
    for provider in ("tiny", "vllm", "ollama", "nobody"):
        assert offer(provider, "gpt-4o") == price_list.Offer()
    assert offer("openai", "nobody-knows-it").prices is None


def test_the_date_of_the_list_is_said() -> None:
    """And where it is from."""
    prices = offer("openai", "gpt-5-mini").prices
    assert prices is not None
    assert date(2026, 10, 14) <= prices.as_of <= date.today()  # noqa: DTZ011  a day of the list's
    assert str(prices.in_tier("flex")).startswith(f"the flex prices of {prices.as_of} (genai-pric")


OWN = """\
openai/gpt-4o:
  prices:
    {input: 1, output: 2, as_of: 2026-01-01, cache_read: 0.5, cache_write: 3, flex: 0.25,
     above: {100: {input: 4, output: 8}}}
"""


def test_the_users_own_prices_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tiers, caches and long prompts; the window is still that of the list."""
    (tmp_path / "models.yaml").write_text(OWN)
    monkeypatch.setenv("EYECHART_MODELS", str(tmp_path / "models.yaml"))
    model = resolve_model("openai/gpt-4o", tier="flex")
    assert model.prices is not None
    assert str(model.prices) == "the flex prices of 2026-01-01"
    assert cost(model.prices, Usage(100, 10, 20, 30)) == pytest.approx(
        0.25 * (50 * 1 + 20 * 0.5 + 30 * 3 + 10 * 2) / MILLION
    )
    assert cost(model.prices, Usage(101, 10, 20, 30)) == pytest.approx(
        0.25 * (101 * 4 + 10 * 8) / MILLION
    )
    assert cost(model.prices, Usage(100, 10, 20, 30, tier="default")) == pytest.approx(
        (50 * 1 + 20 * 0.5 + 30 * 3 + 10 * 2) / MILLION
    )
    assert model.window({}) == 128_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m: {reasoning: maybe}", "field 'reasoning' must be true or false"),
        ("m: {window: -3}", "field 'window' must be a number above 0"),
        ("m: {window: 4.5}", "field 'window' must be a whole number"),
        ("m: {efort: low}", "field 'efort' is unknown; did you mean 'effort'?"),
        ("m: {effort: 4}", "field 'effort' must be a text; put it in quotes if"),
        ("m: {prices: 4}", "field 'prices' must be fields with values, as {field: value}"),
        ("m: {prices: {inpt: 1}}", "'prices.inpt' is unknown; did you mean 'input'? (and 3 more)"),
        ("m: {prices: {input: 1, output: 2}}", "field 'prices.as_of' is missing"),
        (
            "m: {prices: {input: -1, output: 2, as_of: soon}}",
            "field 'prices.input' must be a number from 0 on (and 1 more)",
        ),
        ("m: {prices: {input: 1, output: 2, as_of: soon}}", "must be a date, as 2026-01-31"),
        (
            "m: {prices: {input: 1, output: 2, as_of: 2026-01-01, above: {many: {input: 1}}}}",
            "name 'many' in field 'prices.above' must be a whole number",
        ),
        (
            "m: {prices: {input: 1, output: 2, as_of: 2026-01-01, batch: 2}}",
            "field 'prices.batch' must be a number of at most 1",
        ),
        ("m: {reasoning: true, max_output: 4096}", "'m': max_output must be above think_tokens,"),
        ("m: 7", "entry 'm' must have fields: reasoning, think_tokens,"),
        ("7: {}", "entry '7' must have a text as its name; put it in quotes"),
    ],
)
def test_a_mistake_in_a_file_of_models_is_one_line(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its place, and what would be right."""
    path = tmp_path / "models.yaml"
    path.write_text(f"# mine\n{text}\n")
    monkeypatch.setenv("EYECHART_MODELS", str(path))
    with pytest.raises(SetupError) as wrong:
        resolve_model("openai/gpt-4o")
    assert str(wrong.value).startswith(f"{path}:2: entry ")
    assert said in str(wrong.value)
    assert "\n" not in str(wrong.value)


RAW = [
    {
        "id": "openai",
        "name": "OpenAI",
        "api_pattern": "https://api\\.openai\\.com",
        "models": [
            {
                "id": "gpt-4o",
                "match": {"equals": "gpt-4o"},
                "context_window": 99,
                "prices": {"input_mtok": 7, "output_mtok": {"base": 8, "tiers": []}},
            }
        ],
    }
]


def test_a_list_that_was_fetched_wins_while_it_is_newer(tmp_path: Path) -> None:
    """An older one, and a file that is none, are passed over."""
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    path = price_list.updated_file(environment)
    path.parent.mkdir()
    for fetched, providers, rate in (
        ("2099-01-01", RAW, 7.0),
        ("2025-01-01", RAW, 2.5),
        ("2099-01-01", [{"id": 3}], 2.5),
        ("never", RAW, 2.5),
    ):
        path.write_text(json.dumps({"fetched": fetched, "providers": providers}))
        price_list.forget()
        prices = offer("openai", "gpt-4o", environ=environment).prices
        assert prices is not None
        assert prices.at(NOVEMBER)[0][1].fresh == rate
        assert prices.source.endswith("updated") == (rate == 7)
    price_list.forget()


def test_without_a_network_an_update_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, and nothing is written."""

    def unreachable(*_: Any, **__: Any) -> None:
        raise httpx2.ConnectError("no route to host")

    monkeypatch.setattr(httpx2, "get", unreachable)
    why = "was not updated from https://.*: no route to host; in use are the prices of 20"
    with pytest.raises(price_list.UpdateError, match=why):
        price_list.update(date(2026, 11, 22), {"XDG_CACHE_HOME": str(tmp_path)})
    assert not list(tmp_path.iterdir())


def test_an_update_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the day on which it was fetched."""
    request = httpx2.Request("GET", "https://example.org")
    answer = httpx2.Response(200, json=RAW, request=request)
    monkeypatch.setattr(httpx2, "get", lambda *_, **__: answer)
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    path, models = price_list.update(date(2099, 2, 3), environment)
    assert (path, models) == (price_list.updated_file(environment), 1)
    kept = offer("openai", "gpt-4o", environ=environment)
    assert kept.window == 99
    assert kept.prices is not None
    assert kept.prices.of == "2099-02-03 (genai-prices, updated)"
    price_list.forget()
