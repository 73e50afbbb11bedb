"""Durations as people read them."""

from __future__ import annotations

_MINUTE, _HOUR, _DAY, _YEAR = 60.0, 3600.0, 86_400.0, 31_557_600.0
"""In seconds."""


def duration(seconds: float) -> str:
    """`8 s`, `3 min`, `2.5 h`, `4 days`, `73 years`."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 1.5 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:.1f} h"
    return f"{seconds / _DAY:,.0f} days" if seconds < 2 * _YEAR else f"{seconds / _YEAR:,.0f} years"
