"""Decides whether a cell's prompts and replies fit the model's window and its longest reply.

No other module decides this. The prompts of a band differ in length, so the shortest and the
longest one are measured, and those between are interpolated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from eyechart.harness.plan.cost import PHRASE_TOKENS, estimate_tokens, likely_answer
from eyechart.harness.plan.plan import make_sample, output_budget
from eyechart.harness.spec import CellKey, Condition, Line, Sample

if TYPE_CHECKING:
    from eyechart.harness.plan.plan import Plan
    from eyechart.harness.plan.resolved_model import ResolvedModel
    from eyechart.providers.base import Facts

_TOLERANCE = 0.05
"""Tokens by which samples of one length may differ."""
_MAX_TOKEN_CHARACTERS = 16
"""Most characters of one token, where no tokenizer counts."""
_RUN = re.compile(r"[^\W\d_]+|\d+|(?:[^\w\s]|_)+")
_MAX_TOKEN_RUNS = 2
"""Most runs of letters, digits or signs in one token, as in `x,`: tokenizers split between them."""
_PART = 16_000_000
"""Characters of prompts that are measured together."""
_T = TypeVar("_T")
_DOT = "."
"""A text of one token."""


@dataclass(frozen=True, slots=True)
class ContextFit:
    """Whether prompts of one length and their replies fit the window; a reply's most tokens."""

    tokens: int
    """Tokens of the prompt, with the replies between its messages; a lower bound if not `exact`."""
    answer: int
    """Tokens of the shortest right reply; a lower bound if not `exact`."""
    window: int | None
    exact: bool
    """Whether a tokenizer counted both."""
    max_reply: int | None = None
    """Most tokens of a reply, without thinking."""
    likely_answer: int = 0
    """Estimated tokens of a right reply."""
    likely_prompt: int = 0
    """Estimated tokens of the prompt."""

    @property
    def fits(self) -> bool:
        """False if no sample of this length can be answered."""
        return not self._is_too_long and not self._has_long_answer

    @property
    def _is_too_long(self) -> bool:
        size = (self.tokens + self.answer) * (1 - _TOLERANCE)
        return self.window is not None and size > self.window

    @property
    def _has_long_answer(self) -> bool:
        most = self.max_reply
        return most is not None and self.answer * (1 - _TOLERANCE) > most

    @property
    def may_be_cut(self) -> str:
        """Why right replies are probably cut off; empty if they are not."""
        if self.max_reply is None or self.likely_answer <= self.max_reply:
            return ""
        return (
            f"about {self.likely_answer:,} tokens of a right reply are more than the "
            f"{self.max_reply:,} that the model gives"
        )

    @property
    def may_be_too_long(self) -> str:
        """Why the prompt is probably too long, where no tokenizer counts; empty if it is not."""
        if self.window is None or self.likely_prompt + self.likely_answer <= self.window:
            return ""
        return (
            f"about {self.likely_prompt:,} tokens of the prompt and {self.likely_answer:,} of a "
            f"right reply are more than the window of {self.window:,}"
        )

    def at_most(self, budget: int) -> int:
        """The smallest of `budget`, the room in the window, and the model's longest reply."""
        if self.max_reply is not None:
            budget = min(budget, self.max_reply)
        if not self.exact or self.window is None:
            return budget
        left = self.window - round(self.tokens * (1 + _TOLERANCE)) - 1
        return max(self.answer, min(budget, left))

    def __str__(self) -> str:
        about = "" if self.exact else "at least "
        if self.window is None or not self._is_too_long:
            return (
                f"{about}{self.answer:,} tokens of a right reply are more than the "
                f"{self.max_reply:,} that the model gives"
            )
        return (
            f"{about}{self.tokens:,} tokens of the prompt and {about}{self.answer:,} of a right "
            f"reply have no room in the window of {self.window:,}"
        )


@dataclass(frozen=True, slots=True)
class CellFit:
    """The fit of the samples of one cell, by their lengths."""

    line: Line
    shortest: ContextFit
    longest: ContextFit

    def at(self, length: int) -> ContextFit:
        short, long = self.shortest, self.longest
        share = (length - self.line.low) / max(1, self.line.high - self.line.low)

        def between(low: int, high: int) -> int:
            return round(low + share * (high - low))

        return replace(
            long,
            tokens=between(short.tokens, long.tokens),
            answer=between(short.answer, long.answer),
            likely_answer=between(short.likely_answer, long.likely_answer),
            likely_prompt=between(short.likely_prompt, long.likely_prompt),
        )

    @property
    def may_be_cut(self) -> str:
        """Why right replies to the sent samples are probably cut off; empty if none is."""
        sent = self.longest if self.longest.fits else self.shortest
        return sent.may_be_cut if sent.fits else ""

    @property
    def may_be_too_long(self) -> str:
        """Why the longest prompt is probably too long although it is sent; otherwise empty."""
        return self.longest.may_be_too_long if self.longest.fits else ""

    def __str__(self) -> str:
        """Why samples are too long; empty if all fit."""
        if self.longest.fits:
            return ""
        if not self.shortest.fits:
            return f"{self.shortest}; not sent"
        return f"{self.longest}; the longer samples are not sent"


async def context_fits(
    plan: Plan,
    model: ResolvedModel,
    server: Mapping[str, object],
    provider: Facts | None,
    max_tokens: int | None = None,
) -> dict[CellKey, CellFit]:
    """The fit of each cell that may be too long for the window, or whose replies may be longer than
    the model's longest. Empty if the window and the longest reply are unknown.

    `server` has the facts that the server gives. Without a `provider` that counts tokens, a cell is
    too long only if no tokenizer could make it fit.
    """
    window, max_reply = model.window(server), model.facts.max_reply
    if window is None and max_reply is None:
        return {}
    ends = _close_ends(plan, window, max_reply, max_tokens)
    found: dict[CellKey, CellFit] = {}
    for part in in_parts(ends, lambda one: sum(len(sample.prompt) for sample in one[1])):
        samples = list({sample.id: sample for _, pair in part for sample in pair}.values())
        counts = None if provider is None else await _count(samples, provider)
        sizes = counts or list(map(_at_least, samples))
        fits = {
            sample.id: ContextFit(
                prompt + earlier * answer,
                answer,
                window,
                exact=counts is not None,
                max_reply=max_reply,
                likely_answer=likely,
                likely_prompt=(estimate_tokens(sample.prompt) if counts is None else prompt)
                + earlier * likely,
            )
            for sample, (prompt, answer) in zip(samples, sizes, strict=True)
            for earlier in (len(sample.messages) - 1,)
            for likely in (likely_answer(sample) if counts is None else answer,)
        }
        for key, (shortest, longest) in part:
            found[key] = CellFit(key[1], fits[shortest.id], fits[longest.id])
    return found


def _close_ends(
    plan: Plan, window: int | None, max_reply: int | None, max_tokens: int | None
) -> Iterator[tuple[CellKey, tuple[Sample, Sample]]]:
    """The shortest and the longest sample of each cell that may be too long."""
    for condition, line in plan.sizes:
        longest = _first(plan, condition, line.high)
        budget = (max_tokens or output_budget(longest)) * len(longest.messages)
        if (window is not None and len(longest.prompt.encode()) + budget > window) or (
            max_reply is not None and budget > max_reply
        ):
            shortest = longest if line.is_exact else _first(plan, condition, line.low)
            yield (condition, line), (shortest, longest)


def in_parts(values: Iterable[_T], characters: Callable[[_T], int]) -> Iterator[list[_T]]:
    """The values in parts of about `_PART` characters, so that not all prompts are in memory."""
    part: list[_T] = []
    size = 0
    for value in values:
        part.append(value)
        size += characters(value)
        if size >= _PART:
            yield part
            part, size = [], 0
    if part:
        yield part


async def _count(samples: Sequence[Sample], provider: Facts) -> list[tuple[int, int]] | None:
    """Tokens of each prompt and of its shortest right reply; `None` if nothing counts tokens."""
    if not samples:
        return []
    prompts = [sample.prompt for sample in samples]
    targets = [str(sample.target) for sample in samples]
    counts = await provider.count_tokens([*prompts, *targets, _DOT])
    if counts is None:
        return None
    *counts, around = counts  # the template and the system prompt are around a reply's text too
    of_targets = counts[len(prompts) :]
    answers = [PHRASE_TOKENS + max(1, count - around + 1) for count in of_targets]
    return list(zip(counts, answers, strict=False))


def _at_least(sample: Sample) -> tuple[int, int]:
    """Lower bounds of both numbers, where no tokenizer counts."""
    return least_tokens(sample.prompt), PHRASE_TOKENS + least_tokens(str(sample.target))


def least_tokens(text: str) -> int:
    """A lower bound of the tokens of `text`, which holds for any usual tokenizer."""
    runs = sum(1 for _ in _RUN.finditer(text))
    return max(len(text) // _MAX_TOKEN_CHARACTERS, runs // _MAX_TOKEN_RUNS)


def _first(plan: Plan, condition: Condition, length: int) -> Sample:
    return make_sample(plan.task, condition, Line.exact(length), 0, plan.seed)
