"""Numbers with their intervals as a paper prints them: `38 (27–42)`, `95 (76–99)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.effective_length import EffectiveLength, length_text
from eyechart.harness.analysis.length.interval import Bound, Span, span_text

NOTED = "†"
"""Stands after a length that has a note."""


_MOST_NAMED = 8


def length_head(threshold: float) -> str:
    """`right to (85 %)`: the head of effective lengths."""
    return f"right to ({threshold_text(threshold)})"


def length_cell(estimate: EffectiveLength | None) -> str:
    """`38 (27–42)`, `20 (< 5 to 34)†`, `> 500`, `not known (4 to > 32)`; a dash if not scored."""
    if estimate is None:
        return "–"
    return reached_text(estimate.length, estimate.length_ci) + NOTED * bool(estimate.note)


def reached_text(length: Bound | None, span: Span) -> str:
    """`38 (27–42)`, `> 500 (from 300)`: a length with its interval, where that says more."""
    (low, high), inside = span, span_text(span)
    ends = low.sign + high.sign
    if ends == "<>" or (length == high and ends == ">>"):
        inside = ""
    elif ends == "==":
        inside = inside.replace(" to ", "–")
    elif length is not None and high == Bound(">", length.length):
        inside = f"from {low}"
    elif length is not None and low == Bound("<", length.length):
        inside = f"to {high}"
    text = length_text(length)
    return text if inside in ("", text) else f"{text} ({inside})"


def interval_text(accuracy: float, low: float, high: float) -> str:
    """`100 (87–100)`: an accuracy in percent with the ends of its interval."""
    return f"{100 * accuracy:.0f} ({100 * low:.0f}–{100 * high:.0f})"


def notes(estimates: Mapping[str, EffectiveLength | None]) -> list[str]:
    """See `noted`."""
    return noted((name, "" if one is None else one.note) for name, one in estimates.items())


def noted(said: Iterable[tuple[str, str]]) -> list[str]:
    """The notes on effective lengths, with the names that each is about, or how many: `† tiny,
    comma: not sure: 5 rows`; without names where all have the same note.
    """
    by_note: dict[str, list[str]] = {}
    for name, note in said:
        by_note.setdefault(note, []).append(name)
    if len(by_note) == 1:
        return [f"{NOTED} {note}" for note in by_note if note]
    total = sum(map(len, by_note.values()))
    return [
        f"{NOTED} {'; '.join(names) if len(names) <= _MOST_NAMED else f'{len(names)} of {total}'}: "
        f"{note}"
        for note, names in by_note.items()
        if note
    ]
