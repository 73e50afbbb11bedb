"""The lengths of a model under a condition, as figures and tables for papers show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.analysis.order.words import answers_of, words_of
from eyechart.harness.analysis.tables.paper_text import length_cell, reached_text
from eyechart.harness.report.page.section import Section, Series, key_of
from eyechart.harness.settings.judging import JudgeSettings

EXACT, NEAR, APART = "exact", "near", "apart"
BESIDE = (NEAR, APART)
"""The lengths that answers of some kinds have beside the exact one."""


class ShownLength(NamedTuple):
    """A length with its interval, and both as a text."""

    length: Bound | None
    span: Span
    text: str


def lengths_of(section: Section, series: Series) -> dict[str, ShownLength]:
    """Kind -> length, of each kind that the answers have."""
    estimate = section.estimates.get(key_of(series))
    near, order = series.judged.near_length, series.judged.order
    found = {}
    if estimate is not None:
        found[EXACT] = ShownLength(estimate.length, estimate.length_ci, length_cell(estimate))
    if near is not None:
        found[NEAR] = ShownLength(near.length, near.length_ci, length_cell(near))
    if order is not None:
        length, span = order.apart.length, order.apart.length_ci
        found[APART] = ShownLength(length, span, reached_text(length, span))
    return found


class Head(NamedTuple):
    """The head of a column of lengths, and what it means, in a sentence."""

    text: str
    meaning: str


def beside_heads(shown: Sequence[Series], judging: JudgeSettings) -> dict[str, Head]:
    """`near (5 %)` and `apart (20 %)`: the heads of the kinds `BESIDE`."""
    share = f"{100 * judging.near:g}"
    words = words_of(answers_of(one.judged.scored) for one in shown if one.judged.scored)
    near = words.near_meaning.format(share=share, threshold=threshold_text(judging.threshold))
    return {
        NEAR: Head(f"near ({share} %)", near),
        APART: Head(words.apart_head, words.apart_meaning),
    }


def note_on_heads(threshold: float, beside: Sequence[Head]) -> list[str]:
    """A note on the percentages in the heads, which are of several kinds where lengths stand
    `beside` the exact one.
    """
    if not beside:
        return []
    share = threshold_text(threshold)
    exact = f"the length up to which a model is right in at least {share} of its replies."
    return [" ".join([f"right to: {exact}", *(f"{head.text}: {head.meaning}" for head in beside)])]
