"""Amounts of money as texts, equal wherever they are shown."""

from __future__ import annotations

import math
from decimal import Decimal

_WHOLE_FROM = 10
"""Whole amounts from here on are written without cents."""
_TWO_DIGITS_BELOW = 0.1
"""Amounts below this have two digits where cents would say less."""


def as_shown(dollars: float) -> float:
    """The amount that `dollars_text` shows: in cents, or with two digits where it is small."""
    return float(f"{dollars:.2g}") if dollars < _TWO_DIGITS_BELOW else round(dollars, 2)


def dollars_text(dollars: float) -> str:
    """`$1,234`, `$12.34`, `$2.40`, `$0.10`, `$0.065`, `$0.0012`: cents, or two digits of a small
    amount; no cents where an amount from $10 on is whole.
    """
    rounded = as_shown(dollars)
    if rounded >= _WHOLE_FROM and rounded == int(rounded):
        return f"${rounded:,.0f}"
    if rounded == round(rounded, 2):
        return f"${rounded:,.2f}"
    return f"${Decimal(str(rounded)):f}"


def at_most_text(dollars: float) -> str:
    """The same of a limit: rounded up to cents."""
    return dollars_text(math.ceil(round(100 * dollars, 6)) / 100)
