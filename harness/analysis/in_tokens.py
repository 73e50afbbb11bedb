"""Effective lengths in tokens of the row, and their columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.effective_length import EffectiveLength
from eyechart.harness.analysis.judged_run import JudgedCondition
from eyechart.harness.analysis.tokens_of_row import why_unknown
from eyechart.harness.errors import CompareError
from eyechart.harness.spec import columns
from eyechart.harness.spec.unit import TOKENS

OWN = "task"
"""The unit of effective lengths in which a task has its lengths; the other one is `TOKENS`."""


def unit_problem(unit: str) -> str:
    """Why `unit` is no unit of effective lengths; empty if it is one."""
    return "" if unit in (OWN, TOKENS) else f"is {OWN} or {TOKENS}, not {unit!r}"


def seen(
    judged: JudgedCondition, threshold: Threshold, *, in_tokens: bool
) -> EffectiveLength | None:
    """The effective length, with `in_tokens` in tokens of the row; `None` where it is not known.

    In tokens an end of an interval is the end in the task's unit times the same end of tokens a
    symbol: it has both errors, and is rather too wide. The fitted curve and the area stay those
    over the task's own lengths.
    """
    estimate, tokens = judged.effective_length(threshold), judged.tokens_a_symbol
    if not in_tokens or estimate is None:
        return estimate
    if tokens is None:
        return None
    return replace(
        estimate,
        length=None if estimate.length is None else tokens.of(estimate.length),
        length_ci=tokens.of_span(estimate.length_ci),
        dips=tuple(
            (round(low * tokens.value), round(high * tokens.value)) for low, high in estimate.dips
        ),
        tested_length=tokens.of(estimate.tested_length),
        tested_length_ci=tokens.of_span(estimate.tested_length_ci),
    )


def no_tokens(judged: JudgedCondition | None) -> str:
    """Why tokens a symbol are not known, as the end of a sentence; empty where they are."""
    if judged is None:
        return "the condition was not asked"
    if judged.tokens_a_symbol:
        return ""
    if judged.condition in judged.run.judge.cuts:
        return "the server cut prompts"
    lengths, tokens, _ = judged.prompt_tokens
    return why_unknown(lengths, tokens)


def check_tokens(judged: Iterable[JudgedCondition]) -> None:
    """Raises `CompareError` where tokens a symbol are not known."""
    for one in judged:
        if one.tokens_a_symbol is None:
            raise CompareError(
                f"{one.run.folder} has no lengths in tokens under {one.label}: {no_tokens(one)}"
            )


def token_columns(judged: JudgedCondition, threshold: Threshold) -> dict[str, Any]:
    """Column -> value of tokens a symbol, and of the effective length in tokens: the columns
    `TOKENS`. The sign of a bound is that of the length in the task's unit.
    """
    tokens = judged.tokens_a_symbol
    if tokens is None:
        return {name: "" if name.endswith("source") else None for name in columns.TOKENS}
    estimate = seen(judged, threshold, in_tokens=True)
    length = estimate and estimate.length
    low, high = (None, None) if estimate is None else estimate.length_ci
    values = (
        *(tokens.value, tokens.low, tokens.high, tokens.source),
        length and length.length,
        low and low.at_least,
        high and high.at_most,
    )
    return dict(zip(columns.TOKENS, values, strict=True))
