"""Estimates the tokens and dollars of a run before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from eyechart.harness.plan.context_fit import in_parts
from eyechart.harness.plan.cost import cost, estimate_tokens, likely_answer, most_cost, most_tokens
from eyechart.harness.plan.plan import output_budget
from eyechart.harness.spec import CellKey, Condition, Line, Sample
from eyechart.providers.base import Usage

if TYPE_CHECKING:
    from eyechart.harness.plan.context_fit import CellFit, ContextFit
    from eyechart.harness.plan.plan import Plan
    from eyechart.providers.base import Provider
    from eyechart.providers.catalog.prices import Prices

_MAX_COUNTED = 5000
"""In plans of at most this many samples, every sample is counted."""
_SAMPLES_OF_A_CELL = 3
"""In longer plans, samples of each cell that stand for the whole cell."""
_SAMPLES_OF_A_BAND = 13
"""The same for cells with several lengths. It is a Fibonacci number: after this many samples the
lengths are spread most evenly.
"""
_LONG = 100_000
"""A cell whose prompts have more characters is long: plans with one are not counted whole."""
_SAMPLES_OF_A_LONG_CELL = 2
"""The same for a long cell, whose prompts are mostly the text around the rows."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What thinking may add to each reply of a model."""

    likely: int = 0
    """Tokens of thinking that a reply is expected to have."""
    most: int | None = None
    """Tokens that a reply may have with its answer; `None` if they are the answer's alone, or if
    the user has set them."""
    cut: int = 0
    """A sample may be asked several times until its reply has room. These are the most tokens that
    its earlier replies, which were cut off, may have together."""
    seen: int = 0
    """Earlier replies whose mean `likely` is; 0 if it is an assumption."""

    @property
    def is_known(self) -> bool:
        """Whether the model is known to think."""
        return self.likely > 0 or self.most is not None

    def worst(self, answer: int) -> tuple[int, int]:
        """Most requests for a sample whose answer may have this many tokens, and most tokens of all
        their replies. Each request after the second gives at least twice the tokens of the one
        before, unless the limit is reached.
        """
        if self.most is None:
            return 1, answer
        most = max(self.most, answer)
        return 2 + (most // answer).bit_length(), most + self.cut


class Answers(Protocol):
    """Which samples have an answer already."""

    def has(self, key: CellKey, index: int, draw: int = 1) -> bool:
        """Whether the sample has one."""
        ...

    def go_on(self, sample: Sample) -> Sample:
        """The sample with the turns that are answered already."""
        ...


class _Chosen(NamedTuple):
    """A sample that stands for others."""

    sample: Sample
    planned: float
    """How many of the plan."""
    left: float
    """How many of those without an answer."""


class _Likely(NamedTuple):
    """One request, and how many it stands for."""

    weight: float
    is_first: bool
    """Whether it is the only one of its sample, or the first one that is left."""
    characters: int
    prompt: int
    most_prompt: int
    answer: int
    output: int
    most_output: int
    most_requests: int

    @property
    def thought(self) -> int:
        return self.output - self.answer


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a plan takes, without the samples that do not fit. Characters, tokens and dollars are
    those of what has no answer yet.
    """

    requests: int
    """Samples of the whole plan."""
    turns: int
    """Their requests: a sample in turns has several."""
    left: int
    """Samples without an answer."""
    characters: int
    prompt_tokens: int
    most_prompt_tokens: int
    """An upper bound: equal if a tokenizer counted, else the number of bytes."""
    counted: bool
    """Whether the model's tokenizer counted, and not the rule of `estimate_tokens`."""
    exact: bool
    """Whether it counted all prompts, and not some of each cell that stand for all."""
    output_tokens: int
    """Expected tokens of replies."""
    thought_tokens: int
    """Expected tokens among them for thinking."""
    most_output_tokens: int
    """An upper bound: every reply uses its whole budget, and where the model thinks, all the room
    that there is, after it was cut off with less."""
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
        for one in self.samples:
            used = Usage(one.prompt, one.output, cache_read_tokens=0, cache_write_tokens=0)
            expected += one.weight * (cost(prices, used, now_s) or 0.0)
            rates, sent = prices.most(one.most_prompt), one.most_requests * one.most_prompt
            most += one.weight * most_cost(rates, sent, one.most_output, one.most_requests)
        return expected, most


async def forecast(
    plan: Plan,
    *,
    max_tokens: int | None = None,
    thinking: Thinking = Thinking(),
    counter: Provider | None = None,
    system: str | None = None,
    fits: Mapping[CellKey, CellFit] | None = None,
    answers: Answers | None = None,
) -> Forecast:
    """Adds up the plan without the cells that do not fit the window, and without what `answers`
    has; in a long plan, and where prompts are long, a few samples of each cell stand for all.

    `counter` is a provider that counts tokens without cost, if there is one; it adds the system
    prompt itself.
    """
    once = replace(plan, draws=1)
    whole = once.size <= _MAX_COUNTED and not any(_is_long(plan, *cell) for cell in plan.sizes)
    chosen = _all_of(once, plan.draws, answers) if whole else _some_of(plan, answers)
    sent = _Sent(max_tokens, thinking, counter, system or "", counted=counter is not None)
    known = fits or {}
    planned = planned_turns = 0.0
    likely: list[_Likely] = []

    def to_send() -> Iterator[tuple[Sample, float, ContextFit | None]]:
        nonlocal planned, planned_turns
        for one in chosen:
            fit = _fit_of(one.sample, known)
            if fit is not None and not fit.fits:
                continue
            planned += one.planned
            planned_turns += one.planned * len(one.sample.messages)
            if one.left:
                yield one.sample, one.left, fit

    for part in in_parts(to_send(), lambda one: len(one[0].prompt)):
        likely += await sent.likely(part)

    def total(measure: Callable[[_Likely], int]) -> int:
        return round(sum(measure(one) * one.weight for one in likely))

    return Forecast(
        requests=round(planned),
        turns=round(planned_turns),
        left=total(lambda one: one.is_first),
        characters=total(lambda one: one.characters),
        prompt_tokens=total(lambda one: one.prompt),
        most_prompt_tokens=total(lambda one: one.most_prompt),
        counted=sent.counted,
        exact=sent.counted and whole,
        output_tokens=total(lambda one: one.output),
        thought_tokens=total(lambda one: one.thought),
        most_output_tokens=total(lambda one: one.most_output),
        samples=tuple(likely),
    )


def _fit_of(sample: Sample, fits: Mapping[CellKey, CellFit]) -> ContextFit | None:
    cell_fit = fits.get(sample.key)
    return None if cell_fit is None else cell_fit.at(sample.length)


@dataclass
class _Sent:
    """How samples are sent, for the estimate of each."""

    max_tokens: int | None
    thinking: Thinking
    counter: Provider | None
    system: str
    counted: bool
    """Whether the counter counts, as far as is known."""

    async def likely(
        self, part: Sequence[tuple[Sample, float, ContextFit | None]]
    ) -> Iterator[_Likely]:
        """What each request takes; the samples that are given are in memory together."""
        prompts = [message for sample, _, _ in part for message in sample.messages]
        counts = None if self.counter is None else await self.counter.count_tokens(prompts)
        self.counted = counts is not None
        tokens = iter(counts or self._each(estimate_tokens, prompts))
        at_most = iter(counts or self._each(most_tokens, prompts))
        return (request for one in part for request in self._requests(one, tokens, at_most))

    def _each(self, measure: Callable[[str], int], prompts: Sequence[str]) -> list[int]:
        around = measure(self.system)
        return [around + measure(prompt) for prompt in prompts]

    def _requests(
        self,
        chosen: tuple[Sample, float, ContextFit | None],
        tokens: Iterator[int],
        at_most: Iterator[int],
    ) -> Iterator[_Likely]:
        """Those of one sample: each turn sends all that was said before it."""
        sample, weight, fit = chosen
        budget = self.max_tokens or output_budget(sample)
        budget = budget if fit is None else fit.at_most(budget)
        requests, most = self.thinking.worst(budget)
        answer = min(budget, _expected_output(sample))
        output = min(most, answer + self.thinking.likely)
        size = said = most_said = 0
        for turn, message in enumerate(sample.messages):
            size += len(message)
            said += next(tokens)
            most_said += next(at_most)
            sent, most_sent = said + turn * answer, most_said + turn * budget
            if turn < (answered := len(sample.said)):
                continue
            is_first = turn == answered
            yield _Likely(weight, is_first, size, sent, most_sent, answer, output, most, requests)


def _all_of(once: Plan, draws: int, answers: Answers | None) -> Iterator[_Chosen]:
    """Every sample, with all its draws."""
    for sample in once:
        if answers is None:
            yield _Chosen(sample, draws, draws)
        else:
            left = _left(answers, sample.key, sample.index, draws)
            yield _Chosen(answers.go_on(sample), draws, left)


def _some_of(plan: Plan, answers: Answers | None) -> Iterator[_Chosen]:
    """The first samples of each cell, and the first of those without an answer, if there are
    other ones.
    """
    for key, size in plan.sizes.items():
        rows = plan.shard.rows(size)
        most = _SAMPLES_OF_A_CELL if key[1].is_exact else _SAMPLES_OF_A_BAND
        most = _SAMPLES_OF_A_LONG_CELL if _is_long(plan, *key) else most
        left_of = dict.fromkeys(rows, plan.draws)
        if answers is not None:
            left_of = {row: _left(answers, key, row, plan.draws) for row in rows}
        first, asked = rows[:most], [row for row in rows if left_of[row]][:most]
        planned = plan.draws * len(rows) / len(first)
        left = sum(left_of.values()) / len(asked) if asked else 0.0
        for row in sorted({*first, *asked}):
            of_row = planned * (row in first), left * (row in asked)
            yield _Chosen(plan.sample(*key, row), *of_row)


def _left(answers: Answers, key: CellKey, index: int, draws: int) -> int:
    """How many draws of a sample have no answer."""
    return sum(not answers.has(key, index, draw) for draw in range(1, draws + 1))


def _is_long(plan: Plan, condition: Condition, line: Line) -> bool:
    return len(plan.sample(condition, line, 0).prompt) > _LONG


def _expected_output(sample: Sample) -> int:
    """The answer alone, or half of the budget if the model reasons first."""
    if sample.condition.get("strategy", "direct") == "direct":
        return likely_answer(sample)
    return output_budget(sample) // 2
