"""What a reply costs at a length that the user names."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eyechart.harness.analysis.length.interval import Sign
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.plan.cost import Spent
from eyechart.harness.spec.columns import MANY_REPLIES
from eyechart.harness.spec.dollars import dollars_text

_NEAR = 2
"""A row is near a length if it is at least half and at most twice as long."""
_ALIKE = 0.5
"""Replies whose dollars are all within this share of their mean are taken to be as long at other
lengths."""


class CostAt(NamedTuple):
    """Dollars of a reply to a row of some length."""

    dollars: float
    sign: Sign = "="
    """`>` beyond the rows asked, where replies grow with the row: at least so much; `<` below."""

    def text(self, replies: int = MANY_REPLIES) -> str:
        """Dollars of so many replies, as `$12.94`, `> $94`."""
        said = dollars_text(replies * self.dollars)
        return said if self.sign == "=" else f"{self.sign} {said}"


def cost_at(spent: Sequence[Spent], length: int) -> CostAt | None:
    """Dollars of a reply to a row of `length` symbols; `None` of fewer than two lengths of rows.

    Prompt and reply each cost what the straight line through the rows from half of the length to
    twice the length says (ordinary least squares). Where such rows are not on both sides, the
    nearest rows take their place, and a reply costs as much as theirs: where those differ among
    themselves, as the replies of a model that thinks do, this is a bound, since longer rows have
    longer replies. Where the next rows say that this model writes longer replies to shorter rows,
    it is no bound, and the result is `None`.
    """
    lengths = [one.length for one in spent]
    if len(set(lengths)) <= 1:
        return None
    nearest = min(max(length, min(lengths)), max(lengths))
    near = [one for one in spent if nearest <= _NEAR * one.length <= _NEAR**2 * nearest]
    if not near or (not _is_around(near, length) and _is_around(spent, length)):  # lines far apart
        below = max(one for one in lengths if one <= length)
        above = min(one for one in lengths if one >= length)
        near = [one for one in spent if below <= _NEAR * one.length and one.length <= _NEAR * above]
    prompt = max(_on_line([(one.length, one.prompt) for one in near], length), 0.0)
    replies = [one.reply for one in near]
    mean = statistics.fmean(replies)
    if _is_around(near, length):
        reply = _on_line([(one.length, one.reply) for one in near], length)
        return CostAt(prompt + (reply if reply > 0 else mean))
    if max(abs(one - mean) for one in replies) <= _ALIKE * mean:
        return CostAt(prompt + mean)
    is_beyond = length > nearest
    following = _following(spent, nearest, is_beyond=is_beyond)
    shorter, longer = (following or mean, mean) if is_beyond else (mean, following or mean)
    if shorter > (1 + _ALIKE) * longer:
        return None
    return CostAt(prompt + mean, ">" if is_beyond else "<")


def _following(spent: Sequence[Spent], nearest: int, *, is_beyond: bool) -> float | None:
    """What replies cost to the rows that follow those near the end of all rows: from two to four
    times as far from it. `None` without such rows.
    """
    ratios = ((nearest / one.length if is_beyond else one.length / nearest, one) for one in spent)
    replies = [one.reply for ratio, one in ratios if _NEAR < ratio <= _NEAR**2]
    return statistics.fmean(replies) if replies else None


def _is_around(spent: Sequence[Spent], length: int) -> bool:
    """Whether there are rows on both sides of a length, or some of it."""
    lengths = [one.length for one in spent]
    return min(lengths) <= length <= max(lengths)


def _on_line(points: Sequence[tuple[int, float]], length: int) -> float:
    """The value at `length` of the straight line through points; their mean, of one length."""
    lengths, values = zip(*points, strict=True)
    if len(set(lengths)) == 1:
        return statistics.fmean(values)
    slope, start = statistics.linear_regression(lengths, values)
    return start + slope * length


def costs_at(judged: JudgedCondition, lengths: Iterable[int]) -> Mapping[int, CostAt]:
    """Length -> what a reply costs there, by the replies under a condition whose cost is known."""
    model, run = judged.run.model, judged.run
    if model is None or model.prices is None:
        return {}
    names = ("cell", "record", "true_length", "cost")
    tokens = ("prompt_tokens", "output_tokens", "thinking_tokens")
    cells, records, rows, costs = (run.samples[name].to_numpy() for name in names)
    places = np.flatnonzero(np.isin(cells, judged.places) & ~np.isnan(costs))
    once = places[np.unique(records[places], return_index=True)[1]]
    used = (run.samples[name].to_numpy(float)[once].tolist() for name in tokens)
    spent = [
        Spent.of(length, model.prices, (int(prompt), int(output), _known(thought)), dollars)
        for length, dollars, prompt, output, thought in zip(
            rows[once].tolist(), costs[once].tolist(), *used, strict=True
        )
        if prompt == prompt and output == output  # noqa: PLR0124  not NaN
    ]
    found = {length: cost_at(spent, length) for length in lengths}
    return {length: one for length, one in found.items() if one is not None}


def _known(tokens: float) -> int | None:
    return None if tokens != tokens else int(tokens)  # noqa: PLR0124  NaN
