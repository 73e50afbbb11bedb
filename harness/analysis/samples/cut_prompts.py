"""Prompts that a server cut without an error: their prompt tokens stop growing, or fall.

Servers with a small window drop the end or the middle of a longer prompt, and the model answers
about another row. The tokens of the shorter prompts of a condition lie on a line over their
characters. Longer prompts are cut where the line goes on and their tokens do not. Where all prompts
have one count there is no such line: they are cut, or the count is not real.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.interval import student

_LEAST, _GROWN = 4, 16
"""The line needs so many prompts, and must have risen by so many tokens."""
_LEVEL = 0.0005
"""How often the line may leave out a prompt by chance."""
_BEYOND, _TOKENS = 1.1, 16
"""Longer prompts are those of which the line says more than this factor of the largest count
before, and so many tokens more."""
_ALIKE, _ALIKE_TOKENS = 0.01, 2
"""Counts are alike up to this share of the growth of the shorter prompts, and so many tokens."""
_LEFT = 0.45
"""A server that cuts leaves about half of its window at least. With fewer tokens the count is
another one, such as that of the tokens that were in no cache."""
_FAR, _LEFT_FAR = 2.0, 0.75
"""A server that cuts in blocks may leave more of a prompt that is so many times beyond the largest
count, up to this share of the line."""
_LENGTHS, _LONG = 3, 128
"""Lengths of prompts, and tokens that they grow by, of a line that does not end by itself: a
tokenizer joins no more symbols than this."""
_SHARE = 0.95
"""Share of the longer prompts that must be cut."""
_FEWEST, _FEWEST_GIVEN = 2, 5
"""Longer prompts that are enough. Somebody's data need more, and with counts that are alike, since
a longer text may have fewer tokens than another one."""
_UNEVEN, _TOGETHER = 0.05, 0.5
"""Counts of a window that is not cut at the same token each time: they differ by at most this share
of what the line says, and are correlated with the characters by less than this."""
_MOST_ENDS = 200
"""Places that are tried as the end of the line."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Which prompts of a condition are cut."""

    shortest: float
    """Characters of the shortest prompt that may be."""
    start: float
    slope: float
    """The line: tokens of a prompt without characters, and tokens a character."""
    margin: float
    """Tokens that may be missing of a whole prompt."""
    uncounted: float = math.inf
    """Characters from which all counted prompts are cut, so that one without a count is too."""

    def expected(self, chars: Any) -> Any:
        """Tokens that the line says; of a number, or of an array."""
        return self.start + self.slope * chars

    def holds(self, chars: Any, tokens: Any, cached: Any) -> Any:
        """Whether prompts are cut; of numbers, or of arrays. Where the tokens from a cache are
        those that are missing, the server has left them out of its count.
        """
        missing = self.expected(chars) - tokens
        in_count = (cached == 0) | (abs(missing - cached) > self.margin + _ALIKE * tokens)
        is_known = (tokens > 0) & (chars >= self.shortest)
        is_like_others = (tokens == 0) & (chars >= self.uncounted)
        return (is_known & (missing > self.margin) & in_count) | is_like_others


def cut_prompts(chars: Floats, tokens: Floats, cached: Floats, *, given: bool) -> Cut | None:
    """Which prompts of one condition are cut; `None` if none is. Arrays have shape (N,): characters
    of a prompt, its tokens, and those of them that came from a cache; 0 where it is not known.
    `given` rows are those of somebody's data.
    """
    known = (chars > 0) & (tokens > 0)
    if known.sum() <= _LEAST or np.ptp(tokens[known]) < _GROWN:
        return None
    order = np.argsort(chars[known], kind="stable")
    x, y, cached = (values[known][order] for values in (chars, tokens, cached))
    last_of_each = np.flatnonzero(np.diff(x, append=np.inf))
    ends = last_of_each[last_of_each >= _LEAST - 1][:-1]
    if len(ends) > _MOST_ENDS:
        ends = ends[np.linspace(0, len(ends) - 1, _MOST_ENDS).astype(int)]
    for end in ends:
        shorter, longer = slice(end + 1), slice(end + 1, None)
        if (line := _Line.through(x[shorter], y[shorter])) is not None:
            rest = x[longer], y[longer], cached[longer]
            if _are_cut(line, *rest, y[shorter], given=given):
                cut = _refined(line, x[shorter], y[shorter])
                return replace(cut, uncounted=_all_cut_from(x, cut.holds(x, y, cached)))
    return None


@dataclass(frozen=True, slots=True)
class OneCount:
    """A number of tokens that all prompts of a condition have, however long they are."""

    tokens: int
    shortest: int
    longest: int
    """Characters of the shortest and the longest prompt."""


def one_count(chars: Floats, tokens: Floats, cached: Floats) -> OneCount | None:
    """The count that the server gives for all prompts of one condition; `None` where there is more
    than one, where the prompts are too much alike for any tokenizer to tell them apart, and where a
    cache may hold what is missing. The arguments are those of `cut_prompts`.
    """
    known = (chars > 0) & (tokens > 0)
    x, y = chars[known], tokens[known]
    if len(x) < _FEWEST_GIVEN or cached[known].any():
        return None
    if np.ptp(y) > _ALIKE_TOKENS or np.ptp(x) < _LONG * (_ALIKE_TOKENS + np.ptp(y)):
        return None
    return OneCount(int(y.max()), int(x.min()), int(x.max()))


@dataclass(frozen=True, slots=True)
class _Line:
    """The line through some prompts."""

    cut: Cut
    middle: float
    squares: float
    prompts: int
    is_long: bool
    """Whether it rises by many tokens over three lengths or more."""

    @classmethod
    def through(cls, x: Floats, y: Floats) -> _Line | None:
        """The line by least squares; `None` where it is not sure that it rises."""
        if len(x) < _LEAST or x[0] == x[-1]:
            return None
        middle = float(x.mean())
        squares = float(((x - middle) ** 2).sum())
        slope = float(((x - middle) * y).sum()) / squares
        start = float(y.mean()) - slope * middle
        free = len(x) - 2
        noise = math.sqrt(float(((y - start - slope * x) ** 2).sum()) / free)
        noise *= student(free, _LEVEL)
        if slope * np.ptp(x) < _GROWN or slope <= noise / math.sqrt(squares):
            return None
        is_long = len(np.unique(x)) >= _LENGTHS and slope * float(np.ptp(x)) >= _LONG
        found = Cut(float(x[-1]), start, slope, _ALIKE_TOKENS + noise)
        return cls(found, middle, squares, len(x), is_long)

    def least(self, x: Floats) -> Floats:
        """The fewest tokens that prompts should have."""
        noise = self.cut.margin - _ALIKE_TOKENS
        spread = np.sqrt(1 + 1 / self.prompts + (x - self.middle) ** 2 / self.squares)
        least: Floats = self.cut.expected(x) - _ALIKE_TOKENS - noise * spread
        return least


def _are_cut(
    line: _Line, x: Floats, y: Floats, cached: Floats, before: Floats, *, given: bool
) -> bool:
    """Whether the prompts that should have more tokens than those `before` are cut."""
    most = float(before.max())
    least = line.least(x)
    beyond = least > _BEYOND * most + _TOKENS
    x, y, cached, least = (values[beyond] for values in (x, y, cached, least))
    if len(x) < (_FEWEST_GIVEN if given else _FEWEST):
        return False
    alike = _ALIKE_TOKENS + _ALIKE * float(np.ptp(before))
    spread = float(np.ptp(y))
    if given and spread > alike:
        return False
    grown = line.cut.slope * float(np.ptp(x))
    is_uneven = len(x) >= _FEWEST_GIVEN and spread <= _UNEVEN * grown and not _rises(x, y)
    is_level = (spread <= _ALIKE_TOKENS or is_uneven) and (
        grown > _TOKENS + (_BEYOND - 1) * most
        or (not given and line.is_long and line.cut.margin <= alike)
    )
    far = least > _FAR * most
    allowed = np.full(len(x), most + alike)
    if (~far).sum() >= _FEWEST:
        allowed[far] = np.maximum(allowed, _LEFT_FAR * least)[far]
    cut = (is_level | (y <= allowed)) & (y >= _LEFT * most) & line.cut.holds(x, y, cached)
    return bool(cut.mean() >= _SHARE)


def _all_cut_from(x: Floats, is_cut: npt.NDArray[np.bool_]) -> float:
    """Characters of the shortest prompt from which all are cut; infinite where none is."""
    whole = x[~is_cut]
    cut = x[is_cut & (x > (whole.max() if len(whole) else 0))]
    return float(cut.min()) if len(cut) else math.inf


def _rises(x: Floats, y: Floats) -> bool:
    """Whether counts go with the characters, as those of any tokenizer do, however few they are."""
    return float(np.ptp(y)) > 0 and float(np.corrcoef(x, y)[0, 1]) > _TOGETHER


def _refined(line: _Line, x: Floats, y: Floats) -> Cut:
    """The line without prompts that may be cut themselves: those with the largest counts."""
    whole = y < y.max() - _ALIKE_TOKENS - _ALIKE * np.ptp(y)
    again = _Line.through(x[whole], y[whole])
    return line.cut if again is None else replace(again.cut, shortest=line.cut.shortest)
