"""The verdict on a forced choice: the rank of the right answer among options by their probability.

The right option is the first of a record. Of options with the same probability it comes last: a
model that cannot tell them apart does not know the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .answers import TYPES
from .extraction import Extraction
from .outcomes import Outcome
from .verdict import Verdict, right_or_wrong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answer_type import AnswerForm
    from .verdict import Target


class WeighedOption(Protocol):
    """A text to choose, with the natural logarithm of its probability."""

    @property
    def text(self) -> str: ...
    @property
    def logprob(self) -> float: ...


@dataclass(frozen=True, slots=True)
class RightRank:
    """Where the right option stands."""

    rank: int
    """1 if the right option is the most probable one."""
    of: int
    """Number of options."""
    margin: float
    """Log-probability of the right option less that of the best wrong one."""
    chosen: str
    """The most probable option."""

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.of}, margin {self.margin:.2f}"


def ranked(options: Sequence[WeighedOption]) -> RightRank:
    """Ranks at least two options, of which the first is right."""
    right, *others = options
    best = max(others, key=lambda option: option.logprob)
    rank = 1 + sum(option.logprob >= right.logprob for option in others)
    chosen = right if rank == 1 else best
    return RightRank(rank, len(options), right.logprob - best.logprob, chosen.text)


class Belief(NamedTuple):
    """What the probabilities of one sample's options say, which add up to 1."""

    confidence: float
    """Probability of the most probable option."""
    brier: float
    """Brier's score (1950): the sum over options of (probability - outcome) squared, where the
    outcome is 1 for the right one and else 0. From 0, sure and right, to 2, sure and wrong."""
    tied: bool
    """Whether the right option has the same probability as the best wrong one."""


def belief(options: Sequence[WeighedOption]) -> Belief:
    """The softmax of the log-probabilities, its score, and whether the first, right option is tied
    with the best wrong one.
    """
    largest = max(option.logprob for option in options)
    weights = [math.exp(option.logprob - largest) for option in options]
    right, *others = (weight / math.fsum(weights) for weight in weights)
    brier = (1 - right) ** 2 + math.fsum(other**2 for other in others)
    return Belief(max(right, *others), brier, ranked(options).margin == 0)


def choice_verdict(
    options: Sequence[WeighedOption], target: Target, accept: Sequence[str], form: AnswerForm
) -> Verdict:
    """The verdict: correct at rank 1. Its answer is the most probable option, so that errors and
    similarity are those of a reply that says it. Never raises, whatever text an option is.
    """
    found, kind = ranked(options), TYPES[form.type]
    try:
        read = Extraction(kind.meant(found.chosen, form), 0, len(found.chosen))
    except (ValueError, LookupError):
        return Verdict(Outcome.UNPARSED, why=f"the option {found.chosen!r} is no {form.type}")
    verdict = kind.compare(read, found.chosen, (target, *accept), form)
    is_right, right = found.rank == 1, options[0].text
    preferred = f"prefers {found.chosen!r} to {right!r}"
    if found.margin == 0:
        preferred = f"{found.chosen!r} is as probable as {right!r}, which counts as not right"
    why = "" if is_right else f"{preferred}: {found}"
    return replace(verdict, outcome=right_or_wrong(right=is_right), why=why)
