"""Whether the answers of a condition order its rows, line by line, and to which length.

`docs/near.md` says what the numbers mean; `tests/benchmarks/simulation/apart.py` measures
their intervals and false claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.interval import at_most, wilson
from eyechart.harness.analysis.length.limits import ScoredSamples
from eyechart.harness.analysis.order.apart import (
    CHANCE,
    ApartLength,
    Shares,
    apart,
    apart_of,
    shares_of,
)
from eyechart.harness.analysis.order.pairs import Replies
from eyechart.harness.analysis.order.resolution import (
    FEWEST_ROWS,
    FEWEST_TARGETS,
    WIDEST,
    Resolution,
    resolution,
)

REVERSED, HEAPED, CONSTANT, BROKEN = PATTERNS = ("reversed", "heaped", "constant", "broken")
"""What the answers of a line may be: in the opposite order, mostly multiples of ten, nearly always
the same, or out of order between lines that are in order (`ApartLength.broken`)."""
LEAST_ROWS = 4
"""With fewer rows no share of a line is given."""
_FEWEST_ANSWERS = 8
"""With fewer answers, or `FEWEST_TARGETS`, no pattern is named."""
_LEVEL = 0.05 / 3
"""At most how often each of the first three is named in a run whose answers do not have it."""
_HEAPED, _CONSTANT = 0.6, 0.9
"""Shares of the answers from which on they are heaped, or constant."""
_HEAP, _BY_CHANCE = 10, 0.1
_HALF = 0.5
"""The share that a constant answer must exceed, by a binomial test; no two numbers do."""
_ORDERS, _AT_ONCE = 1999, 1_000_000
"""Permutations of a line, and most numbers that are permuted at once."""


@dataclass(frozen=True, slots=True)
class OrderOfLine:
    """How the answers of one line order its rows."""

    share: float
    """Share of the pairs of rows that differ by about a fifth whose answers have the same order;
    half of ties counts. 0.5 is chance. NaN where there are too few. Of copies it is the share that
    is nearer to its row than to one beside it; of choices with a control the share of pairs with
    the control in which the odd option is more probable where it stands: the area under the
    receiver's curve."""
    share_ci: tuple[float, float]
    """Its 95 % interval, with rows as the unit."""
    pairs: int
    p: float
    """One-sided p-value of no order, by permutation of the answers over the rows of the line."""
    resolution: Resolution | None
    """`None` where the line has too few rows or targets."""
    pattern: str
    """One of `PATTERNS`, or empty."""


@dataclass(frozen=True, eq=False)
class Order:
    """How the answers of a condition order its rows."""

    lines: Mapping[int, OrderOfLine]
    """Number of a line in `ScoredSamples.lines` -> its order; lines with a reply."""
    apart: ApartLength
    """To which length rows are told apart."""


def order(samples: ScoredSamples, conditions: int = 1) -> Order | None:
    """The order of one of so many `conditions` of a run; `None` where answers are no counts, see
    `ScoredSamples.counts`. Patterns are corrected for the lines of all conditions.
    """
    replies = Replies.of(samples)
    if replies is None:
        return None
    shares = shares_of(replies)
    return _order(replies, shares, conditions, apart(samples, replies, shares))


def order_of_control(
    samples: ScoredSamples, control: ScoredSamples, conditions: int = 1
) -> Order | None:
    """How the margins of the odd option order rows that have it and those of their `control`;
    `None` where these are not choices between the same two options.
    """
    replies = Replies.of_control(samples, control)
    if replies is None:
        return None
    shares = shares_of(replies)
    return _order(replies, shares, conditions, apart_of(replies, shares))


def _order(replies: Replies, shares: Shares, conditions: int, found: ApartLength) -> Order:
    lines = _lines(replies, shares, conditions)
    for number in replies.numbers[list(found.broken)].tolist():
        lines[number] = replace(lines[number], pattern=lines[number].pattern or BROKEN)
    return Order(lines, found)


def _lines(replies: Replies, shares: Shares, conditions: int) -> dict[int, OrderOfLine]:
    level = _LEVEL / len(replies.numbers) / conditions
    lines = {}
    for line, number in enumerate(replies.numbers.tolist()):
        p, p_reversed, rows = _chance_of_order(replies, line, level)
        here = replies.lines == line
        targets, answers = replies.targets[here], replies.answers[here]
        few_targets = len(np.unique(targets)) < FEWEST_TARGETS
        share, pairs = float(shares.share[line]), int(shares.pairs[line])
        weight = float(shares.weight[line])
        interval = wilson(share * weight, weight) or (np.nan, np.nan)
        is_known = pairs > 0 and shares.rows[line] >= LEAST_ROWS
        is_below = is_known and interval[1] < CHANCE
        pattern = "" if few_targets else _pattern(targets, answers, p_reversed, level)
        if replies.is_control and p_reversed <= level:
            pattern = REVERSED
        lines[number] = OrderOfLine(
            share if is_known else np.nan,
            interval if is_known else (np.nan, np.nan),
            pairs,
            p,
            None
            if few_targets or rows < FEWEST_ROWS
            else resolution(replies.pairs_within(line, WIDEST), p),
            "" if pattern == REVERSED and not is_below else pattern,
        )
    return lines


def _chance_of_order(replies: Replies, line: int, level: float) -> tuple[float, float, int]:
    """How often chance orders the rows of a line as well, and how often it reverses them as well;
    and the number of rows. The statistic is the sum over rows of the rank of the target times how
    many answers of the line are smaller, less how many are larger; a missing answer is neither.

    Where no permutation reverses them as well, others are drawn, so many that the p-value can be
    below `level`.
    """
    here = replies.lines == line
    rows, row = np.unique(replies.rows[here], return_inverse=True)
    answers = replies.answers[here]
    read = ~np.isnan(answers)
    above = np.zeros(len(answers))
    above[read] = _ranks(answers[read])
    above_of_row: Floats = np.bincount(row, above).astype(float)
    ranks = _ranks(np.bincount(row, replies.targets[here]) / np.bincount(row))
    rng = np.random.default_rng(0)
    as_ordered, as_reversed = _as_far(above_of_row, ranks, _ORDERS, rng)
    p, p_reversed = ((1 + many) / (1 + _ORDERS) for many in (as_ordered, as_reversed))
    more = int(2 / level)
    if not as_reversed and more > _ORDERS:
        p_reversed = (1 + _as_far(above_of_row, ranks, more, rng)[1]) / (1 + more)
    return p, p_reversed, len(rows)


def _as_far(above: Floats, ranks: Floats, orders: int, rng: np.random.Generator) -> tuple[int, int]:
    """How many of so many random orders of `above` go together with `ranks` at least as much as
    the order that is there, and how many at most as much.
    """
    found = float(above @ ranks)
    nearly = 1e-9 * max(1.0, float(np.abs(above) @ np.abs(ranks)))
    least = most = 0
    at_once = max(1, _AT_ONCE // len(above))
    for begin in range(0, orders, at_once):
        shape = min(at_once, orders - begin), len(above)
        sums = rng.permuted(np.broadcast_to(above, shape), axis=1) @ ranks
        least += int((sums >= found - nearly).sum())
        most += int((sums <= found + nearly).sum())
    return least, most


def _ranks(values: Floats) -> Floats:
    """How many values are smaller, less how many are larger."""
    ascending = np.sort(values)
    smaller = np.searchsorted(ascending, values)
    ranks: Floats = (smaller + np.searchsorted(ascending, values, side="right")).astype(float)
    return ranks - len(values)


def _pattern(targets: Floats, answers: Floats, p_reversed: float, level: float) -> str:
    """The pattern of a line; the first of several."""
    read = answers[np.isfinite(answers)]
    if len(read) < _FEWEST_ANSWERS:
        return ""
    _, counts = np.unique(read, return_counts=True)
    most = int(counts.max())
    by_chance = 1 - at_most(most - 1, len(read), _HALF)
    if most >= _CONSTANT * len(read) and by_chance <= level:
        return CONSTANT
    if p_reversed <= level:
        return REVERSED
    heaped = int((read % _HEAP == 0).sum())
    usual = max(_BY_CHANCE, float((targets % _HEAP == 0).mean()))
    by_chance = 1 - at_most(heaped - 1, len(read), usual)
    return HEAPED if heaped >= _HEAPED * len(read) and by_chance <= level else ""
