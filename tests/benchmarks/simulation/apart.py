"""What the lengths "near" and "apart" cover, and how often an order is claimed that is not there.

Models that count with a known spread, heap on tens, turn back or guess, and models whose answers
know nothing of the row. The truth is that of many rows: how many answers are within 5 %, how many
pairs with a ratio of 1.2 are ordered right, and where these fall below 85 % and 75 %.

A run takes about 0.15 s on one core, so 500 runs of each row are a night of two hours:
`nice -n 19 python -m tests.benchmarks.simulation apart --runs 500 --jobs 1 --docs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.curve import TAILS, Floats
from eyechart.harness.analysis.length.interval import Span
from eyechart.harness.analysis.length.limits import scored_length
from eyechart.harness.analysis.order.near import near_length
from eyechart.harness.analysis.order.order import order
from eyechart.harness.analysis.order.pairs import ordered
from eyechart.harness.analysis.order.resolution import SHARE, Resolution
from eyechart.harness.settings.judging import NEAR, THRESHOLD
from tests.benchmarks.simulation.draws import holds, width
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread
from tests.simulated import LINES, Observer, counted

SAMPLES = (5, 20)
_BASE = 100.0
_ROWS = 4000
"""Simulated rows, or pairs, at each length behind the truth."""
_PLACES = np.exp(np.linspace(math.log(LINES[0].low + 2), math.log(LINES[-1].high), 120))
_LENGTHS = np.arange(LINES[0].low, LINES[-1].high, dtype=float)
_STEP = 0.005
"""Half of the distance of ratios that are tried for the true resolution."""
_LINE = 8
"""The line around 110, whose share and resolution are looked at."""


def weber(spread: float, growth: float = 0.0) -> Observer:
    """An observer whose answers are log-normal around the target. Their coefficient of variation
    is `spread` at a target of 100, and is multiplied by (target / 100) ** `growth` elsewhere.
    """

    def observer(targets: Floats, rng: np.random.Generator) -> Floats:
        variation = spread * (np.maximum(targets, 1) / _BASE) ** growth
        deviation = np.sqrt(np.log1p(variation**2))
        return np.rint(targets * np.exp(deviation * rng.standard_normal(targets.shape)))

    return observer


def by_row(spread: float, growth: float, correlation: float = 0.5) -> Observer:
    """The same, with errors of a row that go together at all lengths."""

    def observer(targets: Floats, rng: np.random.Generator) -> Floats:
        variation = spread * (np.maximum(targets, 1) / _BASE) ** growth
        own = rng.standard_normal((*targets.shape[:-1], 1)) * math.sqrt(correlation)
        noise = own + rng.standard_normal(targets.shape) * math.sqrt(1 - correlation)
        return np.rint(targets * np.exp(np.sqrt(np.log1p(variation**2)) * noise))

    return observer


def capped(most: float, spread: float) -> Observer:
    """No answer is above `most`."""
    counts = weber(spread)
    return lambda targets, rng: np.minimum(counts(targets, rng), most)


def heaped(spread: float, growth: float, step: float = 10) -> Observer:
    """Multiples of ten from 50 on."""
    counts = weber(spread, growth)

    def observer(targets: Floats, rng: np.random.Generator) -> Floats:
        answers = counts(targets, rng)
        return np.where(targets > 5 * step, np.rint(answers / step) * step, answers)

    return observer


def turning(targets: Floats, rng: np.random.Generator) -> Floats:
    """Exact to 40; beyond, a longer row has a smaller answer."""
    back = 40 - 4 * np.log2(targets / 40) + rng.standard_normal(targets.shape)
    answers: Floats = np.where(targets <= 40, targets, np.rint(back))
    return answers


def exact_or(other: Observer, half: float) -> Observer:
    """Exact with a probability that falls with the target, one half at `half`; else as `other`."""

    def observer(targets: Floats, rng: np.random.Generator) -> Floats:
        is_exact = rng.random(targets.shape) < 1 / (1 + (targets / half) ** 2)
        return np.where(is_exact, targets, other(targets, rng))

    return observer


def sometimes_exact(targets: Floats, rng: np.random.Generator) -> Floats:
    """Exact in 60 %, else a guess."""
    is_exact = rng.random(targets.shape) < 0.6
    return np.where(is_exact, targets, guess(targets, rng))


def unread(other: Observer, share: float) -> Observer:
    """This share of the replies has no answer."""

    def observer(targets: Floats, rng: np.random.Generator) -> Floats:
        return np.where(rng.random(targets.shape) < share, np.nan, other(targets, rng))

    return observer


def guess(targets: Floats, rng: np.random.Generator) -> Floats:
    """Numbers around 80, whatever the row is."""
    answers: Floats = np.rint(80 * np.exp(0.3 * rng.standard_normal(targets.shape)))
    return answers


def guess_by_row(targets: Floats, rng: np.random.Generator) -> Floats:
    """One guess a row, at all lengths: by its label."""
    own = rng.standard_normal((*targets.shape[:-1], 1))
    answers: Floats = np.rint(np.broadcast_to(80 * np.exp(0.3 * own), targets.shape))
    return answers


def guess_tens(targets: Floats, rng: np.random.Generator) -> Floats:
    return np.rint(guess(targets, rng) / 10) * 10


def of_some(*numbers: float) -> Observer:
    """One of these numbers."""
    return lambda targets, rng: rng.choice(np.array(numbers), targets.shape)


def nearly_constant(targets: Floats, rng: np.random.Generator) -> Floats:
    """100, and in 12 % another number."""
    other = rng.choice(np.array([40.0, 60.0, 90.0, 37.0]), targets.shape)
    return np.where(rng.random(targets.shape) < 0.12, other, 100.0)


def absurd(targets: Floats, rng: np.random.Generator) -> Floats:
    """From 1 to 400,000, evenly in the logarithm."""
    return np.rint(np.exp(rng.uniform(0, 13, targets.shape)))


OBSERVERS: Mapping[str, Observer] = {
    "spread 2 %, growing": weber(0.02, 1.0),
    "spread 10 %, growing slowly": weber(0.1, 0.5),
    "spread 20 %, growing slowly": weber(0.2, 0.5),
    "spread 20 %, growing": weber(0.2, 1.0),
    "the same, rows together": by_row(0.2, 1.0),
    "spread 10 % everywhere": weber(0.1),
    "spread 30 % everywhere": weber(0.3),
    "never above 100": capped(100, 0.05),
    "heaped on tens": heaped(0.2, 0.5),
    "exact, else a guess": exact_or(guess, 60),
    "exact in 60 %, else a guess": sometimes_exact,
    "exact, else spread 25 %": exact_or(weber(0.25), 60),
    "10 % absurd": lambda targets, rng: np.where(
        rng.random(targets.shape) < 0.1, absurd(targets, rng), weber(0.1, 0.5)(targets, rng)
    ),
    "10 % unread": unread(weber(0.1, 0.5), 0.1),
    "turns back at 40": turning,
}
BLIND: Mapping[str, Observer] = {
    "guesses": guess,
    "guesses by row": guess_by_row,
    "guesses on tens": guess_tens,
    "one of three": of_some(50, 100, 200),
    "nearly always 100": nearly_constant,
    "always 100": of_some(100),
    "absurd": absurd,
    "half unread": unread(guess, 0.5),
}
"""Observers whose answers know nothing of the row."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What many rows show; lengths are 0 or infinite outside the range."""

    near: float = 0.0
    """The length where answers are no longer within 5 % in 85 %."""
    apart: float = 0.0
    """The length where pairs with a ratio of 1.2 are no longer ordered right in 75 %."""
    share: float = 0.5
    """The share of these pairs that is ordered right at the length that is looked at."""
    ratio: float = math.inf
    """The resolution there; infinite where no ratio up to 1.6 is told apart."""


def _ordered(observer: Observer, places: Floats, ratio: float) -> Floats:
    """The share of pairs around each place that is ordered right: shape (G,)."""
    rng = np.random.default_rng(1)
    smaller, larger = (
        np.rint(np.broadcast_to(places * side, (_ROWS, len(places))))
        for side in (ratio**-0.5, ratio**0.5)
    )
    shares: Floats = ordered(observer(smaller, rng), observer(larger, rng)).mean(axis=0)
    return shares


def _near_length(observer: Observer) -> float:
    targets = np.broadcast_to(_LENGTHS, (_ROWS, len(_LENGTHS)))
    answers = observer(targets, np.random.default_rng(1))
    is_near = np.abs(answers - targets) <= NEAR * targets + 1e-9
    return falls_below(is_near.mean(axis=0), _LENGTHS, THRESHOLD)


def _apart_length(observer: Observer) -> float:
    smooth = np.ones(5) / 5  # targets are whole, so that single places differ from their neighbours
    shares = np.convolve(_ordered(observer, _PLACES, 1.2), smooth, mode="valid")
    return falls_below(shares, _PLACES[2:-2], SHARE)


def falls_below(shares: Floats, places: Floats, required: float) -> float:
    """The first place whose share is below `required`."""
    low = np.flatnonzero(shares < required)
    return math.inf if not len(low) else float(places[low[0]]) if low[0] else 0.0


@cache
def truth_of(name: str) -> Truth:
    """The truth about an observer."""
    if name in BLIND:
        return Truth()
    observer, middle = OBSERVERS[name], np.array([float(LINES[_LINE].length)])
    ratios = np.arange(1.01, 1.6, 0.01).tolist()
    return Truth(
        _near_length(observer),
        _apart_length(observer),
        float(_ordered(observer, middle, 1.2)[0]),
        next((one for one in ratios if _ordered(observer, middle, one)[0] >= SHARE), math.inf),
    )


def measure(case: tuple[str, int], runs: int) -> Row:
    """One row of the table."""
    name, samples = case
    observer, truth = {**OBSERVERS, **BLIND}[name], truth_of(name)
    near, apart, lines = [], [], []
    for run in range(runs):
        counts = counted(observer, samples, seed=run)
        found, exact = order(counts), scored_length(counts, THRESHOLD)
        within = near_length(counts, exact, THRESHOLD)
        assert found is not None
        assert within is not None
        near.append(within.length_ci)
        apart.append(found.apart)
        lines.append(found.lines[_LINE])
    given = [line.resolution for line in lines if line.resolution is not None]
    has_ratio = bool(given) and not math.isinf(truth.ratio)
    estimates = [0.0 if one.length is None else one.length.length for one in apart]
    return {
        "shape": name,
        "samples": samples,
        "near": truth.near,
        "near_held": share_of(holds_length(one, truth.near) for one in near),
        "apart": truth.apart,
        "median": float(np.median(estimates)),
        "held": share_of(holds_length(one.length_ci, truth.apart) for one in apart),
        "octaves": float(np.median([width(one.length_ci) for one in apart])),
        "claimed": share_of(one.length_ci[0].sign != "<" for one in apart),
        "share": truth.share,
        "share_held": share_of(one.share_ci[0] <= truth.share <= one.share_ci[1] for one in lines),
        "above": share_of(one.share_ci[0] > 0.5 for one in lines),
        "p": share_of(one.p <= TAILS[0] for one in lines),
        "ratio": None if math.isinf(truth.ratio) else truth.ratio,
        "ratio_held": share_of(_holds_ratio(one, truth.ratio) for one in given)
        if has_ratio
        else None,
        "ratio_given": share_of(one.high is not None for one in given) if given else None,
        "runs": runs,
    }


def share_of(events: Iterable[bool]) -> float:
    return float(np.mean([float(one) for one in events]))


def holds_length(interval: Span, truth: float) -> bool:
    """Whether an interval holds a length; bounds have the ends of what was tested."""
    return holds(interval, truth, (interval[1].length, interval[0].length))


def _holds_ratio(found: Resolution, truth: float) -> bool:
    low, high = (math.inf if end is None else end for end in (found.low, found.high))
    return low - _STEP <= truth <= high + _STEP


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each observer and number of samples."""
    yield from spread(partial(measure, runs=runs), product((*OBSERVERS, *BLIND), SAMPLES))


SIMULATION = Simulation(
    "what lengths, shares and ratios of order cover, and how often they claim too much",
    (
        Column("shape", "answers"),
        Column("samples", "samples of a line"),
        Column("near", "near to", ".0f"),
        Column("near_held", "interval holds", ".2f"),
        Column("apart", "apart to", ".0f"),
        Column("median", "median", ".0f"),
        Column("held", "interval holds", ".2f"),
        Column("octaves", "octaves", ".1f"),
        Column("claimed", "has a lower end", ".2f"),
        Column("share", "ordered around 110", ".2f"),
        Column("share_held", "interval holds", ".2f"),
        Column("above", "above chance", ".2f"),
        Column("p", "p ≤ 0.025", ".3f"),
        Column("ratio", "resolution", ".2f"),
        Column("ratio_held", "interval holds", ".2f"),
        Column("ratio_given", "has an upper end", ".2f"),
    ),
    rows,
)
