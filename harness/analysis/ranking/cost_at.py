"""What a reply costs at a length that the user names."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.spec.columns import MANY_REPLIES
from eyechart.harness.spec.dollars import dollars_text

_NEAR = 2
"""Rows from half of the length to twice the length are near it."""


def cost_at(dollars: Sequence[tuple[int, float]], length: int) -> float | None:
    """Dollars of a reply to a row of `length` symbols, from the lengths of rows with the dollars of
    their replies: by the straight line through those from half to twice the length (ordinary least
    squares). `None` where these rows are all shorter, or all longer, or the line is not above 0.
    """
    near = [one for one in dollars if length <= _NEAR * one[0] and one[0] <= _NEAR * length]
    lengths = [one[0] for one in near]
    if not near or not min(lengths) < length < max(lengths):
        return None
    slope, start = statistics.linear_regression(lengths, [one[1] for one in near])
    found = start + slope * length
    return found if found > 0 else None


def cost_of_reply_at(judged: JudgedCondition, length: int) -> float | None:
    """The same of the replies under a condition whose cost is known."""
    names = ("cell", "record", "true_length", "cost")
    cells, records, lengths, costs = (judged.run.samples[name].to_numpy() for name in names)
    places = np.flatnonzero(np.isin(cells, judged.places) & ~np.isnan(costs))
    once = places[np.unique(records[places], return_index=True)[1]]
    return cost_at(list(zip(lengths[once].tolist(), costs[once].tolist(), strict=True)), length)


def many_text(cost_a_reply: float | None) -> str:
    """Dollars of `MANY_REPLIES` replies, as `$12.94`; empty where unknown."""
    return "" if cost_a_reply is None else dollars_text(MANY_REPLIES * cost_a_reply)
