"""Tokens a symbol in sentences: in which unit lengths are, and what is confounded with tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eyechart.harness.analysis.comparison import Comparison
from eyechart.harness.analysis.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.analysis.not_known import MOST_NAMES
from eyechart.harness.analysis.tokens_of_row import PairTokens, TokensASymbol, differ, writes_rows
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


def tokens_text(comparison: Comparison) -> str:
    """What `confounded` says of it."""
    pairs = [compared.tokens for compared in comparison.conditions]
    return confounded(pairs, (comparison.first, comparison.second), comparison.unit)


def confounded(pairs: Sequence[PairTokens], names: tuple[str, str], unit: str) -> str:
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


def _sides(pairs: Sequence[PairTokens], names: tuple[str, str], unit: str) -> str:
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


def table_notes(judged: Sequence[JudgedCondition]) -> list[str]:
    """Notes under a table of the conditions of one run: where neighbouring symbols share tokens,
    where values of an axis differ in tokens a symbol; and where they may differ, since they say how
    rows are written.
    """
    if not judged:
        return []
    spec = judged[0].run.spec
    merged = [one for one in judged if one.tokens_a_symbol and one.tokens_a_symbol.is_merged]
    notes = []
    if merged:
        few = _range(one.tokens_a_symbol for one in merged)
        where = f" under {len(merged)} of {len(judged)} conditions" * (len(judged) > 1)
        notes.append(
            f"Neighbouring {spec.unit} share tokens{where}: {few} tokens a {singular(spec.unit)}, "
            f"{how(one.tokens_a_symbol for one in merged)}. The model gets lumps of {spec.unit} "
            "there."
        )
    tokens = [one.tokens_a_symbol for one in judged]
    if axes := [axis for axis in spec.axes if _moves_tokens(judged, axis)]:
        notes.append(
            f"Tokens a {singular(spec.unit)} differ by {_named(axes)} ({_range(tokens)}, "
            f"{how(tokens)}), so {_of_tokenizer(axes)}."
        )
    unknown = [one for one in judged if one.tokens_a_symbol is None]
    axes = [
        axis
        for axis in spec.axes
        if writes_rows(spec, axis) and len({one.condition[axis] for one in unknown}) > 1
    ]
    if axes:
        notes.append(f"Tokens a {singular(spec.unit)} are not known, so {_of_tokenizer(axes)}.")
    return notes


def notes_of_runs(named: Sequence[tuple[str, JudgedRun]]) -> list[str]:
    """The `table_notes` of several runs, each once, with the names of its runs or their number."""
    runs_of: dict[str, list[str]] = {}
    for name, run in named:
        for note in table_notes(list(run.conditions.values())):
            runs_of.setdefault(note, []).append(name)
    return [
        note
        if len(named) == 1
        else f"{', '.join(names) if len(names) <= MOST_NAMES else f'{len(names)} runs'}: {note}"
        for note, names in runs_of.items()
    ]


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
