"""What a run will take, before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from eyechart.harness.plan import context_fit
from eyechart.harness.plan.context_fit import CellFit, ContextFit, context_fits, least_tokens
from eyechart.harness.plan.cost import estimate_tokens
from eyechart.harness.plan.estimate import Thinking, forecast
from eyechart.harness.plan.plan import Plan, output_budget, plan
from eyechart.harness.plan.resolved_model import ResolvedModel, resolve_model
from eyechart.harness.spec import Line
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.catalog.model_facts import ModelFacts
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import Lab


class Counting(ScriptedProvider):
    """Counts a token a character; keeps what it was asked to count."""

    def __init__(self) -> None:
        super().__init__(["1"])
        self.counted: list[str] = []
        self.most = 0
        """Most characters that it was asked to count at once."""

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        self.counted += prompts
        self.most = max(self.most, sum(map(len, prompts)))
        return list(map(len, prompts))


def planned(name: str = "counting/ones", **options: object) -> Plan:
    return plan(open_task(name, built_in_files()[name]), **options)  # type: ignore[arg-type]


def test_a_short_plan_is_added_up_sample_by_sample() -> None:
    """Characters, tokens by the rule, and budgets are those of the samples."""
    wanted = planned(samples=3, lengths=[5, 50])
    ahead = asyncio.run(forecast(wanted))
    samples = list(wanted)
    assert ahead.characters == sum(len(sample.prompt) for sample in samples)
    assert ahead.prompt_tokens == sum(estimate_tokens(sample.prompt) for sample in samples)
    most = [one.most_prompt for one in ahead.samples]
    assert most == [len(sample.prompt.encode()) for sample in samples]
    assert ahead.most_output_tokens == sum(map(output_budget, samples))
    assert 0 < ahead.output_tokens < ahead.most_output_tokens
    assert not ahead.exact


def test_a_system_prompt_is_sent_with_every_request() -> None:
    """And paid for."""
    wanted = planned(samples=2, lengths=[5])
    plain, more = (asyncio.run(forecast(wanted, system=system)) for system in (None, "Be brief."))
    of_system = estimate_tokens("Be brief.")
    assert more.prompt_tokens == plain.prompt_tokens + of_system * wanted.size
    most = [one.most_prompt + len("Be brief.") for one in plain.samples]
    assert [one.most_prompt for one in more.samples] == most


def test_what_is_not_sent_costs_nothing() -> None:
    """Cells that do not fit the window are left out of the sum."""
    both, short = planned(samples=3, lengths=[5, 50], exact=True), planned(samples=3, lengths=[5])
    too_long = ContextFit(tokens=200, answer=10, window=100, exact=True)
    line = Line.exact(50)
    fits = {(condition, line): CellFit(line, too_long, too_long) for condition in both.conditions}
    ahead, alone = (asyncio.run(forecast(one, fits=fits)) for one in (both, short))
    assert ahead == alone


def test_a_tokenizer_makes_it_exact() -> None:
    """Every prompt is counted."""
    wanted = planned(samples=3, lengths=[5, 50])
    ahead = asyncio.run(forecast(wanted, max_tokens=10, counter=Counting()))
    assert ahead.exact
    most = sum(one.most_prompt for one in ahead.samples)
    assert ahead.prompt_tokens == most == ahead.characters
    assert ahead.most_output_tokens == 10 * wanted.size


def test_of_a_long_plan_a_few_stand_for_all() -> None:
    """All-ones prompts of a cell are equally long, so the sum is right all the same."""
    long, short = planned(samples=3000, lengths=[5]), planned(samples=3, lengths=[5])
    counter = Counting()
    ahead = asyncio.run(forecast(long, counter=counter))
    few = asyncio.run(forecast(short))
    assert ahead.characters == 1000 * few.characters
    assert len(counter.counted) < 20
    assert not ahead.exact


def test_reasoning_has_room_and_is_expected_to_use_a_part_of_it() -> None:
    """On top of every reply; at most all of it, after replies that were cut off."""
    wanted = planned(samples=1, lengths=[5])
    plain = asyncio.run(forecast(wanted))
    thinks = asyncio.run(forecast(wanted, thinking=Thinking(1000, 8000, 5000)))
    assert thinks.most_output_tokens == (8000 + 5000) * wanted.size
    assert thinks.output_tokens == plain.output_tokens + 1000 * wanted.size
    assert (plain.thought_tokens, thinks.thought_tokens) == (0, 1000 * wanted.size)


def test_more_effort_is_expected_to_think_more() -> None:
    """As much as is assumed where no effort is given, or an unknown one; without effort nothing."""
    efforts = (None, "odd", "none", "minimal", "low", "medium", "high", "xhigh", "max")
    thought = [
        resolve_model("openai/gpt-5", effort=effort).facts.likely_thought for effort in efforts
    ]
    assert thought == [1024, 1024, 0, 256, 512, 1024, 2048, 4096, 4096]
    assert resolve_model("openai/gpt-4.1").facts.likely_thought == 0


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("openai/gpt-5.6-luna", 8192),
        ("openai/gpt-5.1", 8192),
        ("gemini/gemini-3.5-flash", 8192),
        ("openai/gpt-4.1", 0),
        ("gemini/gemini-2.0-flash", 0),
    ],
)
def test_newer_models_of_a_reasoning_family_have_room_to_think(name: str, room: int) -> None:
    """By the family's name."""
    assert resolve_model(name).facts.room_to_think == room


def model_of(window: int | None) -> ResolvedModel:
    """A model of which the catalog knows the window alone."""
    return ResolvedModel("openai/m", ModelFacts(window=window), None)


def test_the_servers_window_goes_before_the_catalogs() -> None:
    """A server may serve a model with a smaller window than its vendor does."""
    assert model_of(600).window({}) == 600
    assert model_of(600).window({"max_model_len": 500}) == 500
    assert model_of(None).window({"max_model_len": 500}) == 500
    assert model_of(600).window({"max_model_len": None}) == 600
    wanted = planned(lengths=[5, 500], axes={"separator": ["none"]})
    ((_, fit),) = asyncio.run(
        context_fits(wanted, model_of(10**9), {"max_model_len": 600}, None)
    ).items()
    assert fit.longest.window == 600


@pytest.mark.parametrize(
    ("text", "least"), [("1" * 64, 4), ("1 + 1 + 1 + 1", 3), ("a, " * 40, 40), ("word " * 32, 16)]
)
def test_least_tokens_of_a_prompt_without_a_tokenizer(text: str, least: int) -> None:
    """A token has at most 16 characters, and at most two runs of letters, digits or signs."""
    assert least_tokens(text) == least


def test_only_cells_that_may_be_too_long_are_looked_at() -> None:
    """A prompt has no more tokens than bytes."""
    counter = Counting()
    wanted = planned(lengths=[5, 500], exact=True, axes={"separator": ["none"]})
    assert asyncio.run(context_fits(wanted, model_of(None), {}, counter)) == {}
    found = asyncio.run(context_fits(wanted, model_of(600), {}, counter))
    assert [line for _, line in found] == [Line.exact(500)]
    assert "Row" in counter.counted[0]
    assert counter.counted[1:] == ["500", "."]


def test_a_band_is_looked_at_from_both_ends() -> None:
    """A length in between is interpolated."""
    counter = Counting()
    wanted = planned(lengths=[5, 500], axes={"separator": ["none"]})
    fits = asyncio.run(context_fits(wanted, model_of(600), {}, counter))
    (line,) = (line for _, line in fits)
    (fit,) = fits.values()
    assert str(line) == "500 (51–500)"
    assert sum("Row" in one for one in counter.counted) == 2
    assert fit.longest.tokens - fit.shortest.tokens == 500 - 51
    assert [fit.at(length).tokens for length in (51, 151, 500)] == [
        *(fit.shortest.tokens, fit.shortest.tokens + 100, fit.longest.tokens)
    ]
    assert (fit.at(51).fits, fit.at(500).fits) == (True, False)
    assert str(fit).endswith("; the longer samples are not sent")
    ahead, all_sent = (asyncio.run(forecast(wanted, fits=known)) for known in (fits, None))
    expected = sum(
        len(sample.prompt) for sample in wanted if sample.line != line or fit.at(sample.length).fits
    )
    assert ahead.characters == expected < all_sent.characters


class CountingWords(ScriptedProvider):
    """Counts a token a word, and seven around each prompt."""

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        return [7 + len(prompt.split()) for prompt in prompts]


def test_the_room_for_a_reply_is_counted_as_the_prompt_is() -> None:
    """Words have fewer tokens than characters; what is around a prompt is not around a reply."""
    wanted = planned("copying/verbatim", lengths=[300], axes={"content": ["words"]})
    (counted,) = asyncio.run(context_fits(wanted, model_of(900), {}, CountingWords(["1"]))).values()
    assert counted.longest.answer == 8 + 300
    assert counted.longest.fits
    (estimated,) = asyncio.run(context_fits(wanted, model_of(250), {}, None)).values()
    assert estimated.longest.answer == 8 + 300 // 2
    assert not estimated.longest.fits
    assert str(estimated) == (
        f"at least {estimated.longest.tokens:,} tokens of the prompt and at least "
        f"{estimated.longest.answer:,} of a right reply have no room in the window of 250; not sent"
    )


def test_a_prompt_that_is_probably_too_long_is_said(lab: Lab) -> None:
    """Where no tokenizer counts, it is sent all the same."""
    wanted = planned(
        "context/ones", samples=1, lengths=[5], axes={"context": ["none", "tokens_1k"]}
    )
    model = resolve_model("vllm/m")
    fits = asyncio.run(context_fits(wanted, model, {"max_model_len": 1000}, None))
    assert not any(map(str, fits.values()))
    ((key, fit),) = [one for one in fits.items() if one[1].may_be_too_long]
    assert key[0]["context"] == "tokens_1k"
    assert fit.may_be_too_long.startswith("about 1,0")
    assert fit.may_be_too_long.endswith(" of a right reply are more than the window of 1,000")
    models = lab.folder / "models.yaml"
    models.write_text("openai/m: {window: 1000}\n")
    lab.monkeypatch.setenv("EYECHART_MODELS", str(models))
    arguments = ("--model", "openai/m", "--axis", "context=tokens_1k", "--lengths", "5")
    done = lab.bench("run", "--task", "context/ones", *arguments, "--dry-run")
    assert fit.may_be_too_long in done.out


def test_a_reply_is_asked_to_be_no_longer_than_the_model_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vendor rejects a longer one; a right reply that must be longer is not asked for."""
    models = tmp_path / "models.yaml"
    models.write_text(
        "openai/m: {max_output: 500}\nopenai/t: {max_output: 9000, reasoning: true}\n"
    )
    monkeypatch.setenv("EYECHART_MODELS", str(models))
    model = resolve_model("openai/m")
    assert (model.facts.max_reply, resolve_model("openai/t").facts.max_reply) == (500, 9000 - 8192)
    wanted = planned(
        "copying/verbatim", samples=2, lengths=[5, 20, 500], exact=True, axes={"content": ["uuids"]}
    )
    fits = asyncio.run(context_fits(wanted, model, {}, None))
    _, middle, longest = (
        fit for _, fit in sorted(fits.items(), key=lambda pair: pair[0][1].length)
    )
    assert middle.longest.at_most(5000) == 500
    assert not str(middle)
    assert middle.may_be_cut == (
        f"about {middle.longest.likely_answer:,} tokens of a right reply are more than the 500 "
        "that the model gives"
    )
    assert str(longest) == (
        f"at least {longest.longest.answer:,} tokens of a right reply are more than the 500 that "
        "the model gives; not sent"
    )
    assert longest.longest.answer > 500 * 37 // 16  # a token may have 16 characters
    ahead = asyncio.run(forecast(wanted, fits=fits))
    assert ahead.requests == 4
    assert ahead.most_output_tokens == 4 * 500


def test_the_expected_reply_is_estimated_as_a_prompt_is() -> None:
    """And not a token a character, which a right reply has at most."""
    wanted = planned("copying/verbatim", samples=1, lengths=[100], axes={"content": ["words"]})
    (sample,) = wanted
    ahead = asyncio.run(forecast(wanted))
    assert ahead.output_tokens == 8 + estimate_tokens(str(sample.target))
    assert ahead.output_tokens < ahead.prompt_tokens
    assert ahead.most_output_tokens > len(str(sample.target))


def test_of_a_long_plan_of_bands_a_few_lengths_stand_for_all() -> None:
    """The estimate is near the sum over all lengths."""
    wanted = planned("counting/sum", samples=600)
    assert wanted.size > 5000
    ahead = asyncio.run(forecast(wanted))
    assert ahead.characters == pytest.approx(sum(len(one.prompt) for one in wanted), rel=0.02)


@pytest.mark.parametrize(
    ("fit", "fits", "budget"),
    [
        (ContextFit(tokens=500, answer=10, window=1000, exact=True), True, 474),
        (ContextFit(tokens=100, answer=10, window=1000, exact=True), True, 600),
        (ContextFit(tokens=1000, answer=10, window=1000, exact=True), True, 10),
        (ContextFit(tokens=1200, answer=10, window=1000, exact=True), False, 10),
        (ContextFit(tokens=900, answer=10, window=1000, exact=False), True, 600),
        (ContextFit(tokens=2000, answer=10, window=1000, exact=False), False, 600),
    ],
)
def test_replies_are_asked_to_fit_beside_the_prompt(
    fit: ContextFit, budget: int, *, fits: bool
) -> None:
    """Within a tolerance, since a cell's samples differ; without a tokenizer nothing is cut."""
    assert fit.fits is fits
    assert fit.at_most(600) == budget


def test_a_batch_has_prices_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list price where no other is known; what a model thinks with is looked up as well."""
    models = tmp_path / "models.yaml"
    models.write_text(
        "openai/a:\n  reasoning: true\n"
        "  prices: {input: 2, output: 4, as_of: 2026-01-01, batch: 0.5}\n"
        "openai/b: {prices: {input: 2, output: 4, as_of: 2026-01-01}}\n"
    )
    monkeypatch.setenv("EYECHART_MODELS", str(models))
    one_by_one, batch, other = (
        resolve_model("openai/a"),
        resolve_model("openai/a", tier="batch"),
        resolve_model("openai/b", tier="batch"),
    )
    models_of_both = (one_by_one, batch, other)
    said = [model.prices.worst[0][1].said for model in models_of_both if model.prices is not None]
    assert said == [4, 2, 4]
    assert [model.has_tier_price for model in (one_by_one, batch, other)] == [True, True, False]
    assert [model.facts.room_to_think for model in (batch, other)] == [8192, 0]
    assert batch.provider == "openai"
    assert resolve_model("nobody/x").prices is None
    assert resolve_model("openai/gpt-4o", addresses=["http://127.0.0.1:9/v1"]).prices is None


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts are looked at in parts that the longest ones here fill."""
    monkeypatch.setattr(context_fit, "_PART", 500_000)


def amid_text(*contexts: str) -> Plan:
    """Rows of ten symbols amid texts of so many tokens, at all six depths."""
    axes = {"context": contexts, "depth": ["all"]}
    return planned("context/ones", axes=axes, lengths=[10], samples=4)


@pytest.mark.usefixtures("parts")
def test_two_samples_stand_for_a_cell_of_long_prompts() -> None:
    """A plan with such a cell is not counted whole, and what is counted is a part at a time."""
    counter = Counting()
    ahead = asyncio.run(forecast(amid_text("tokens_1k"), counter=counter))
    assert (ahead.exact, ahead.requests, len(counter.counted)) == (True, 24, 24)
    counter = Counting()
    ahead = asyncio.run(forecast(amid_text("tokens_1k", "tokens_32k"), counter=counter))
    assert (ahead.exact, ahead.requests, len(counter.counted)) == (False, 48, 6 * (3 + 2))
    assert ahead.counted
    long = sum(len(prompt) for prompt in counter.counted if len(prompt) > 100_000)
    short = sum(map(len, counter.counted)) - long
    assert long > 2 * counter.most
    assert ahead.prompt_tokens == pytest.approx(2 * long + 4 / 3 * short, rel=0.01)


@pytest.mark.usefixtures("parts")
def test_long_cells_are_looked_at_a_part_at_a_time() -> None:
    """Each cell has its fit all the same, counted or not."""
    wanted, counter = amid_text("none", "tokens_32k"), Counting()
    facts = {"max_model_len": 5_000}
    fits = asyncio.run(context_fits(wanted, model_of(None), facts, counter))
    rough = asyncio.run(context_fits(wanted, model_of(None), facts, None))
    long = [key for key in wanted.sizes if key[0]["context"] == "tokens_32k"]
    assert list(fits) == list(rough) == long
    assert not any(fit.longest.fits for fit in (*fits.values(), *rough.values()))
    assert 2 * counter.most < sum(map(len, counter.counted))
