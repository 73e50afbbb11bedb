"""`bench compare --ask` of ten models, each of which sees 1.25 times as far as the next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product

import numpy as np

from eyechart.harness.analysis.adaptive.adaptive import around_crossing
from eyechart.harness.analysis.adaptive.next_pairs import SURE, WAVES, is_decided, next_wave
from eyechart.harness.analysis.adaptive.next_ranked import BEST, RANKS, pairs_of
from eyechart.harness.analysis.comparison.family import rank_range
from eyechart.harness.analysis.comparison.length_difference import Side, fitted_side, joined
from eyechart.harness.analysis.comparison.paired_curves import paired
from eyechart.harness.analysis.length.curve import Curve
from eyechart.harness.analysis.ranking.standing import LengthTest, Pair, tests_between
from eyechart.harness.plan.selection import MOST_SAMPLES
from eyechart.harness.settings.judging import MARGIN, THRESHOLD
from tests.benchmarks.simulation.asked_pairs import EQUAL, with_rows
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    LINES,
    Setting,
    answers,
    full_curve,
    normal_field,
    sample_lengths,
)
from tests.benchmarks.simulation.equivalence import compare
from tests.benchmarks.simulation.table import SETTING, Column, Row, Simulation, Spread
from tests.benchmarks.simulation.unequal import FAILING, KINDS, MOST_FALSE

MODELS, APART, SAMPLES = 10, 1.25, 20
MORE = MODELS * SAMPLES * len(LINES)
"""Requests more, at most: as many as all runs have before, or 20 samples more on each line."""
MIXED = "ten unlike"
UNLIKE = (
    *("slope 4", "plateau 86 %", "Weibull 1", "recorded", "step"),
    *("heavy tails", "two-stage", "shoulder", "period 5", "Weibull 3"),
)
"""The shapes of models that are not alike, from the one that is right furthest."""
_LONGEST = (60.0, 300.0)
"""Range of the longest crossing, evenly in log length."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is said of ten models; the first one is right furthest, and so on."""

    width: float
    """How many ranks a model may still have after the tests; the mean over models."""
    first: bool
    """Whether the one that is right furthest has the longest length."""
    named: bool
    """Whether it is shown to be right further than each other one."""
    false: bool
    """Whether a model is said to be right further than one that is right further."""
    requests: int


def draw_models(setting: Setting, run: int) -> list[Curve]:
    """The curves of ten models on the same samples, with more rows than are asked."""
    seed = setting.seed(run)
    rng, lengths = np.random.default_rng([seed, 1]), sample_lengths(MOST_SAMPLES, run)
    longest = math.exp(np.random.default_rng(seed).uniform(*np.log(_LONGEST)))
    curves = []
    for place in range(MODELS):
        crossing = longest / APART**place
        kind = UNLIKE[place] if setting.shape == MIXED else setting.shape
        truth = KINDS[kind].truth(crossing, seed, np.random.default_rng(seed))
        field = normal_field(rng, MOST_SAMPLES, setting.rows)
        correct = answers(truth, lengths, field)
        failing = rng.random((MOST_SAMPLES, 1)) < (FAILING if kind == "rows fail" else 0)
        curves.append(full_curve(np.where(failing, 0.0, correct), lengths))
    return curves


class Look:
    """Ten models with so many rows on each line."""

    def __init__(self, curves: Sequence[Curve], counts: Sequence[Sequence[int]]) -> None:
        pairs = zip(curves, counts, strict=True)
        self.curves = [with_rows(curve, of_line) for curve, of_line in pairs]
        self.sides: list[Side] = [fitted_side(curve, THRESHOLD) for curve in self.curves]
        single = [place for place, side in enumerate(self.sides) if side.one_threshold]
        self.tests: dict[Pair, LengthTest] = tests_between(
            {
                (left, right): joined(self.sides[left], self.sides[right], paired=True)
                for left, right in combinations(single, 2)
            }
        )
        self.order = sorted(range(MODELS), key=lambda place: -self._length(place))
        self.with_order = [place for place in self.order if place in single]

    def _length(self, place: int) -> float:
        length = self.sides[place].length
        return 0.0 if length is None else length.length

    def is_open(self, pair: Pair) -> bool:
        """Whether a pair is not decided, as `open_pairs` finds it."""
        p = self.tests[_ordered(pair)].p
        if p is not None and p < SURE:
            return False
        shared = paired(*(self.curves[place] for place in pair))
        assert shared is not None
        one = compare(*shared)
        return not is_decided(replace(one, length=replace(one.length, p=p)), MARGIN)

    def found(self, requests: int) -> Found:
        """What is said of the models."""
        sees = {pair: test.further for pair, test in self.tests.items()}
        further = np.zeros((MODELS, MODELS), int)
        for (left, right), sign in sees.items():
            further[left, right], further[right, left] = sign > 0, sign < 0
        behind, ahead = further.sum(axis=1).tolist(), further.sum(axis=0).tolist()
        ranks = [rank_range(*both, MODELS - 1) for both in zip(ahead, behind, strict=True)]
        return Found(
            width=float(np.mean([last - best + 1 for best, last in ranks])),
            first=self.order[0] == 0,
            named=behind[0] == MODELS - 1,
            false=-1 in sees.values(),
            requests=requests,
        )


def _ordered(pair: Pair) -> Pair:
    left, right = sorted(pair)
    return left, right


def asked(curves: Sequence[Curve], question: str) -> Found:
    """Asks as `bench compare --ask` does."""
    counts, left = [[SAMPLES] * len(LINES) for _ in curves], MORE
    look = Look(curves, counts)
    for done in range(WAVES):
        places = {
            place
            for pair in pairs_of(question, look.with_order)
            if look.is_open(pair)
            for place in pair
        }
        wave = next_wave(left, done)
        for place in places:
            more = around_crossing(look.sides[place].fit, LINES, wave // len(places))
            for line, rows in more.items():
                at = LINES.index(line)
                more_rows = min(rows, MOST_SAMPLES - counts[place][at])
                counts[place][at] += more_rows
                left -= more_rows
        if not places:
            break
        look = Look(curves, counts)
    return look.found(MORE - left)


def measure(setting: Setting, runs: int) -> Row:
    """One row of the table."""
    row: dict[str, str | float | None] = {"shape": setting.shape, "rows": setting.rows}
    found: dict[str, list[Found]] = {"before": [], "all": [], RANKS: [], BEST: []}
    for run in range(runs):
        curves = draw_models(setting, run)
        for name, samples, more in (("before", SAMPLES, 0), ("all", 2 * SAMPLES, MORE)):
            counts = [[samples] * len(LINES)] * MODELS
            found[name].append(Look(curves, counts).found(more))
        for question in (RANKS, BEST):
            found[question].append(asked(curves, question))
    for name, results in found.items():
        for key in ("width", "first", "named", "false", "requests"):
            row[f"{key}_{name}"] = float(np.mean([getattr(one, key) for one in results]))
    most = max(float(row[f"false_{name}"] or 0) for name in (RANKS, BEST))
    row["missed"] = "false" if most > MOST_FALSE else ""
    return row


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each shape and correlation."""
    cases = [Setting(*case, SAMPLES) for case in product((*EQUAL, MIXED), (0.0, CORRELATION))]
    yield from spread(partial(measure, runs=runs), cases)


_NAMES = {"before": "before", "all": "all asked", RANKS: "--ask", BEST: "--settle best"}


def _columns(key: str, header: str, form: str, names: Sequence[str]) -> Iterator[Column]:
    """A column for each way to ask, the first with what it shows."""
    for place, name in enumerate(names):
        yield Column(
            f"{key}_{name}", f"{header} {_NAMES[name]}" if not place else _NAMES[name], form
        )


SIMULATION = Simulation(
    f"what `bench compare --ask` says of {MODELS} models, each {APART} times as far as the next, "
    f"after at most {MORE:,} requests more than {SAMPLES} samples a line",
    (
        *SETTING[:2],
        *_columns("width", "ranks that the tests allow:", ".1f", ("before", "all", RANKS)),
        *_columns("first", "the best has the longest length:", ".2f", ("before", "all", BEST)),
        *_columns("named", "it is shown to be the best:", ".2f", ("before", "all", BEST)),
        *_columns("false", "a false order:", ".2f", ("all", RANKS, BEST)),
        *_columns("requests", "requests:", ".0f", (RANKS, BEST)),
        Column("missed", "missed"),
    ),
    rows,
)
