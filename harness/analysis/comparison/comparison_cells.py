"""The texts of comparisons in tables, of the terminal and of papers."""

from __future__ import annotations

import math

from eyechart.harness.analysis.comparison.length_difference import LengthDifference
from eyechart.harness.analysis.comparison.paired_curves import LineDifference, PairedArea
from eyechart.harness.analysis.comparison.signed_text import difference_text, points_text
from eyechart.harness.analysis.length.effective_length import (
    NO_SINGLE_THRESHOLD,
    length_text,
    limited_by,
)
from eyechart.harness.analysis.length.interval import Bound, wilson
from eyechart.harness.analysis.length.limit import Limit
from eyechart.harness.analysis.tables.paper_text import interval_text

NOT_COMPARABLE = "not comparable"
_WHOLE = 1000
OF_FACTORS = (
    "A factor has an estimate of its own, so it may differ from the ratio of the two effective "
    "lengths."
)


def accuracy_cell(share: float, n: int) -> str:
    """`100 (87–100)`, in percent."""
    low, high = wilson(round(share * n), n) or (math.nan, math.nan)
    return interval_text(share, low, high)


def points_cell(row: LineDifference) -> str:
    """`+10 (-3 to +27)`, in points."""
    return points_text(row.difference, row.difference_ci)


def seen_cell(length: Bound | None, limit: Limit) -> str:
    """`28`, `> 20, limited by room`."""
    return ", ".join(filter(None, (length_text(length), limited_by(limit.by))))


def area_rows(area: PairedArea | None) -> list[tuple[str, str, str, str]]:
    """A row with both areas and their difference, if there are areas."""
    if area is None:
        return []
    difference = difference_text(area.difference, area.difference_ci, 2)
    return [("area", f"{area.first:.2f}", f"{area.second:.2f}", difference)]


def factor_cell(length: LengthDifference) -> str:
    if length.is_limited:
        return NOT_COMPARABLE
    if not length.one_threshold:
        return NO_SINGLE_THRESHOLD
    middle, span = factor_text(length), factor_span(length)
    return f"factor {span}" if middle == "–" else f"{middle} times ({span})"


def found_text(length: LengthDifference, first: str, second: str) -> str:
    """What the test of two lengths found: `a is further`, `no difference found`."""
    if not length.is_comparable:
        return NOT_COMPARABLE
    further = {1: first, -1: second}.get(length.further)
    return "no difference found" if further is None else f"{further} is further"


def factor_text(length: LengthDifference) -> str:
    """The factor between two lengths; a dash if it is not limited."""
    middle = length.factors[0]
    return "–" if middle is None else number_text(middle)


def factor_span(length: LengthDifference) -> str:
    _, low, high = length.factors
    if low is not None and high is not None:
        return f"{number_text(low)} to {number_text(high)}"
    if low is not None:
        return f"at least {number_text(low)}"
    return "not limited" if high is None else f"at most {number_text(high)}"


def number_text(value: float) -> str:
    """`0.500`, `3.20`, `28.5`, `1,230`: a factor with its three digits."""
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:#.3g}".rstrip(".")
