"""What d' and the area under the receiver's curve cover, and how often they claim too much.

Margins of the odd option are normal around a value that falls with the length, where the odd symbol
stands, and around 0 in the control. A reply names the odd symbol where the margin is above a
criterion. A run takes about 0.15 s on one core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import NormalDist

import numpy as np

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.limits import Choices, ScoredSamples
from eyechart.harness.analysis.order.d_prime import d_prime
from eyechart.harness.analysis.order.order import REVERSED, order_of_control
from eyechart.harness.analysis.order.resolution import SHARE
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.readings import Recount
from eyechart.harness.spec import line_start
from tests.benchmarks.simulation.apart import falls_below, holds_length, share_of
from tests.benchmarks.simulation.draws import width
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread
from tests.simulated import LINES

SAMPLES = (5, 20)
_START = line_start(0, "simulated")
_LINE = 8
"""The line around 110, which is looked at."""
_NORMAL = NormalDist()
_PLACES = np.arange(5.0, 500.0)


@dataclass(frozen=True, slots=True)
class Observer:
    distance: Callable[[Floats], Floats]
    """The true d' at each length."""
    criterion: float = 0.0
    """How far the point of decision is above the middle of both means: above 0 the repeated symbol
    is preferred."""
    together: float = 0.0
    """Correlation of the margins of one row, at all lengths and in the control."""


def _falling(half: float, slope: float = 2.0, most: float = 4.0) -> Callable[[Floats], Floats]:
    return lambda lengths: most / (1 + (lengths / half) ** slope)


def _reversing(lengths: Floats) -> Floats:
    """Falls through 0 at 60, to -2 beyond 120."""
    falling: Floats = np.clip(-2 * np.log2(lengths / 60), -2, 4)
    return falling


def _none(lengths: Floats) -> Floats:
    return np.zeros_like(lengths)


OBSERVERS: Mapping[str, Observer] = {
    "falls at 60": Observer(_falling(60)),
    "falls slowly": Observer(_falling(60, 1.0)),
    "falls at 60, prefers the repeated one": Observer(_falling(60), 1.5),
    "falls at 60, prefers the odd one": Observer(_falling(60), -1.5),
    "falls at 60, rows together": Observer(_falling(60), together=0.5),
    "falls at 200": Observer(_falling(200)),
    "d′ is 2 everywhere": Observer(lambda lengths: np.full_like(lengths, 2.0)),
    "reverses at 60": Observer(_reversing),
}
BLIND: Mapping[str, Observer] = {
    "blind": Observer(_none),
    "blind, prefers the repeated one": Observer(_none, 1.5),
    "blind, always the repeated one": Observer(_none, 9.0),
    "blind, rows together": Observer(_none, together=0.8),
}


def simulated(observer: Observer, n: int, seed: int) -> tuple[ScoredSamples, ScoredSamples]:
    """The choices of `n` rows on each line, and of their controls."""
    rng = np.random.default_rng(seed)
    lengths = np.array([[line.length_of(row, _START) for line in LINES] for row in range(n)], float)
    own = rng.standard_normal((n, 1)) * math.sqrt(observer.together)
    indexes, places = (one.ravel() for one in np.indices(lengths.shape))
    found = []
    for is_odd in (True, False):
        noise = own + rng.standard_normal(lengths.shape) * math.sqrt(1 - observer.together)
        means = observer.distance(lengths) * (0.5 if is_odd else -0.5) - observer.criterion
        toward_odd = (means + noise).ravel()
        margins = toward_odd if is_odd else -toward_odd
        outcomes = np.where(margins > 0, Outcome.CORRECT.place, Outcome.INCORRECT.place)
        readings = np.full(len(margins), Recount.AS_JUDGED)
        choices = Choices(margins, np.ones(len(margins), int))
        scored = (LINES, places, indexes, lengths.ravel().astype(int), outcomes, readings)
        found.append(ScoredSamples(*scored, has_same_rows=True, choices=choices))
    samples, control = found
    return samples, control


def measure(case: tuple[str, int], runs: int) -> Row:
    """One row of the table."""
    name, samples = case
    observer = {**OBSERVERS, **BLIND}[name]
    areas = np.array([_area(one) for one in observer.distance(_PLACES)])
    length = np.array([float(LINES[_LINE].length)])
    distance = float(observer.distance(length)[0])
    area = _area(distance)
    apart = 0.0 if name in BLIND else falls_below(areas, _PLACES, SHARE)
    found, lines, primes, patterns = [], [], [], []
    for run in range(runs):
        both = simulated(observer, samples, run)
        order = order_of_control(*both)
        assert order is not None
        found.append(order.apart)
        lines.append(order.lines[_LINE])
        patterns.append(any(one.pattern for one in order.lines.values()))
        here = [one.right[one.places == _LINE] for one in both]
        prime = d_prime(float(here[0].sum()), samples, float((~here[1]).sum()), samples)
        assert prime is not None
        primes.append(prime)
    lows, highs = (
        np.array([sign * math.inf if end is None else end for end in ends])
        for sign, ends in ((-1, [one.low for one in primes]), (1, [one.high for one in primes]))
    )
    estimates = [0.0 if one.length is None else one.length.length for one in found]
    return {
        "shape": name,
        "samples": samples,
        "apart": apart,
        "median": float(np.median(estimates)),
        "held": share_of(holds_length(one.length_ci, apart) for one in found),
        "octaves": float(np.median([width(one.length_ci) for one in found])),
        "claimed": share_of(one.length_ci[0].sign != "<" for one in found),
        "area": area,
        "area_held": share_of(one.share_ci[0] <= area <= one.share_ci[1] for one in lines),
        "above": share_of(one.share_ci[0] > 0.5 for one in lines),
        "below": share_of(one.share_ci[1] < 0.5 for one in lines),
        "p": share_of(one.p <= 0.025 for one in lines),
        REVERSED: share_of(patterns),
        "d": distance,
        "d_median": float(np.median([one.value for one in primes])),
        "d_held": share_of(((lows <= distance) & (distance <= highs)).tolist()),
        "d_above": share_of((lows > 0).tolist()),
        "d_below": share_of((highs < 0).tolist()),
        "runs": runs,
    }


def _area(distance: float) -> float:
    return _NORMAL.cdf(distance / math.sqrt(2))


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each observer and number of samples."""
    yield from spread(partial(measure, runs=runs), product((*OBSERVERS, *BLIND), SAMPLES))


SIMULATION = Simulation(
    "what d′ and the area under the receiver’s curve cover, and how often they claim too much",
    (
        Column("shape", "observer"),
        Column("samples", "samples of a line"),
        Column("apart", "apart to", ".0f"),
        Column("median", "median", ".0f"),
        Column("held", "interval holds", ".2f"),
        Column("octaves", "octaves", ".1f"),
        Column("claimed", "has a lower end", ".2f"),
        Column("area", "area around 110", ".2f"),
        Column("area_held", "interval holds", ".2f"),
        Column("above", "above chance", ".2f"),
        Column("below", "below chance", ".2f"),
        Column("p", "p ≤ 0.025", ".3f"),
        Column(REVERSED, "some line reversed", ".2f"),
        Column("d", "d′ around 110", ".2f"),
        Column("d_median", "median", ".2f"),
        Column("d_held", "interval holds", ".2f"),
        Column("d_above", "above 0", ".2f"),
        Column("d_below", "below 0", ".2f"),
    ),
    rows,
)
