"""What a dry run knows: requests, their forecast, and the differences that they can show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eyechart.harness.analysis.comparison.power import smallest_factor, smallest_fall
from eyechart.harness.journal.answers import AnswerIndex
from eyechart.harness.plan.context_fit import CellFit
from eyechart.harness.plan.estimate import Forecast, Thinking
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.selection import precision_text
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import CellKey, Sample
from eyechart.providers.catalog.prices import Prices


@dataclass(frozen=True, slots=True)
class Bill:
    """What a plan takes, without the samples that do not fit."""

    requests: int
    """Samples."""
    prompt_tokens: int
    output_tokens: int
    """0 where no reply is written."""
    dollars: float | None
    """`None` where no prices are known."""

    def times(self, factor: float) -> Bill:
        """As many times as much; whole numbers are rounded up."""
        return Bill(
            math.ceil(self.requests * factor),
            math.ceil(self.prompt_tokens * factor),
            math.ceil(self.output_tokens * factor),
            None if self.dollars is None else self.dollars * factor,
        )

    def without(self, part: Bill) -> Bill:
        """What is left of the plan without a part of it; nothing is below 0."""
        dollars = None
        if self.dollars is not None and part.dollars is not None:
            dollars = max(0.0, self.dollars - part.dollars)
        return Bill(
            max(0, self.requests - part.requests),
            max(0, self.prompt_tokens - part.prompt_tokens),
            max(0, self.output_tokens - part.output_tokens),
            dollars,
        )


@dataclass(frozen=True, slots=True)
class Waves:
    """What all waves of an adaptive run may ask together."""

    precision: float | None
    """Octaves to which each effective length shall be known; `None` is as a full run knows it."""
    most_samples: int
    """Most samples of the task on the lines that are known, the answered ones included."""
    longer_lines: bool
    """Whether longer lines may follow when the server has reported its window."""
    most_of_command: int | None
    """Most samples that the command may ask of all tasks, if it has a limit."""
    most: Bill | None
    """An upper bound of what is not answered yet: all samples on the longest lines, with the
    longest replies. `None` where lines beyond the task's may follow."""
    expected: Bill | None
    """Of a model right to `right_to`, with what `most_of_command` probably leaves after the runs
    before; `None` of a run that has begun and goes on, and where it is not known what those leave.
    """
    right_to: int
    """The length in the middle of the lines."""

    def __str__(self) -> str:
        limit = f"{self.most_samples:,} samples of this task"
        if self.most_of_command is not None and (
            self.most_of_command < self.most_samples or self.longer_lines
        ):
            limit = f"{self.most_of_command:,} of the command"
        elif self.longer_lines:
            limit += ", and more on longer lines, if the server says that its window has room"
        return (
            "each wave follows from the replies before it, until the effective length is known to "
            f"{precision_text(self.precision)}; at most {limit}"
        )


@dataclass(frozen=True, slots=True)
class CanShow:
    """The smallest differences that a comparison of two such runs finds with a power of 80 %;
    `None` where it finds none.
    """

    tests: int
    """Number of tests in the correction."""
    fall: float | None
    """The smallest fall at one length from the accuracy `FROM`."""
    factor: float | None
    """The smallest factor between effective lengths."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The requests of one run, with their forecast."""

    request: RunRequest
    forecast: Forecast
    fits: Mapping[CellKey, CellFit]
    thinking: Thinking
    answers: AnswerIndex | None
    """The answers of the run's folder; `None` where there are none, and where the run starts over.
    """
    waves: Waves | None = None
    """What follows the requests, in an adaptive run."""

    @property
    def writes_replies(self) -> bool:
        """Whether the model writes replies, or says how probable given ones are."""
        return self.request.settings.read == "reply"

    @property
    def answered(self) -> int:
        """How many planned samples have answers."""
        plan, answers = self.request.plan, self.answers
        if answers is None:
            return 0
        return sum(answers.count_in(cell, plan.shard) for cell in plan.cells)

    @property
    def answered_turns(self) -> int:
        """How many requests of samples that are asked over turns are answered, also those of
        samples that a run left between two turns.
        """
        plan, answers = self.request.plan, self.answers
        if answers is None:
            return 0
        return sum(
            len(sample.messages)
            if answers.has(answers.cell_key(sample), sample.index, sample.draw)
            else len(answers.go_on(sample).said)
            for sample in plan
        )


def bill_of(preview: Preview, prices: Prices | None, *, is_most: bool) -> Bill:
    """What a preview's forecast takes: expected, or with `is_most` at most."""
    ahead = preview.forecast
    prompts, replies = (
        (ahead.most_prompt_tokens, ahead.most_output_tokens)
        if is_most
        else (ahead.prompt_tokens, ahead.output_tokens)
    )
    return Bill(
        ahead.left,
        prompts,
        replies if preview.writes_replies else 0,
        None if prices is None else ahead.dollars(prices)[is_most],
    )


def dollars_of(prices: Prices | None, previews: Sequence[Preview]) -> tuple[float, float] | None:
    """Expected dollars of all these runs, and at most; `None` if no prices are known."""
    if prices is None:
        return None
    each = [preview.forecast.dollars(prices) for preview in previews]
    return sum(expected for expected, _ in each), sum(most for _, most in each)


@dataclass(frozen=True, slots=True)
class WavesTogether:
    """What all waves of several adaptive runs take. `None` where it is not known."""

    expected: Bill | None
    """As `Waves.expected`."""
    most_requests: int | None
    """Most samples in all, the answered ones included; `None` where longer lines may follow."""
    most_dollars: float | None
    """As `Waves.most`."""

    @property
    def dollars(self) -> tuple[float | None, float | None]:
        """Expected, and at most."""
        return None if self.expected is None else self.expected.dollars, self.most_dollars


def all_waves(previews: Sequence[Preview], most_of_command: int | None) -> WavesTogether:
    """What all waves of adaptive runs take, with at most `most_of_command` new requests."""
    found = [preview.waves for preview in previews if preview.waves is not None]
    limits = (
        [] if any(one.longer_lines for one in found) else [sum(one.most_samples for one in found)]
    )
    if most_of_command is not None:
        limits.append(most_of_command + sum(preview.answered for preview in previews))
    expected = [one.expected for one in found if one.expected is not None]
    most = [
        one.most.dollars for one in found if one.most is not None and one.most.dollars is not None
    ]
    return WavesTogether(
        _sum(expected) if len(expected) == len(found) else None,
        min(limits, default=None),
        sum(most) if len(most) == len(found) else None,
    )


def _sum(bills: Sequence[Bill]) -> Bill:
    dollars = [bill.dollars for bill in bills if bill.dollars is not None]
    return Bill(
        sum(bill.requests for bill in bills),
        sum(bill.prompt_tokens for bill in bills),
        sum(bill.output_tokens for bill in bills),
        sum(dollars) if len(dollars) == len(bills) else None,
    )


def can_show(plan: Plan) -> CanShow:
    """What a comparison of two full runs of a plan finds."""
    sizes = plan.sizes
    first = plan.conditions[0]
    lines = [(line, size) for (condition, line), size in sizes.items() if condition == first]
    return CanShow(
        len(sizes), smallest_fall(min(sizes.values()), len(sizes)), smallest_factor(tuple(lines))
    )


def first_sample(plan: Plan) -> Sample:
    """The first sample of a plan; where no wave is asked, the first one of all that may be."""
    return next(iter(plan), None) or plan.sample(plan.conditions[0], plan.lines[0], 0)
