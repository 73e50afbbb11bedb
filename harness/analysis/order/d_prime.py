"""How well a model tells a row from its control, without what it prefers to say: d'.

A hit is a right reply under a condition; a false alarm is a reply to its control that names another
symbol than the repeated one. d' is the difference of their normal quantiles (Green & Swets 1966,
"Signal detection theory and psychophysics"): 0 for whoever says the same to both.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

from eyechart.harness.analysis.length.interval import wilson

_Z = NormalDist().inv_cdf


class DPrime(NamedTuple):
    """d' with its 95 % interval; an end that the replies leave open is `None`."""

    value: float
    low: float | None
    high: float | None


def d_prime(hits: float, n: int, false_alarms: float, controls: int) -> DPrime | None:
    """The d' of so many hits of `n` rows and false alarms of `controls`; `None` without any rows.

    Half a row is added to all four counts (Hautus 1995, Behavior Research Methods 27), so that it
    is finite. The interval combines Wilson's of both shares (Zou & Donner 2008, Statistics in
    Medicine 27, "MOVER"). It is open above where all rows are hits or none is a false alarm, since
    d' may then be as large as any number, and open below in the opposite cases.
    """
    of_hits, of_false = wilson(hits, n), wilson(false_alarms, controls)
    if of_hits is None or of_false is None:
        return None
    hit, false = _Z((hits + 0.5) / (n + 1)), _Z((false_alarms + 0.5) / (controls + 1))
    ends = [
        _distance(pair, (hit, false))
        for pair in ((of_hits[0], of_false[1]), (of_hits[1], of_false[0]))
    ]
    low, high = ends
    value = hit - false
    return DPrime(
        value, None if low is None else value - low, None if high is None else value + high
    )


def _distance(shares: tuple[float, float], quantiles: tuple[float, float]) -> float | None:
    """How far an end is from d'; `None` where one of the `shares` at this end is 0 or 1."""
    if not all(0 < share < 1 for share in shares):
        return None
    return math.dist([_Z(share) for share in shares], quantiles)
