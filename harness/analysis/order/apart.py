"""To which length the answers still tell rows apart that differ by a fifth.

The share of pairs of rows that are ordered right falls from 1 to one half, as in a forced choice of
two options; the length is that at which it falls below `resolution.SHARE`, by the same falling
curve as the effective length. Where the share rises above it again, as of a model whose answers
become too small at some length, the curve is that of the lines up to there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from eyechart.harness.analysis.length.bins import Bins
from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.falling_curve import falling_curve
from eyechart.harness.analysis.length.fit import Fit, seen_share
from eyechart.harness.analysis.length.interval import Bound, Span, wilson
from eyechart.harness.analysis.length.limits import ScoredSamples
from eyechart.harness.analysis.length.one_threshold import RowCorrelation, level_of, one_threshold_p
from eyechart.harness.analysis.order.pairs import Pairs, Places, Replies
from eyechart.harness.analysis.order.resolution import SHARE

CHANCE = 0.5
_FEW_ROWS, _FEW_OF_A_SIDE, FEWEST_LINES = 4, 2, 2
"""Pairs of fewer rows, or of fewer smaller or larger ones, weigh no more than one reply; pairs of
fewer lines leave the length open."""


@dataclass(frozen=True, eq=False)
class Shares:
    """The pairs of L lines; arrays of shape (L,)."""

    pairs: Places
    rows: Places
    """Different rows in the pairs."""
    share: Floats
    """Share of pairs ordered right; 0 where there is none."""
    weight: Floats
    """Independent pairs that say as much as those of the line: the variance of one pair over that
    of the share, clustered by row; at most one for each row."""
    dispersion: float
    """Variance of the sum over lines as a multiple of that of lines with different rows."""
    row_sums: Floats
    """How much more of its pairs are ordered right than of others, for each row."""
    of: Pairs


@dataclass(frozen=True, slots=True)
class ApartLength:
    """The length to which rows are told apart: that differ by a fifth, or copies from rows with two
    symbols exchanged, or from a control. Pairs stand at the geometric mean of both lengths, so the
    tested range ends before the longest row.
    """

    length: Bound | None
    """`None` where it is not known. Where something else than sight limits it, it is a lower
    bound."""
    length_ci: Span
    is_limited: bool = False
    """Whether replies that did not fail by sight make it a lower bound."""
    broken: tuple[int, ...] = ()
    """Lines whose pairs are surely not in order although those of longer lines are; numbers of
    `Replies.lines`. The length is that of these lines and shorter ones."""
    by_length: bool = False
    """Whether the larger target always has the longer row, so that the length of the prompt tells
    the order."""


def shares_of(replies: Replies, pairs: Pairs | None = None) -> Shares:
    """The share of `pairs` ordered right at each line; all of the replies unless given."""
    if pairs is None:
        pairs = replies.pairs()
    rows, lines = int(replies.rows.max()) + 1, len(replies.numbers)
    counts = np.bincount(pairs.lines, minlength=lines)
    total = np.maximum(counts, 1)
    share = np.bincount(pairs.lines, pairs.right, lines) / total
    residuals = (pairs.right - share[pairs.lines]) / total[pairs.lines]
    sums, sides = np.zeros(rows * lines), []
    for row in (pairs.smaller, pairs.larger):
        places = row * lines + pairs.lines
        sums += np.bincount(places, residuals, rows * lines)
        sides.append(np.bincount(places, minlength=rows * lines).reshape(rows, lines) > 0)
    by_row = sums.reshape(rows, lines)
    rows_of_line = (sides[0] | sides[1]).sum(axis=0)
    squares = (by_row**2).sum(axis=0)
    variance = squares * rows_of_line / np.maximum(rows_of_line - 1, 1)
    not_sure = (share * counts + 0.5) / (counts + 1)
    weight = np.minimum(
        not_sure * (1 - not_sure) / np.maximum(variance, 1e-12),
        _most_weight(rows_of_line, [side.sum(axis=0) for side in sides], replies),
    )
    row_sums = by_row.sum(axis=1)
    independent = float(squares.sum())
    dispersion = float((row_sums**2).sum()) / independent if independent else 1.0
    return Shares(counts, rows_of_line, share, weight, max(1.0, dispersion), row_sums, pairs)


def _most_weight(rows: Places, sides: Sequence[Places], replies: Replies) -> Floats:
    """What the pairs of each line weigh at most, with so many different rows, and so many on either
    side: as the rank sum of answers in random order (Mann & Whitney 1947), and as their rows. Where
    one row is in all pairs, the line says no more than one reply.
    """
    if replies.is_control:  # a row has two replies
        most = rows // 2
        return np.where(most < _FEW_ROWS, np.minimum(most, 1), most).astype(float)
    smaller, larger = sides
    most = np.minimum(rows, 3 * smaller * larger / (smaller + larger + 1))
    is_few = (rows < _FEW_ROWS) | (np.minimum(smaller, larger) < _FEW_OF_A_SIDE)
    return np.where(is_few, np.minimum(most, 1), most)


def apart(samples: ScoredSamples, replies: Replies, shares: Shares) -> ApartLength:
    """The length. Missing answers count as ties. Where it would be longer without those replies
    that did not fail by sight, or where wrong replies were misread, only its lower end is known.
    """
    found = replace(apart_of(replies, shares), by_length=replies.are_by_length)
    if not samples.set_aside.any():
        return found
    others = Replies.of(samples, without_set_aside=True)
    allowed = None if others is None else apart_of(others, shares_of(others)).length
    longest = _ends(shares.of, replies)[1]
    return limited(found, allowed, longest, is_misread=bool(samples.misread.any()))


def limited(
    found: ApartLength, allowed: Bound | None, longest: float, *, is_misread: bool
) -> ApartLength:
    """The length, where replies did not fail by sight, and without these it is `allowed`."""
    low, high = found.length_ci
    is_longer = high.sign != ">" and (
        allowed is None or allowed.sign == ">" or allowed.length > high.length
    )
    if not is_longer and not is_misread:
        return found
    known = None if low.sign == "<" else Bound(">", low.length)
    return replace(found, length=known, length_ci=(low, Bound(">", longest)), is_limited=True)


def apart_of(replies: Replies, shares: Shares) -> ApartLength:
    """The length, with ties for missing answers."""
    shortest, longest = _ends(shares.of, replies)
    if (shares.pairs > 0).sum() < FEWEST_LINES:
        return named_length(None, shortest, longest)
    fitted = _fit(shares, Bins(shortest, longest))
    if not (broken := _broken(shares, fitted)):
        return named_length(fitted, shortest, longest)
    upto = shares.of.up_to(broken[-1])
    return replace(apart_of(replies, shares_of(replies, upto)), broken=broken)


def _broken(shares: Shares, fitted: Fit) -> tuple[int, ...]:
    """See `ApartLength.broken`: the first such lines, if by the test of the effective length, with
    each line as one bin, the shares have no single threshold.
    """
    answered = np.rint(shares.weight / shares.dispersion) * (shares.pairs > 0)
    lines = np.flatnonzero(answered)
    sums = np.bincount(shares.of.lines, shares.of.places, len(answered))
    places = sums[lines] / shares.pairs[lines]
    answered, share = answered[lines], shares.share[lines]
    p = one_threshold_p(
        share * answered,
        answered,
        np.interp(fitted.bins.read_at(places), np.arange(fitted.bins.count), fitted.accuracy),
        SHARE,
        np.log2(places / fitted.bins.shortest),
    )
    if p >= level_of(shares.rows[lines].astype(float)):
        return ()
    broken: list[int] = []
    last = np.flatnonzero(share >= SHARE)[-1]
    for place in range(last):
        _, high = wilson(share[place] * answered[place], answered[place]) or (0.0, 1.0)
        if share[place] < SHARE and (broken or high < SHARE):
            broken.append(int(lines[place]))
        elif broken:
            break
    return tuple(broken)


def named_length(fitted: Fit | None, shortest: float, longest: float) -> ApartLength:
    """The length of a fit; not known without one. It is named only with a lower end: the estimate
    alone was within the range for 9 % of shuffled answers.
    """
    if fitted is None:
        return ApartLength(None, (Bound("<", shortest), Bound(">", longest)))
    low, high = fitted.between_quantiles()
    length: Bound | None = fitted.median
    if low.sign == "<":
        is_below = fitted.median.sign == "<" and high.sign != ">"
        length = Bound("<", shortest) if is_below else None
    return ApartLength(length, (low, high))


def _ends(pairs: Pairs, replies: Replies) -> tuple[float, float]:
    """The shortest and the longest length of a pair, as whole numbers; of a row without pairs."""
    places = pairs.places if len(pairs) else replies.lengths
    return float(np.rint(places.min())), float(np.rint(places.max()))


def _fit(shares: Shares, bins: Bins) -> Fit:
    """The falling curve of the shares. Each pair of a line has the same part of its weight."""
    pairs = shares.of
    places = bins.places(pairs.places)
    weights = (shares.weight / np.maximum(shares.pairs, 1))[pairs.lines]
    correct, answered = (
        np.bincount(places, values, bins.count).astype(float)
        for values in (weights * pairs.right, weights)
    )
    counts = correct[None] / shares.dispersion, answered[None] / shares.dispersion
    chances = np.full(bins.count, CHANCE)
    ends = [
        (float(here.min()), float(here.max()))
        for line in np.flatnonzero(shares.pairs)
        for here in [pairs.places[pairs.lines == line]]
    ]
    return Fit(
        bins=bins,
        required=SHARE,
        correct=correct,
        answered=answered,
        curve=falling_curve(*counts, seen_share(SHARE, CHANCE), bins.centres, chances),
        row_sums=shares.row_sums,
        together=RowCorrelation(0.0, np.zeros((bins.count, bins.count))),
        dispersion=shares.dispersion,
        chance=CHANCE,
        gaps=[(high, low) for (_, high), (low, _) in pairwise(ends)],
    )
