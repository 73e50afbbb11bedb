"""Lines whose answers are in reverse order, on multiples of ten, nearly always one number, or not
in order between others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.findings.not_known import under, which_of
from eyechart.harness.analysis.order.order import BROKEN, CONSTANT, HEAPED, PATTERNS, REVERSED
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.spec import Line

_ODD = "odd option reversed"
"""`REVERSED` of choices with a control."""
_WORDS = {
    REVERSED: "in reverse order (the larger the count, the smaller the answer)",
    _ODD: "moved by the odd symbol in the wrong direction (its option is less probable where it "
    "stands than in the control)",
    HEAPED: "mostly multiples of ten",
    CONSTANT: "nearly always one number",
    BROKEN: "not in order although those of longer rows are (so the apart length ends there)",
}


def patterns(
    judged: Mapping[str, JudgedCondition], unit: str, *, without: str = ""
) -> Finding | None:
    """The pattern of each line that has one, by the label of its condition; `without` is a pattern
    that another finding says.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for label, condition in judged.items():
        if condition.scored is None or condition.order is None:
            continue
        lines = condition.order.lines
        for pattern in PATTERNS:
            places = [place for place, line in lines.items() if line.pattern == pattern]
            if places and pattern != without:
                ranges = _ranges(condition.scored.lines, list(lines), places)
                named = pattern if condition.scored.choices is None else _ODD
                found.setdefault(named, {})[label] = ranges
    return PATTERN(patterns=found, conditions=len(judged), unit=unit) if found else None


def _ranges(lines: Sequence[Line], in_order: Sequence[int], places: Collection[int]) -> list[str]:
    """`41 to 132` for lines that follow one another."""
    ranges: list[tuple[int, int]] = []
    follows = False
    for place in in_order:
        if is_found := place in places:
            first = ranges.pop()[0] if follows else lines[place].low
            ranges.append((first, lines[place].high))
        follows = is_found
    return [str(low) if low == high else f"{low} to {high}" for low, high in ranges]


def _pattern(
    *, patterns: Mapping[str, Mapping[str, Sequence[str]]], conditions: int, unit: str
) -> str:
    return " ".join(
        f"Answers are {_WORDS[pattern]}{_where(found, conditions, unit)}."
        for pattern, found in patterns.items()
    )


def _where(found: Mapping[str, Sequence[str]], conditions: int, unit: str) -> str:
    labels = list(found)
    alike = len(set(map(tuple, found.values()))) == 1
    at = f" at {', '.join(found[labels[0]])} {unit}" if alike else ""
    return f"{at}{under(labels, conditions)}" or f" under {which_of(conditions, conditions)}"


PATTERN = Kind(
    "pattern of answers",
    "warning",
    "answers of some lines are in reverse order, mostly multiples of ten, nearly always one "
    "number, or not in order between lines that are",
    _pattern,
)
