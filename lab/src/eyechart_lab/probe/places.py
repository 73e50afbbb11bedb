"""Where the symbols of a row stand in a prompt, in characters and in tokens, and how many are
counted up to each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eyechart.harness.plan import Plan, item_of
from eyechart.harness.spec import Sample
from eyechart.providers.base import Tokens

_OPEN, _CLOSE = "\ue000", "\ue001"
"""Two characters of Unicode's private use, which no prompt has."""
_MARKS = re.compile(f"[{_OPEN}{_CLOSE}]")
_ALL, _MORE = 100, 200
"""A row is made again at each of its first lengths, and at this number of evenly spread longer
lengths, since making a row takes time in proportion to its length.
"""

Span = tuple[int, int]


def symbol_spans(planned: Plan, sample: Sample) -> tuple[Span, ...]:
    """The characters of each symbol of the sample's row in its prompt, as (start, end), in order.

    Empty where the prompt does not show the row symbol by symbol. Where it shows the row more than
    once, the last time counts. The places are found by rendering the prompt with marks around the
    symbols.
    """
    task, length = planned.task, sample.length
    item = item_of(task, sample.condition, length, sample.index, planned.seed)
    marked = replace(item, symbols=[f"{_OPEN}{symbol}{_CLOSE}" for symbol in item.symbols])
    question = task.prompt(marked, sample.condition, length, sample.index)
    text = f"{sample.prompt[: sample.before]}{question}"
    if _MARKS.sub("", text) != sample.prompt:
        return ()
    starts = [match.start() for match in re.finditer(_OPEN, text)]
    ends = [match.start() for match in re.finditer(_CLOSE, text)]
    if len(starts) != len(ends) or not starts or len(starts) % length:
        return ()
    # of the marks before a place, each took one character: 2 i + 1 before the end of symbol i
    spans = [
        (start - 2 * number, end - 2 * number - 1)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    return tuple(spans[-length:])


@dataclass(frozen=True, slots=True)
class Places:
    """The tokens of a prompt that hold its row."""

    row: tuple[int, ...]
    """Places of the tokens that hold a symbol or a part of one, ascending."""
    ends: tuple[int, ...]
    """For each symbol the place of the token that ends it."""


def places_of(tokens: Tokens, spans: Sequence[Span]) -> Places | None:
    """Which tokens hold the symbols at `spans`; `None` where a symbol is in no token."""
    row: list[int] = []
    ends: list[int] = []
    place, count = 0, len(tokens.spans)
    for start, end in spans:
        while place < count and not _is_past(tokens.spans[place], start):
            place += 1
        last = None
        for at in range(place, count):
            span = tokens.spans[at]
            if span is None:
                continue
            if span[0] >= end:
                break
            if span[1] > start:
                last = at
                if not row or row[-1] < at:
                    row.append(at)
        if last is None:
            return None
        ends.append(last)
    return Places(tuple(row), tuple(ends))


def _is_past(span: Span | None, start: int) -> bool:
    """Whether a token ends behind the character at `start`."""
    return span is not None and span[1] > start


def running_counts(planned: Plan, sample: Sample) -> list[int | None] | None:
    """The right answer for the row cut off after each symbol; `None` in the list for places that
    were not computed. `None` instead of a list if answers are no integers, do not grow with the
    row, or if a shorter row is not the beginning of a longer one.
    """
    task, seed = planned.task, planned.seed
    if task.spec.answer.kind.stored is not int or task.spec.items is not None:
        return None
    whole = item_of(task, sample.condition, sample.length, sample.index, seed)
    step = max(1, -(-(sample.length - _ALL) // _MORE))
    lengths = [*range(1, min(_ALL, sample.length)), *range(_ALL, sample.length + 1, step)]
    counts: list[int | None] = [None] * sample.length
    before = 0
    for length in lengths:
        item = item_of(task, sample.condition, length, sample.index, seed)
        if not isinstance(item.target, int) or item.target < before:
            return None
        if list(item.symbols) != list(whole.symbols[:length]):
            return None
        counts[length - 1] = before = item.target
    return counts
