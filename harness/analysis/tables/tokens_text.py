"""Tokens a symbol in sentences: in which unit lengths are, and what is confounded with tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.length.tokens_of_row import (
    PairTokens,
    TokensASymbol,
    differ,
)
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.spec import Condition
from eyechart.harness.spec.unit import singular

HOW = {
    "usage": "estimated from usage",
    "scored": "estimated from the tokens of scored prompts",
    "tokenizer": "counted by the tokenizer",
}
"""The source of tokens a symbol, in words."""


def how(tokens: Iterable[TokensASymbol | None]) -> str:
    """`estimated from usage`: where tokens a symbol come from; estimates come first."""
    sources = {one.source for one in tokens if one is not None}
    return " or ".join(text for source, text in HOW.items() if source in sources)


def confounded(pairs: Sequence[PairTokens], names: Sequence[str], unit: str) -> str:
    """That a comparison of two models, or of two values of an axis, is also one of tokens a symbol,
    with both values; or that this is not known, for an axis that says how rows are written. Empty
    otherwise. `pairs` are the tokens under each condition.
    """
    same = _same(pairs[0].axis)
    if _differ(pairs):
        return f"{_sides(pairs, names, unit)}, {same}"
    if any(pair.is_of_writing and not pair.is_known for pair in pairs):
        return f"tokens a {singular(unit)} are not known, {same}"
    return ""


def _differ(pairs: Sequence[PairTokens]) -> bool:
    """Whether the sides differ in tokens a symbol under a condition."""
    return any(differ([pair.first, pair.second]) for pair in pairs if pair.is_known)


def _same(axis: str) -> str:
    """What cannot be told apart: the effect of an axis, or that of the model, which is empty."""
    if axis:
        return f"so {_of_tokenizer([axis])}"
    return "so the effect of the model is confounded with that of its tokenizer"


def _sides(pairs: Sequence[PairTokens], names: Sequence[str], unit: str) -> str:
    """`a symbol is 2.00 tokens with A and 0.34 with B, estimated from usage`."""
    word = "with" if pairs[0].axis else "for"
    known = [pair for pair in pairs if pair.is_known]
    first, second = _range([one.first for one in known]), _range([one.second for one in known])
    source = how([*(one.first for one in known), *(one.second for one in known)])
    return (
        f"a {singular(unit)} is {first} tokens {word} {names[0]} and {second} {word} {names[1]}, "
        f"{source}"
    )


def _range(tokens: Iterable[TokensASymbol | None]) -> str:
    """`0.34`, `0.34 to 0.40`."""
    texts = sorted({str(one) for one in tokens if one is not None}, key=float)
    return " to ".join(dict.fromkeys((texts[0], texts[-1])))


def of_conditions(judged: Sequence[JudgedCondition]) -> Iterator[Finding]:
    """Where, under the conditions of one run, neighbouring symbols share tokens; where values of an
    axis differ in tokens a symbol; and where they may differ, since they say how rows are written.
    """
    if not judged:
        return
    run, spec = judged[0].run, judged[0].run.spec
    tokens = [one.tokens_a_symbol for one in judged]
    if merged := [one for one in tokens if one and one.is_merged]:
        yield SHARED_TOKENS(
            unit=spec.unit, tokens=merged, found=len(merged), conditions=len(judged)
        )
    if axes := [axis for axis in spec.axes if _moves_tokens(judged, axis)]:
        yield OTHER_TOKENS(unit=spec.unit, axes=axes, tokens=[one for one in tokens if one])
    unknown = [one for one in judged if one.tokens_a_symbol is None]
    axes = [
        axis
        for axis in spec.axes
        if run.may_change_tokens(axis) and len({one.condition[axis] for one in unknown}) > 1
    ]
    if axes:
        yield UNKNOWN_TOKENS(unit=spec.unit, axes=axes)


def _shared(*, unit: str, tokens: Sequence[TokensASymbol], found: int, conditions: int) -> str:
    where = f" under {found} of {conditions} conditions" * (conditions > 1)
    return (
        f"Neighbouring {unit} share tokens{where}: {_range(tokens)} tokens a {singular(unit)}, "
        f"{how(tokens)}. The model gets lumps of {unit} there."
    )


SHARED_TOKENS = Kind("shared tokens", "note", "neighbouring symbols share tokens", _shared)


def _other(*, unit: str, axes: Sequence[str], tokens: Sequence[TokensASymbol]) -> str:
    return (
        f"Tokens a {singular(unit)} differ by {_named(axes)} ({_range(tokens)}, {how(tokens)}), so "
        f"{_of_tokenizer(axes)}."
    )


OTHER_TOKENS = Kind(
    "other tokens",
    "note",
    "conditions differ in tokens a symbol, so their effect is confounded with the tokenizer's",
    _other,
)


def _unknown(*, unit: str, axes: Sequence[str]) -> str:
    return f"Tokens a {singular(unit)} are not known, so {_of_tokenizer(axes)}."


UNKNOWN_TOKENS = Kind(
    "unknown tokens",
    "note",
    "rows are written in several ways, and tokens a symbol are not known",
    _unknown,
)


def _moves_tokens(judged: Sequence[JudgedCondition], axis: str) -> bool:
    """Whether conditions that differ in this axis alone differ in tokens a symbol."""
    alike: dict[Condition, list[TokensASymbol | None]] = {}
    for one in judged:
        alike.setdefault(one.condition.without(axis), []).append(one.tokens_a_symbol)
    return any(map(differ, alike.values()))


def _of_tokenizer(axes: Sequence[str]) -> str:
    """Why a difference between values of the axes says little of what a model sees."""
    return f"the effect of {_named(axes)} is confounded with that of the tokenizer"


def _named(axes: Sequence[str]) -> str:
    return " and ".join(axis.replace("_", " ") for axis in axes)
