"""The lengths of a model under a condition, as figures and tables for papers show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.analysis.order.words import answers_of, words_of
from eyechart.harness.analysis.tables.paper_text import length_cell, reached_text
from eyechart.harness.report.page.section import Section, Series, key_of

EXACT, NEAR, APART = "exact", "near", "apart"
BESIDE = (NEAR, APART)
"""The lengths that answers of some kinds have beside the exact one."""


class Shown(NamedTuple):
    """A length with its interval, and both as a text."""

    length: Bound | None
    span: Span
    text: str


def lengths_of(section: Section, series: Series) -> dict[str, Shown]:
    """Kind -> length, of each kind that the answers have."""
    estimate = section.estimates.get(key_of(series))
    near, order = series.judged.near_length(section.threshold), series.judged.order
    found = {}
    if estimate is not None:
        found[EXACT] = Shown(estimate.length, estimate.length_ci, length_cell(estimate))
    if near is not None:
        found[NEAR] = Shown(near.length, near.length_ci, length_cell(near))
    if order is not None:
        length, span = order.apart.length, order.apart.length_ci
        found[APART] = Shown(length, span, reached_text(length, span))
    return found


def beside_heads(shown: Sequence[Series]) -> dict[str, str]:
    """`near (5 %)` and `apart (20 %)`: the heads of the kinds `BESIDE`."""
    shares = dict.fromkeys(f"{100 * one.judged.run.settings.within:g}" for one in shown)
    words = words_of(answers_of(one.judged.scored) for one in shown if one.judged.scored)
    return {NEAR: f"near ({' or '.join(shares)} %)", APART: words.apart_head}
