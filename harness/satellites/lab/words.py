"""The sentences of a study: one for each variant under each condition, carried by its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.analysis.interval import span_text
from eyechart.harness.satellites.lab.results import LEARNT, Result
from eyechart.harness.satellites.lab.seeds import FEWEST, fewest_seeds


def sentence(one: Result, reference: str) -> str:
    """`alibi: learned the trained lengths (to 32) in 3 of 3 seeds; it sees to 45 (38 to 52), …`."""
    return f"{one.variant}: {_learnt(one)}{_seen(one)}{_against(one, reference)}."


def _of(count: int, one: Result) -> str:
    seeds = len(one.seeds)
    return f"{count} of {seeds} seed{'s' * (seeds != 1)}"


def _learnt(one: Result) -> str:
    """What became of the trainings."""
    said = []
    if one.diverged:
        said.append(f"the training diverged in {_of(one.diverged, one)}")
    failed = len(one.seeds) - one.learnt - one.diverged
    if failed:
        reached = [of.accuracy for of in one.seeds if of.accuracy is not None and not of.has_learnt]
        span = f", with {_shares(reached)} right there" if reached else ""
        said.append(
            f"did not reach {100 * LEARNT:g} % at the trained lengths (to {one.trained_to}) in "
            f"{_of(failed, one)}{span}"
        )
    if one.learnt:
        said.append(f"learned the trained lengths (to {one.trained_to}) in {_of(one.learnt, one)}")
        longer = [of.beyond for of in one.seeds if of.beyond is not None and of.has_learnt]
        if longer:
            said.append(f"where it is right on {_shares(longer)} of longer rows")
    return ", ".join(said)


def _shares(reached: Sequence[float]) -> str:
    """`12 %`, `12 % to 20 %`."""
    low, high = (f"{100 * share:.0f} %" for share in (min(reached), max(reached)))
    return low if low == high else f"{low} to {high}"


def _seen(one: Result) -> str:
    """How far the models see, and whether that is beyond their training."""
    if one.diverged == len(one.seeds):
        return ""
    span, length = one.span, one.length
    told = f" ({span_text(span)})" if span and span_text(span) != str(length) else ""
    said = f"; sees to {length.words}{told}"
    if not one.learnt:
        return said
    if span is None:
        return f"{said}, without an interval over fewer than {FEWEST} seeds"
    low, high = span
    if low.sign != "<" and low.length > one.trained_to:
        return f"{said}, beyond the trained lengths"
    if high.sign != ">" and high.length < one.longest and high.length <= one.trained_to:
        return f"{said}, not beyond the trained lengths"
    return f"{said}, and it is open whether that is beyond the trained lengths"


def _against(one: Result, reference: str) -> str:
    """The comparison with the reference."""
    if one.p is None or one.smallest_p is None:
        return ""
    if one.verdict == "too few seeds":
        return (
            f"; nothing can be said of a difference to {reference}: p is {_p(one.p)}, and no p "
            f"below {_p(one.smallest_p)} is possible with so few seeds"
        )
    if one.verdict == "no difference":
        return f"; no difference to {reference} found (p = {_p(one.p)})"
    farther = "farther" if one.verdict == "better" else "less far"
    return f"; sees {farther} than {reference} over seeds (p = {_p(one.p)})"


def _p(p: float) -> str:
    return f"{p:.2g}"


def method(results: Sequence[Result], reference: str) -> str:
    """How variants are compared, and what so many seeds can show."""
    others = max(
        (sum(other.where == one.where for other in results) - 1 for one in results), default=0
    )
    if others < 1:
        return ""
    least = max((one.smallest_p for one in results if one.smallest_p is not None), default=1.0)
    return (
        f"A seed of training is the unit. Each variant is compared with {reference} by the exact "
        "permutation test of the mean log length over seeds, corrected by Holm over the variants "
        f"of a condition; with these seeds p cannot be below {_p(least)}, and one of them can be "
        f"called better from {fewest_seeds(others)} seeds on. "
        "Intervals are over rows and seeds."
    )
