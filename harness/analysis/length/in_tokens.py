"""Effective lengths in tokens of the row, and their columns."""

from __future__ import annotations

from typing import Any

from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.spec import columns


def length_in_tokens(judged: JudgedCondition) -> tuple[Bound | None, Span] | None:
    """The effective length in tokens of the row, and its interval; `None` where it is not known.

    An end of the interval is the end in the task's unit times the same end of tokens a symbol: it
    has both errors, and is rather too wide.
    """
    estimate, tokens = judged.effective_length(), judged.tokens_a_symbol
    if estimate is None or tokens is None:
        return None
    length = None if estimate.length is None else tokens.of(estimate.length)
    return length, tokens.of_span(estimate.length_ci)


def token_columns(judged: JudgedCondition) -> dict[str, Any]:
    """Column -> value of tokens a symbol, and of the effective length in tokens: the columns
    `TOKENS`. The sign of a bound is that of the length in the task's unit.
    """
    tokens = judged.tokens_a_symbol
    if tokens is None:
        return {name: "" if name.endswith("source") else None for name in columns.TOKENS}
    length, (low, high) = length_in_tokens(judged) or (None, (None, None))
    values = (
        *(tokens.value, tokens.low, tokens.high, tokens.source),
        length and length.length,
        low and low.at_least,
        high and high.at_most,
    )
    return dict(zip(columns.TOKENS, values, strict=True))
