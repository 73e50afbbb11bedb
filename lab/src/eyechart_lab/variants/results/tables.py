"""The tables of a study; docs/variants.md says what their columns are."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from typing import TypeVar

from eyechart_lab.variants.asking import LabCell
from eyechart_lab.variants.probing import InsideRow
from eyechart_lab.variants.results.results import Result, share_span
from eyechart_lab.variants.results.seeds import mean
from eyechart_lab.variants.results.words import sentence

_Row = TypeVar("_Row", LabCell, InsideRow)
_NO_SPAN = (None, None)
_COLUMNS: Mapping[str, Callable[[Result], object]] = {
    "variant": lambda one: one.variant,
    "task": lambda one: one.task,
    "condition": lambda one: one.condition,
    "read": lambda one: one.read,
    "seeds": lambda one: len(one.seeds),
    "diverged": lambda one: one.diverged,
    "unknown": lambda one: one.unknown,
    "learned": lambda one: one.learnt,
    "trained_to": lambda one: one.trained_to,
    "effective_length": lambda one: one.length and one.length.length,
    "effective_length_bound": lambda one: one.length and one.length.side,
    "effective_length_ci_low": lambda one: one.span and one.span[0].length,
    "effective_length_ci_high": lambda one: one.span and one.span[1].length,
    "p": lambda one: one.by_length.p,
    "smallest_p": lambda one: one.by_length.smallest_p,
    "verdict": lambda one: one.by_length.verdict,
    "within": lambda one: mean(one.within) if one.within else None,
    "within_ci_low": lambda one: (share_span(one.within) or _NO_SPAN)[0],
    "within_ci_high": lambda one: (share_span(one.within) or _NO_SPAN)[1],
    "within_p": lambda one: one.by_within.p,
    "within_smallest_p": lambda one: one.by_within.smallest_p,
    "within_verdict": lambda one: one.by_within.verdict,
    "answers_to": lambda one: one.limit,
    "beyond": lambda one: mean(one.beyond) if one.beyond else None,
    "beyond_ci_low": lambda one: (share_span(one.beyond) or _NO_SPAN)[0],
    "beyond_ci_high": lambda one: (share_span(one.beyond) or _NO_SPAN)[1],
    "beyond_p": lambda one: one.by_beyond.p,
    "beyond_smallest_p": lambda one: one.by_beyond.smallest_p,
    "beyond_verdict": lambda one: one.by_beyond.verdict,
}
"""Column of `variants.csv` -> its value for a variant; the last column is its sentence."""


def csv_text(kind: type[_Row], rows: Sequence[_Row]) -> str:
    """The content of `lab.csv` or `inside.csv`."""
    return _text([field.name for field in fields(kind)], map(astuple, rows))


def variants_text(results: Sequence[Result], reference: str) -> str:
    """The content of `variants.csv`."""
    rows = (
        [*(value(one) for value in _COLUMNS.values()), sentence(one, reference)] for one in results
    )
    return _text([*_COLUMNS, "said"], rows)


def _text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table; numbers have six digits, and what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in row)
    return text.getvalue()
