"""Differences as texts with their sign."""

from __future__ import annotations


def signed(value: float, digits: int = 0) -> str:
    """`+10`, `-3`, `+0`: never `-0`, since the sign shows a direction."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def points(share: float) -> str:
    """A difference of shares in points, with the minus sign of print: `+10`, `−3`, `+0`."""
    return signed(100 * share).replace("-", "\u2212")
