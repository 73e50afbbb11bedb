"""Tokens a symbol: by how many tokens a prompt grows with each symbol of its row.

A row of 240 symbols without a separator is 82 tokens in some tokenizers and 480 in others, so a
length in symbols is not the same task for two models, nor under two separators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.interval import Bound, Span, student
from eyechart.harness.spec import Separator, TaskSpec
from eyechart.harness.spec.token_counts import CountedPrompt

Source: TypeAlias = Literal["usage", "scored", "tokenizer"]
"""`usage`: estimated from the prompt tokens that came back. `scored`: from those of the prompts
whose options were scored. `tokenizer`: from prompts that the model's tokenizer counted before they
were asked."""
_LEAST = 5
"""Fewest samples with known tokens; with fewer an interval would say little."""
_MOST_RATIO = 1.1
"""Tokens a symbol that differ by more than this factor make two rows different tasks."""
_DIGITS = 9
"""Decimals, so that one token is not 0.9999999999999999."""
_MERGED = 0.95
"""With fewer tokens a symbol than this, neighbouring symbols share tokens."""


@dataclass(frozen=True, slots=True)
class TokensASymbol:
    """Tokens a symbol under one condition, with a 95 % interval."""

    value: float
    low: float
    high: float
    source: Source

    @property
    def is_merged(self) -> bool:
        """Whether neighbouring symbols share tokens."""
        return self.value < _MERGED

    def of(self, length: Bound) -> Bound:
        """A length in tokens of the row."""
        return Bound(length.sign, length.length * self.value)

    def of_span(self, span: Span) -> Span:
        """An interval in tokens of the row. Its low end is the low end of the length, multiplied by
        the low end of tokens a symbol; its high end likewise. An end outside the tested range is
        that of the range, in the tokens that `of` gives it.
        """
        low, high = (
            Bound(end.sign, end.length * (tokens if end.sign == "=" else self.value))
            for end, tokens in zip(span, (self.low, self.high), strict=True)
        )
        return low, high

    def __str__(self) -> str:
        return f"{self.value:.2f}"


def fitted(
    lengths: Floats,
    tokens: Floats,
    rows: npt.NDArray[np.int64],
    source: Source,
    *,
    own_texts: bool = False,
) -> TokensASymbol | None:
    """Tokens per symbol: the slope of a straight line through tokens over lengths, by ordinary
    least squares. Arrays have shape (N,); unknown tokens are NaN.

    The intercept holds what all prompts share, such as the instructions and a chat template. The
    interval is the wider of two: one from the usual standard error, and one from that of the sums
    of each row in `rows` (Liang & Zeger 1986), because a row has the same words at all lengths.
    Both widths are 0 where every symbol takes the same number of tokens.

    With `own_texts` each row has its own intercept: its prompts have a text, such as worked
    examples, that is the same at all lengths and differs between rows.

    `None` with fewer than five samples or one length only, and where the tokens do not grow.
    """
    known = np.isfinite(tokens)
    x, y, rows = lengths[known], tokens[known], rows[known]
    if len(x) < _LEAST or x.min() == x.max():
        return None
    groups = np.unique(rows, return_inverse=True)[1] if own_texts else np.zeros(len(x), np.int64)
    x, y = (values - _means(values, groups)[groups] for values in (x, y))
    squares, free = float((x**2).sum()), len(x) - 2 - int(groups.max())
    if not squares or free < 1:
        return None
    value = float((x * y).sum()) / squares
    residuals = y - value * x
    half = max(_usual(residuals, squares, free), _of_rows(x * residuals, rows, squares))
    low, high = (round(end, _DIGITS) for end in (value - half, value + half))
    return None if low <= 0 else TokensASymbol(round(value, _DIGITS), low, high, source)


def of_prompts(prompts: Sequence[CountedPrompt]) -> TokensASymbol | None:
    """Tokens per symbol, from prompts that the model's tokenizer counted; see `fitted`."""
    if not prompts:
        return None
    rows, lengths, tokens = np.array(prompts).T
    return fitted(lengths.astype(float), tokens.astype(float), rows, "tokenizer")


def _means(values: Floats, groups: npt.NDArray[np.int64]) -> Floats:
    return np.bincount(groups, values) / np.bincount(groups)


def _usual(residuals: Floats, squares: float, free: int) -> float:
    """The half width where samples are independent, with so many degrees of freedom."""
    return student(free) * math.sqrt(float((residuals**2).sum()) / free / squares)


def _of_rows(products: Floats, rows: npt.NDArray[np.int64], squares: float) -> float:
    """The half width where the samples of a row go together; 0 for a single row."""
    _, places = np.unique(rows, return_inverse=True)
    sums = np.bincount(places, products)
    count = len(sums)
    if count == 1:
        return 0.0
    error = math.sqrt(count / (count - 1) * float((sums**2).sum())) / squares
    return student(count - 1) * error


def writes_rows(spec: TaskSpec, axis: str) -> bool:
    """Whether the values of an axis say how a row is written, so that they change its tokens: the
    axis `separator`, and one with the groups or quotes of a `Separator`.
    """
    values = spec.axes[axis].values.values() if axis in spec.axes else ()
    return axis == "separator" or any(isinstance(value, Separator) for value in values)


@dataclass(frozen=True, slots=True)
class PairTokens:
    """Tokens a symbol on both sides of a comparison under one condition."""

    first: TokensASymbol | None
    second: TokensASymbol | None
    axis: str = ""
    """The axis whose values are compared; empty where two models are."""
    is_of_writing: bool = False
    """See `JudgedRun.may_change_tokens`."""

    @property
    def is_known(self) -> bool:
        return self.first is not None and self.second is not None

    @property
    def swapped(self) -> PairTokens:
        return replace(self, first=self.second, second=self.first)


def differ(tokens: Sequence[TokensASymbol | None]) -> bool:
    """Whether the known ones differ by more than a tenth."""
    values = [one.value for one in tokens if one is not None]
    return bool(values) and max(values) > _MOST_RATIO * min(values)
