"""`variants.csv`: a row for each variant under each condition of a task."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

from eyechart.harness.analysis.interval import Bound
from eyechart.harness.satellites.lab.results import Result, Verdict, beyond_span
from eyechart.harness.satellites.lab.seeds import mean
from eyechart.harness.satellites.lab.words import sentence


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `variants.csv`; see `Result`."""

    variant: str
    task: str
    condition: str
    read: str
    seeds: int
    diverged: int
    unknown: int
    """Trained models whose length is not known; they count for nothing in the length and p."""
    learned: int
    """Numbers of models."""
    trained_to: int
    effective_length: str
    """The geometric mean over trained models; empty where there is none."""
    effective_length_bound: str
    effective_length_ci_low: str
    effective_length_ci_high: str
    """The 95 % interval over rows and seeds; its ends are at most those of what was asked."""
    p: str
    smallest_p: str
    verdict: Verdict
    beyond: str
    """The mean share of right answers to rows longer than trained; empty where none was asked."""
    beyond_ci_low: str
    beyond_ci_high: str
    beyond_p: str
    beyond_smallest_p: str
    beyond_verdict: Verdict
    said: str
    """The sentence about the variant."""


COLUMNS = tuple(field.name for field in fields(Row))
"""The columns of `variants.csv`."""


def variants_text(results: Sequence[Result], reference: str) -> str:
    """The content of `variants.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(_row(one, reference)) for one in results)
    return text.getvalue()


def _row(one: Result, reference: str) -> Row:
    length, (low, high) = one.length, one.span or (None, None)
    beyond_low, beyond_high = beyond_span(one) or (None, None)
    return Row(
        variant=one.variant,
        task=one.task,
        condition=one.condition,
        read=one.read,
        seeds=len(one.seeds),
        diverged=one.diverged,
        unknown=one.unknown,
        learned=one.learnt,
        trained_to=one.trained_to,
        effective_length=_length(length),
        effective_length_bound="" if length is None else length.side,
        effective_length_ci_low=_length(low),
        effective_length_ci_high=_length(high),
        p=_number(one.by_length.p),
        smallest_p=_number(one.by_length.smallest_p),
        verdict=one.by_length.verdict,
        beyond=_number(mean(one.beyond) if one.beyond else None),
        beyond_ci_low=_number(beyond_low),
        beyond_ci_high=_number(beyond_high),
        beyond_p=_number(one.by_beyond.p),
        beyond_smallest_p=_number(one.by_beyond.smallest_p),
        beyond_verdict=one.by_beyond.verdict,
        said=sentence(one, reference),
    )


def _length(bound: Bound | None) -> str:
    return _number(None if bound is None else bound.length)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
