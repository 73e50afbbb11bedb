"""Differences as texts with their sign."""

from __future__ import annotations

_EXACT = 6
"""Decimals from which on a number is an error of computation."""


def signed(value: float, digits: int = 0) -> str:
    """`+10`, `-3`, `+0`: never `-0`, since the sign shows a direction."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def signed_end(value: float, digits: int = 0) -> str:
    """An end of an interval: it keeps its sign (`-0.00`), which says whether 0 lies in it."""
    return f"{round(value, _EXACT) + 0.0:+.{digits}f}"


def with_ends(value: float, ends: tuple[float, float], digits: int = 0) -> tuple[str, str, str]:
    """A difference and its ends; it keeps its sign too where the interval leaves out 0."""
    low, high = ends
    middle = signed(value, digits) if low <= 0 <= high else signed_end(value, digits)
    return middle, signed_end(low, digits), signed_end(high, digits)


def difference_text(value: float, ends: tuple[float, float], digits: int = 0) -> str:
    """`+10 (-3 to +27)`: a difference with its interval, see `with_ends`."""
    middle, low, high = with_ends(value, ends, digits)
    return f"{middle} ({low} to {high})"


def points_text(share: float, ends: tuple[float, float], digits: int = 0) -> str:
    """The same in points, for a difference of shares."""
    low, high = ends
    return difference_text(100 * share, (100 * low, 100 * high), digits)


def printed(text: str) -> str:
    """`text` with the minus sign of print, as the page has it."""
    return text.replace("-", "\u2212")
