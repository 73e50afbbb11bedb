"""Whether a cell's prompts and replies fit the model's window: the one place that decides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from harness.plan.plan import answer_budget, output_budget
from harness.spec import CellKey

if TYPE_CHECKING:
    from harness.plan.plan import Plan
    from harness.plan.resolved_model import ResolvedModel
    from providers.base import Provider

_TOLERANCE = 0.05
"""How much the samples of a cell may differ in tokens."""
_MAX_TOKEN_CHARACTERS = 16
"""Characters of one token, at most, where no tokenizer counts."""


@dataclass(frozen=True, slots=True)
class ContextFit:
    """Whether the prompts of a cell fit the context window, and how much room replies have."""

    tokens: int
    """Of its first prompt; at least so many where it is not `exact`."""
    answer: int
    """Tokens of the shortest right reply."""
    window: int
    exact: bool
    """Whether a tokenizer counted `tokens`."""

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


async def context_fits(
    plan: Plan,
    model: ResolvedModel,
    server: Mapping[str, object],
    provider: Provider | None,
    max_tokens: int | None = None,
) -> dict[CellKey, ContextFit]:
    """The fit of each cell that may be too long for the window; none where no window is known.

    `server` is what the server says of itself. Without a `provider` that counts tokens, a cell is
    too long only where no tokenizer could make it fit.
    """
    window = model.window(server)
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
        sample.key: ContextFit(
            tokens=len(sample.prompt) // _MAX_TOKEN_CHARACTERS if counts is None else counts[place],
            answer=answer_budget(sample),
            window=window,
            exact=counts is not None,
        )
        for place, sample in enumerate(close)
    }
