"""Numbers with their intervals as a paper prints them: `38 (27–42)`, `95 (76–99)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eyechart.harness.analysis.at_length import at_length
from eyechart.harness.analysis.curve import threshold_text
from eyechart.harness.analysis.effective_length import EffectiveLength
from eyechart.harness.analysis.interval import Span, span_text

NOTED = "†"
"""Stands after a length that has a note."""


def length_cell(estimate: EffectiveLength | None) -> str:
    """`38 (27–42)`, `20 (< 5 to 34)†`, `> 500`, `not known (4 to > 32)`; a dash if not scored."""
    if estimate is None:
        return "–"
    inside = f" ({_range(estimate.length_ci)})" if estimate.span else ""
    return f"{estimate.length_text}{inside}{NOTED * bool(estimate.note)}"


def _range(span: Span) -> str:
    is_plain = all(end.sign == "=" for end in span)
    return span_text(span).replace(" to ", "–") if is_plain else span_text(span)


def interval_text(accuracy: float, low: float, high: float) -> str:
    """`100 (87–100)`: an accuracy in percent with the ends of its interval."""
    return f"{100 * accuracy:.0f} ({100 * low:.0f}–{100 * high:.0f})"


def notes(estimates: Mapping[str, EffectiveLength | None]) -> list[str]:
    """The notes on these effective lengths, with the names that each is about: `† tiny, comma: of
    5 rows only`; without names where all have the same note.
    """
    by_note: dict[str, list[str]] = {}
    for name, estimate in estimates.items():
        if estimate is not None and estimate.note:
            by_note.setdefault(estimate.note, []).append(name)
    if len(by_note) == 1 and len(next(iter(by_note.values()))) == len(estimates):
        return [f"{NOTED} {note}" for note in by_note]
    return [f"{NOTED} {'; '.join(names)}: {note}" for note, names in by_note.items()]


def at_texts(
    estimate: EffectiveLength | None, lengths: Sequence[int], threshold: float
) -> dict[str, str]:
    """Header -> text: the accuracy at each length, and how probably it reaches the threshold."""
    texts = {}
    for length in lengths:
        found = None if estimate is None else at_length(estimate, length)
        texts[f"right at {length:,}, %"] = "–" if found is None else found.text
        likely = f"P(≥ {threshold_text(threshold)} at {length:,})"
        texts[likely] = "–" if found is None else found.reaches_text
    return texts
