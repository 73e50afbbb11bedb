"""Which numbers a run can have: one bound for each, for command line, Python, study and files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

MAX_LENGTH = 1_000_000
"""Most symbols in a row."""
MAX_SAMPLES = 1_000_000
"""Most samples of one cell."""
FINEST, COARSEST = 0.4, 1.0
"""Octaves: a finer precision is out of reach around some crossings, and a run with a coarser one
ends after so few samples that its intervals hold too seldom (`docs/simulations.md`)."""
_LARGEST = sys.float_info.max
_SHOWN = 60
"""Characters of a value in a message, at most."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The numbers that an option can have."""

    least: float
    most: float | None = None
    is_whole: bool = True
    is_above: bool = False
    """Whether `least` itself is not allowed."""
    unit: str = ""
    """What stands after the numbers in messages."""

    @property
    def demand(self) -> str:
        """What a number must be: `must be a whole number from 1 to 10,000`."""
        kind = "a whole number" if self.is_whole else "a number"
        if self.is_above:
            return f"must be {kind} above {_figure(self.least)}"
        most = "on" if self.most is None else f"to {_figure(self.most)}"
        return f"must be {kind} from {_figure(self.least)} {most}{self.unit}"

    def allows(self, given: object) -> bool:
        """Whether an option can have this value."""
        kind = Integral if self.is_whole else Real
        if not isinstance(given, kind) or isinstance(given, bool):
            return False
        number: Any = given
        is_enough = number > self.least if self.is_above else number >= self.least
        return bool(is_enough and number <= (_LARGEST if self.most is None else self.most))

    def problem(self, given: object) -> str | None:
        """What is wrong with a value, after the name of its option; `None` where nothing is."""
        return None if self.allows(given) else f"{self.demand}, not {shown(given)}"

    @property
    def field(self) -> dict[str, Any]:
        """The arguments of pydantic's `Field` for such a number."""
        least = {"gt" if self.is_above else "ge": self.least}
        most = {} if self.most is None else {"le": self.most}
        return least | most | ({} if self.is_whole else {"allow_inf_nan": False})


def shown(given: object) -> str:
    """A value as messages show it, shortened."""
    try:
        text = f"{given:g}" if isinstance(given, float) else repr(given)
    except ValueError:  # an integer of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _figure(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


_POSITIVE = Bound(0, is_whole=False, is_above=True)
BOUNDS = {
    "budget": _POSITIVE,
    "lengths": Bound(1, MAX_LENGTH),
    "max_connections": Bound(1, 10_000),
    "max_requests": Bound(1, 999_999_999),
    "max_tokens": Bound(1, 999_999_999),
    "precision": Bound(FINEST, COARSEST, is_whole=False, unit=" octaves"),
    "ray_workers": Bound(1, 100_000),
    "rpm": _POSITIVE,
    "samples": Bound(1, MAX_SAMPLES),
    "seed": Bound(0, 2**63 - 1),
    "temperature": Bound(0, is_whole=False),
    "tpm": _POSITIVE,
}
"""Option, by its name in Python and in a study -> the numbers that it can have. Vendors take
whole seeds from 0 on, of 64 bits with a sign.
"""
