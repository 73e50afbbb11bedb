"""Estimates the tokens and dollars of a run before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import TYPE_CHECKING, NamedTuple

from eyechart.harness.plan.cost import cost, estimate_tokens, likely_answer, most_cost, most_tokens
from eyechart.harness.plan.plan import output_budget
from eyechart.harness.spec import CellKey, Sample
from eyechart.providers.base import Usage

if TYPE_CHECKING:
    from eyechart.harness.plan.context_fit import CellFit
    from eyechart.harness.plan.plan import Plan
    from eyechart.providers.base import Provider
    from eyechart.providers.catalog.prices import Prices

_MAX_COUNTED = 5000
"""In plans of at most this many samples, every sample is counted."""
_SAMPLES_OF_A_CELL = 3
"""In longer plans, samples of each cell that stand for the whole cell."""
_SAMPLES_OF_A_BAND = 13
"""The same for cells with several lengths. It is a Fibonacci number: after so many samples the
lengths are spread most evenly.
"""


class _Likely(NamedTuple):
    """One sample, and how many it stands for."""

    weight: float
    prompt: int
    most_prompt: int
    output: int
    most_output: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """Tokens of a whole plan, without the samples that do not fit."""

    requests: int
    characters: int
    prompt_tokens: int
    exact: bool
    """Whether the model's tokenizer counted, and not the rule of `estimate_tokens`."""
    most_prompt_tokens: int
    """An upper bound: equal if a tokenizer counted, else the number of bytes."""
    output_tokens: int
    """Expected tokens of replies."""
    thought_tokens: int
    """Expected tokens among them for reasoning, by an assumption."""
    most_output_tokens: int
    """An upper bound: every reply uses its whole budget."""
    samples: Sequence[_Likely] = field(default=(), repr=False)
    _priced: list[tuple[Prices, tuple[float, float]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """The last prices with their dollars, since thousands of variants of a model share them."""

    def dollars(self, prices: Prices) -> tuple[float, float]:
        """Expected dollars, at the prices of this hour and without caches; and at most."""
        if not self._priced or self._priced[0][0] != prices:
            self._priced[:] = [(prices, self._dollars(prices))]
        return self._priced[0][1]

    def _dollars(self, prices: Prices) -> tuple[float, float]:
        now_s = time()
        expected = most = 0.0
        for weight, prompt, most_prompt, output, most_output in self.samples:
            used = Usage(prompt, output, cache_read_tokens=0, cache_write_tokens=0)
            expected += weight * (cost(prices, used, now_s) or 0.0)
            rates = prices.most(most_prompt)
            most += weight * most_cost(rates, most_prompt, most_output)
        return expected, most


async def forecast(
    plan: Plan,
    *,
    max_tokens: int | None = None,
    think_tokens: int = 0,
    likely_thought: int = 0,
    counter: Provider | None = None,
    system: str | None = None,
    fits: Mapping[CellKey, CellFit] | None = None,
) -> Forecast:
    """Adds up the plan without the cells that do not fit the window; in a long plan a few samples
    of each cell stand for all.

    `think_tokens` are what a reply may take for reasoning besides its maximum, `likely_thought`
    what it is expected to take. `counter` is a provider that counts tokens without cost, if there
    is one; it adds the system prompt itself.
    """
    whole = plan.size <= _MAX_COUNTED
    chosen: Iterable[tuple[Sample, float]] = (
        ((sample, 1.0) for sample in plan) if whole else _some_of(plan)
    )
    known = fits or {}
    samples: list[Sample] = []
    weights: list[float] = []
    budgets: list[int] = []
    for sample, weight in chosen:
        cell_fit = known.get(sample.key)
        fit = None if cell_fit is None else cell_fit.at(sample.length)
        if fit is None or fit.fits:
            budget = max_tokens or output_budget(sample)
            samples.append(sample)
            weights.append(weight)
            budgets.append(think_tokens + (budget if fit is None else fit.at_most(budget)))
    prompts = [sample.prompt for sample in samples]
    counts = None if counter is None else await counter.count_tokens(prompts)
    sent = system or ""
    tokens = counts or [estimate_tokens(sent) + estimate_tokens(prompt) for prompt in prompts]
    at_most = counts or [most_tokens(sent) + most_tokens(prompt) for prompt in prompts]
    expected = [
        min(budget, _expected_output(sample) + likely_thought)
        for sample, budget in zip(samples, budgets, strict=True)
    ]

    def total(values: Sequence[int]) -> int:
        return round(sum(value * weight for value, weight in zip(values, weights, strict=True)))

    return Forecast(
        requests=round(sum(weights)),
        characters=total(list(map(len, prompts))),
        prompt_tokens=total(tokens),
        most_prompt_tokens=total(at_most),
        exact=counts is not None and whole,
        output_tokens=total(expected),
        thought_tokens=total([likely_thought] * len(samples)),
        most_output_tokens=total(budgets),
        samples=tuple(map(_Likely, weights, tokens, at_most, expected, budgets)),
    )


def _some_of(plan: Plan) -> Iterable[tuple[Sample, float]]:
    """The first samples of each cell, each with the number of samples that it stands for."""
    for (condition, line), size in plan.sizes.items():
        rows = plan.shard.rows(size)
        first = rows[: _SAMPLES_OF_A_CELL if line.is_exact else _SAMPLES_OF_A_BAND]
        for index in first:
            yield plan.sample(condition, line, index), len(rows) / len(first)


def _expected_output(sample: Sample) -> int:
    """The answer alone, or half of the budget if the model reasons first."""
    if sample.condition.get("strategy", "direct") == "direct":
        return likely_answer(sample)
    return output_budget(sample) // 2
