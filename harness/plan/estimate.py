"""What a run will take, before it is sent: tokens, dollars, and cells that no window holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from harness.plan.cost import cost, estimate_tokens, most_tokens
from harness.plan.plan import answer_budget, output_budget
from harness.spec import CellKey, Sample, condition_label

if TYPE_CHECKING:
    from harness.plan.plan import Plan
    from providers.base import Provider
    from providers.catalog.model_facts import ModelFacts, Prices

_TOLERANCE = 0.05
"""How much the samples of a cell may differ in tokens."""
_MOST_CHARACTERS = 16
"""Of one token, where nobody counts: a prompt has at least a sixteenth of its characters."""
_COUNTED = 5000
"""Prompts that are counted one by one; of a longer plan a few of each cell are."""
_OF_EACH_CELL = 3
_THOUGHT = 1 / 8
"""Share of its room that a reasoning model is expected to use."""


@dataclass(frozen=True, slots=True)
class Room:
    """How one cell's prompts fit the window."""

    tokens: int
    """Of its first prompt; at least so many where it is not `exact`."""
    answer: int
    """Tokens of the shortest right reply."""
    window: int
    exact: bool

    @property
    def fits(self) -> bool:
        """False where no sample of the cell can be answered."""
        return self.tokens * (1 - _TOLERANCE) + self.answer <= self.window

    def at_most(self, budget: int) -> int:
        """`budget`, or what the prompt leaves of the window where that is less."""
        if not self.exact:
            return budget
        left = self.window - round(self.tokens * (1 + _TOLERANCE)) - 1
        return max(self.answer, min(budget, left))

    def __str__(self) -> str:
        about = "" if self.exact else "at least "
        return f"a prompt of {about}{self.tokens:,} tokens has no room in {self.window:,}"


async def rooms(
    plan: Plan, provider: Provider | None, window: int | None, max_tokens: int | None = None
) -> dict[CellKey, Room]:
    """A room for each cell that may be too long for `window` tokens; none where it is not known.

    Without a provider that counts only cells that no tokenizer could make fit are too long.
    """
    if window is None:
        return {}
    close = [
        sample
        for condition, length in product(plan.conditions, plan.lengths)
        if len((sample := plan.sample(condition, length, 0)).prompt.encode())
        + (max_tokens or output_budget(sample))
        > window
    ]
    counts = None
    if provider is not None and close:
        counts = await provider.count_tokens([sample.prompt for sample in close])
    return {
        (condition_label(sample.condition), sample.length): Room(
            tokens=len(sample.prompt) // _MOST_CHARACTERS if counts is None else counts[place],
            answer=answer_budget(sample),
            window=window,
            exact=counts is not None,
        )
        for place, sample in enumerate(close)
    }


@dataclass(frozen=True, slots=True)
class Forecast:
    """Tokens of a whole plan."""

    characters: int
    prompt_tokens: int
    exact: bool
    """Counted by the model's tokenizer, and not by the rule of `estimate_tokens`."""
    most_prompt_tokens: int
    """The same where nothing was estimated; else as many as there are bytes."""
    output_tokens: int
    """Expected."""
    most_output_tokens: int
    """If every reply uses up its budget."""

    def dollars(self, prices: Prices) -> tuple[float, float]:
        """Expected, and at most."""
        return (
            cost(prices, self.prompt_tokens, self.output_tokens),
            cost(prices, self.most_prompt_tokens, self.most_output_tokens),
        )


async def forecast(
    plan: Plan,
    *,
    max_tokens: int | None,
    facts: ModelFacts,
    counter: Provider | None,
    system: str | None = None,
    room: Mapping[CellKey, Room] | None = None,
) -> Forecast:
    """Adds up the plan but for the cells that have no `room`; of a long one, a few samples of each
    cell stand for all.

    `counter` is a provider that can count without cost, if there is one; it knows the system
    prompt itself.
    """
    whole = plan.size <= _COUNTED
    chosen: Iterable[tuple[Sample, float]] = (
        ((sample, 1.0) for sample in plan) if whole else _some_of(plan)
    )
    unsent = {key for key, fit in (room or {}).items() if not fit.fits}
    pairs = [
        (sample, weight)
        for sample, weight in chosen
        if (condition_label(sample.condition), sample.length) not in unsent
    ]
    samples = [sample for sample, _ in pairs]
    weights = [weight for _, weight in pairs]
    prompts = [sample.prompt for sample in samples]
    counts = None if counter is None else await counter.count_tokens(prompts)
    sent = system or ""
    tokens = counts or [estimate_tokens(sent) + estimate_tokens(prompt) for prompt in prompts]
    at_most = counts or [most_tokens(sent) + most_tokens(prompt) for prompt in prompts]
    think = facts.room_to_think
    budgets = [(max_tokens or output_budget(sample)) + think for sample in samples]
    expected = [
        min(budget, _expected_output(sample) + round(think * _THOUGHT))
        for sample, budget in zip(samples, budgets, strict=True)
    ]

    def total(values: Sequence[int]) -> int:
        return round(sum(value * weight for value, weight in zip(values, weights, strict=True)))

    return Forecast(
        characters=total(list(map(len, prompts))),
        prompt_tokens=total(tokens),
        most_prompt_tokens=total(at_most),
        exact=counts is not None and whole,
        output_tokens=total(expected),
        most_output_tokens=total(budgets),
    )


def _some_of(plan: Plan) -> Iterable[tuple[Sample, float]]:
    """The first samples of each cell and how many each stands for."""
    for condition, length in product(plan.conditions, plan.lengths):
        size = plan.cell_size(length)
        taken = min(size, _OF_EACH_CELL)
        for index in range(taken):
            yield plan.sample(condition, length, index), size / taken


def _expected_output(sample: Sample) -> int:
    """The answer alone, or half of the budget where the model is to reason first."""
    if sample.condition.get("strategy", "direct") == "direct":
        return answer_budget(sample)
    return output_budget(sample) // 2
