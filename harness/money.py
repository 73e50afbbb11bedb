"""What a run costs: tokens before it is sent, dollars as they are spent."""

from __future__ import annotations

import re
from dataclasses import dataclass

from providers.base import Usage
from providers.model_facts import Prices

_PIECE = re.compile(r"[^\W\d_]{1,5}|\d|[^\w\s]|_|\n")
PER = 1_000_000
"""Prices are for so many tokens."""


def estimate_tokens(text: str) -> int:
    """Tokens of `text` where no tokenizer is at hand: one a digit, a sign, a line end, and one for
    every five letters of a word or part of them.
    """
    return sum(1 for _ in _PIECE.finditer(text))


@dataclass(slots=True)
class Meter:
    """Dollars spent so far, and the line where to stop."""

    prices: Prices | None = None
    budget: float | None = None
    spent: float = 0.0
    full: bool = False
    """Whether what is left of the budget is too little for anything more."""

    def charge(self, usage: Usage) -> None:
        """Adds an exchange, where prices are known."""
        if self.prices is not None:
            self.spent += cost(self.prices, usage.prompt_tokens, usage.output_tokens)

    @property
    def exhausted(self) -> bool:
        """Whether nothing more may be sent."""
        return self.full or (self.budget is not None and self.spent >= self.budget)


def cost(prices: Prices, prompt_tokens: float, output_tokens: float) -> float:
    """Dollars."""
    return (prompt_tokens * prices.input + output_tokens * prices.output) / PER
