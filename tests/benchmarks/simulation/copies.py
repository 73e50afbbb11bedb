"""What the near and the apart length of copies cover, and how often copies that know nothing of
their row are said to tell it from another one.

Rows of random words, and rows of one word with another one at one place. Copies lose words, change
them, stop, or count badly; the truth is that of many copies at each length. A run takes about
0.15 s on one core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.limits import Copies, ScoredSamples, scored_length
from eyechart.harness.analysis.order.apart import CHANCE
from eyechart.harness.analysis.order.copies import order_of_copies
from eyechart.harness.analysis.order.near import near_length
from eyechart.harness.analysis.order.resolution import SHARE
from eyechart.harness.score.answer_type import PlainAnswerForm
from eyechart.harness.score.copies import copied
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.readings import Recount
from eyechart.harness.score.verdict import Verdict, compare_parts
from eyechart.harness.settings.judging import NEAR, THRESHOLD
from eyechart.harness.spec import line_start, lines_of
from tests.benchmarks.simulation.apart import falls_below, holds_length, share_of
from tests.benchmarks.simulation.draws import width
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread

SAMPLES = (5, 20)
LINES = tuple(lines_of((5, 7, 10, 15, 22, 33, 50, 75), "bands"))
_START = line_start(0, "simulated")
_FORM = PlainAnswerForm("text", ("Final answer:",))
_WORDS = tuple(f"w{place}" for place in range(80))
_MANY = 300
"""Copies at each length behind the truth."""
_PLACES = np.unique(np.rint(np.exp(np.linspace(math.log(4), math.log(90), 48))))
_LINE = 4
"""The line around 22, whose share is looked at."""

Words = Sequence[str]
Copier = Callable[[Words, np.random.Generator], Words | None]
"""A row -> the words of a copy; `None` for a reply without one."""


@dataclass(frozen=True, slots=True)
class Observer:
    copy: Copier
    is_repeated: bool = False
    """Whether rows repeat one word, with another one at one place."""


def _row(observer: Observer, length: int, rng: np.random.Generator) -> list[str]:
    """A row; of random words a longer one continues a shorter one."""
    if not observer.is_repeated:
        return [_WORDS[int(one)] for one in rng.integers(len(_WORDS), size=100)[:length]]
    row = ["usual"] * length
    row[int(rng.integers(length))] = "changed"
    return row


def _falling(length: int, half: float, slope: float) -> float:
    return float(1 / (1 + (length / half) ** slope))


def changed(half: float, slope: float) -> Copier:
    """Each word is replaced by another word; the probability of that grows with the length."""

    def copy(row: Words, rng: np.random.Generator) -> Words:
        kept = rng.random(len(row)) < _falling(len(row), half, slope)
        return [one if keep else _other(rng) for one, keep in zip(row, kept, strict=True)]

    return copy


def _other(rng: np.random.Generator) -> str:
    return _WORDS[int(rng.integers(len(_WORDS)))]


def begun(middle: float, *, goes_on: bool) -> Copier:
    """Right up to a place that is log-normal around `middle`; then other words, or none."""

    def copy(row: Words, rng: np.random.Generator) -> Words:
        end = int(middle * math.exp(0.4 * rng.standard_normal()))
        return [*row[:end], *(_other(rng) for _ in row[end:] if goes_on)]

    return copy


def left_out(half: float) -> Copier:
    """Words are left out."""

    def copy(row: Words, rng: np.random.Generator) -> Words:
        kept = rng.random(len(row)) < _falling(len(row), half, 2)
        return [one for one, keep in zip(row, kept, strict=True) if keep]

    return copy


def doubled(half: float) -> Copier:
    """Words come twice."""

    def copy(row: Words, rng: np.random.Generator) -> Words:
        once = rng.random(len(row)) < _falling(len(row), half, 2)
        return [one for one, keep in zip(row, once, strict=True) for _ in range(2 - keep)]

    return copy


def exact_or(other: Copier, half: float) -> Copier:
    def copy(row: Words, rng: np.random.Generator) -> Words | None:
        return row if rng.random() < _falling(len(row), half, 2) else other(row, rng)

    return copy


def unread(other: Copier) -> Copier:
    """A tenth of the replies has no copy."""
    return lambda row, rng: None if rng.random() < 0.1 else other(row, rng)


def other_words(row: Words, rng: np.random.Generator) -> Words:
    return [_other(rng) for _ in row]


def unread_all(_: Words, __: np.random.Generator) -> None:
    """No reply has a copy."""


def miscounted(row: Words, rng: np.random.Generator) -> Words:
    """The changed word is where it is, but for an error of a tenth of all words before it."""
    place, after = row.index("changed"), len(row) - 1 - row.index("changed")
    before, behind = (
        max(0, round(many * (1 + 0.1 * rng.standard_normal()))) for many in (place, after)
    )
    return ["usual"] * before + ["changed"] + ["usual"] * behind


def anywhere(row: Words, rng: np.random.Generator) -> Words:
    """The changed word at any place."""
    copy = ["usual"] * len(row)
    copy[int(rng.integers(len(row)))] = "changed"
    return copy


def alternating(row: Words, _: np.random.Generator) -> Words:
    return [("usual", "changed")[place % 2] for place in range(len(row))]


OBSERVERS: Mapping[str, Observer] = {
    "words changed, slowly": Observer(changed(60, 1.5)),
    "words changed, steeply": Observer(changed(40, 6)),
    "begins right, then other words": Observer(begun(20, goes_on=True)),
    "begins right, then stops": Observer(begun(20, goes_on=False)),
    "words left out": Observer(left_out(60)),
    "words doubled": Observer(doubled(40)),
    "exact, else other words": Observer(exact_or(other_words, 30)),
    "the same, 10 % unread": Observer(unread(exact_or(other_words, 30))),
    "its words in another order": Observer(
        lambda row, rng: [row[int(one)] for one in rng.permutation(len(row))]
    ),
    "a repeated word, miscounted": Observer(miscounted, is_repeated=True),
    "exact, else changed anywhere": Observer(exact_or(anywhere, 30), is_repeated=True),
}
BLIND: Mapping[str, Observer] = {
    "other words": Observer(other_words),
    "one word": Observer(lambda row, _: ["w1"] * len(row)),
    "no word": Observer(unread_all),
    "the repeated word alone": Observer(lambda row, _: ["usual"] * len(row), is_repeated=True),
    "changed anywhere": Observer(anywhere, is_repeated=True),
    "the two words in turn": Observer(alternating, is_repeated=True),
}
"""Observers whose copies know nothing of the place that differs."""


def _judged(observer: Observer, row: Words, rng: np.random.Generator) -> tuple[float, float, int]:
    """`off` and `nearer` of one copy, and the place of its outcome."""
    copy, target = observer.copy(row, rng), " ".join(row)
    verdict = Verdict(Outcome.UNPARSED)
    if copy is not None:
        verdict = compare_parts(" ".join(copy), list(copy), row, 0, 1)
    found = copied(verdict, target, len(row), int(rng.integers(2**32)), _FORM)
    return *found, verdict.outcome.place


def simulated(observer: Observer, n: int, seed: int) -> ScoredSamples:
    """The copies of `n` rows on each line."""
    rng = np.random.default_rng((seed, 1))
    indexes, places = (one.ravel() for one in np.indices((n, len(LINES))))
    rows_of = indexes.tolist()
    lengths = np.array(
        [
            LINES[line].length_of(row, _START)
            for row, line in zip(rows_of, places.tolist(), strict=True)
        ]
    )
    judged = [
        _judged(observer, _row(observer, length, np.random.default_rng((seed, 2, index))), rng)
        for index, length in zip(rows_of, lengths.tolist(), strict=True)
    ]
    off, nearer, outcomes = map(np.array, zip(*judged, strict=True))
    is_unread = outcomes == Outcome.UNPARSED.place
    readings = np.where(is_unread, Recount.UNREAD, Recount.AS_JUDGED)
    of_rows = (outcomes, readings, None, not observer.is_repeated)
    return ScoredSamples(LINES, places, indexes, lengths, *of_rows, copies=Copies(off, nearer))


@dataclass(frozen=True, slots=True)
class Truth:
    """What many copies show; lengths are 0 or infinite outside the range."""

    near: float
    apart: float
    share: float


@cache
def truth_of(name: str) -> Truth:
    """The truth about an observer."""
    observer, rng = {**OBSERVERS, **BLIND}[name], np.random.default_rng(1)
    found = np.array(
        [
            [
                _judged(observer, _row(observer, int(length), rng), rng)[:2]
                for length in np.repeat(place, _MANY)
            ]
            for place in _PLACES
        ]
    )
    near, nearer = (found[..., 0] <= NEAR + 1e-9).mean(axis=1), np.nanmean(found[..., 1], axis=1)
    line = LINES[_LINE]
    inside = [line.low <= place <= line.high for place in _PLACES.tolist()]
    if name in BLIND:
        return Truth(0.0, 0.0, CHANCE)
    return Truth(
        falls_below(_smooth(near), _PLACES, THRESHOLD),
        falls_below(_smooth(nearer), _PLACES, SHARE),
        float(nearer[inside].mean()),
    )


def _smooth(shares: Floats) -> Floats:
    """Means of three neighbouring lengths."""
    padded = np.concatenate([shares[:1], shares, shares[-1:]])
    return np.convolve(padded, np.ones(3) / 3, mode="valid")


def measure(case: tuple[str, int], runs: int) -> Row:
    """One row of the table."""
    name, samples = case
    observer, truth = {**OBSERVERS, **BLIND}[name], truth_of(name)
    near, apart, lines = [], [], []
    for run in range(runs):
        copies = simulated(observer, samples, run)
        found, exact = order_of_copies(copies), scored_length(copies, THRESHOLD)
        within = near_length(copies, exact, THRESHOLD)
        assert found is not None
        assert within is not None
        near.append(within.length_ci)
        apart.append(found.apart)
        lines.append(found.lines[_LINE])
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
        "above": share_of(one.share_ci[0] > CHANCE for one in lines),
        "p": share_of(one.p <= 0.025 for one in lines),
        "runs": runs,
    }


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each observer and number of samples."""
    yield from spread(partial(measure, runs=runs), product((*OBSERVERS, *BLIND), SAMPLES))


SIMULATION = Simulation(
    "what lengths and shares of copies cover, and how often they claim too much",
    (
        Column("shape", "copies"),
        Column("samples", "samples of a line"),
        Column("near", "near to", ".0f"),
        Column("near_held", "interval holds", ".2f"),
        Column("apart", "apart to", ".0f"),
        Column("median", "median", ".0f"),
        Column("held", "interval holds", ".2f"),
        Column("octaves", "octaves", ".1f"),
        Column("claimed", "has a lower end", ".2f"),
        Column("share", "nearer around 22", ".2f"),
        Column("share_held", "interval holds", ".2f"),
        Column("above", "above chance", ".2f"),
        Column("p", "p ≤ 0.025", ".3f"),
    ),
    rows,
)
