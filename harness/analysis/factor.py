"""The factor between two effective lengths, equal wherever it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterable

from eyechart.harness.analysis.further import LengthDifference

_DIGITS = 3
_WHOLE = 1000
NOTE = (
    "A factor is the median of the ratio of two effective lengths; the ratio of their two medians "
    "may differ."
)


def factor(octaves: float) -> float | None:
    """The factor to three digits; `None` if it is not limited or not known."""
    return float(f"{2**octaves:.{_DIGITS}g}") if math.isfinite(octaves) else None


def factors(length: LengthDifference) -> tuple[float | None, float | None, float | None]:
    """The factor between first and second, and both ends of its 95 % interval."""
    middle, low, high = map(factor, length.shown)
    return middle, low, high


def number_text(value: float) -> str:
    """`0.500`, `3.20`, `28.5`, `1,230`: a factor with its three digits."""
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:#.{_DIGITS}g}".rstrip(".")


def differs_from_ratio(lengths: Iterable[LengthDifference]) -> bool:
    """Whether a shown factor is not the ratio of the two lengths beside it."""
    return any(
        (shown := factor(length.shown[0])) is not None
        and (first := length.first) is not None
        and (second := length.second) is not None
        and shown != factor(math.log2(first.length / second.length))
        for length in lengths
    )
