"""The verdict on a pair, and lists of pairs that were asked, in the words of the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from eyechart.harness.analysis.comparison import Comparison

Verdict: TypeAlias = Literal["limited", "further", "area", "equivalent", "lines", "open"]
LARGER = "has the larger area"
AT_LINES = "at single lengths"


def verdict_on(comparison: Comparison, margin: float | None) -> Verdict:
    """The first of these that holds; `None` as `margin` leaves out whether both are equivalent.

    `limited`: something else than sight limits a length. `further`, `area`, `lines`: the two differ
    in effective length, in their areas, at single lengths. `open`: nothing is shown.
    """
    if comparison.length.is_limited:
        return "limited"
    if comparison.length.further:
        return "further"
    if comparison.area is not None and comparison.area.larger:
        return "area"
    if margin is not None and comparison.change(margin) == "equivalent":
        return "equivalent"
    return "lines" if comparison.significant else "open"


def ahead_behind(comparison: Comparison) -> tuple[str, str]:
    """The two names: first who sees further, or else who has the larger area."""
    larger = 0 if comparison.area is None else comparison.area.larger
    names = comparison.first, comparison.second
    return names[::-1] if (comparison.length.further or larger) < 0 else names


def decisions(comparisons: Sequence[Comparison], margin: float) -> str:
    """Which of the pairs are decided, by the lengths that ranks follow from, which are equivalent,
    and in which it is open who sees further, with what is shown of them:
    `decided: a sees further than b; equivalent: b and c; open: c and d (d has the larger area)`.
    """
    said: dict[str, list[str]] = {"decided": [], "equivalent": [], "open": []}
    decided, equivalent, undecided = said.values()
    for one in comparisons:
        both, shown = f"{one.first} and {one.second}", _shown(one, margin)
        if verdict_on(one, margin) == "further":
            decided.append("{} sees further than {}".format(*ahead_behind(one)))
        elif one.change(margin) == "equivalent":
            equivalent.append(f"{both}{shown}")
        elif len(comparisons) == 1:
            undecided.append(f"which of {both} sees further{shown}")
        else:
            undecided.append(f"{both}{shown}")
    return "; ".join(f"{name}: {', '.join(texts)}" for name, texts in said.items() if texts)


def _shown(comparison: Comparison, margin: float) -> str:
    """What is known, in brackets, where nobody is shown to see further; may be empty."""
    verdict = verdict_on(comparison, margin)
    if verdict == "limited":
        return " (they cannot be compared)"
    if verdict == "area":
        counts = ", which counts as none" if comparison.change(margin) == "equivalent" else ""
        return f" ({ahead_behind(comparison)[0]} {LARGER}{counts})"
    if verdict == "lines":
        return f" (they differ {AT_LINES})"
    return " (nearly all answers of both are wrong)" if comparison.is_at_floor(margin) else ""
