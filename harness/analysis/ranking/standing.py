"""The models of one task by effective length, and which of them can be told apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import NamedTuple, TypeAlias

from eyechart.harness.analysis.comparison.comparability import (
    check_same_prompts,
    check_same_task,
    have_other_rows,
)
from eyechart.harness.analysis.comparison.comparison import Comparison, compare_runs, sides_of
from eyechart.harness.analysis.comparison.family import (
    RankedRun,
    Ranking,
    in_family,
    is_default,
    rank_range,
    ranks_text,
)
from eyechart.harness.analysis.comparison.length_difference import (
    LEAST_P,
    JoinedPosteriors,
    Side,
    Sides,
    joined,
)
from eyechart.harness.analysis.comparison.paired_curves import holm
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.errors import CompareError
from eyechart.harness.spec import Condition

MOST_IN_PAIRS = 12
"""Of more models only the effective lengths of each pair are compared, and lines and areas with the
best one."""
Pair: TypeAlias = tuple[int, int]
"""Two places, the smaller one first."""


@dataclass(frozen=True, eq=False)
class Place:
    name: str
    run: JudgedRun
    condition: Condition
    """The condition of the standing."""
    estimate: EffectiveLength | None
    """Its effective length under the condition of the standing; `None` without a scored sample."""
    ranks: tuple[int, int] | None
    """The best and the last rank that the tests allow; `None` where the effective length is not
    known, or something else than sight limits it."""
    adaptive: bool
    by_test: tuple[int, int, int] | None
    """How many models it is shown to see further than, how many see further by test, and of how
    many others; `None` where there are no ranks."""

    @property
    def ranks_text(self) -> str:
        return ranks_text(self.ranks)


@dataclass(frozen=True, eq=False)
class Standing:
    """The models of one task under one condition, the longest effective length first."""

    condition: Condition
    default: bool
    """Whether it is the default condition of the task."""
    places: tuple[Place, ...]
    ranking: Ranking
    """The models with an estimate, and the compared pairs of them, as one family."""
    complete: bool
    """Whether every pair was compared in full, and not only by effective length."""
    tests: int
    """Pairs whose effective lengths were compared: the family of Holm's correction. A model
    without a single threshold is in none of them."""
    unpaired: int
    """Those among them whose models have recorded replies to different rows."""
    further: Sequence[Sequence[int]]
    """For each model of the ranking the places of those that, by test, see less far."""
    apart: int
    """Pairs that cannot be compared, because the models were asked other samples."""

    @property
    def has_ranks(self) -> bool:
        """Whether ranks say something: of a hundred models nearly all have ranks like 1–100."""
        return len(self.ranking.runs) <= MOST_IN_PAIRS


def standing(runs: Sequence[tuple[str, JudgedRun]]) -> Standing:
    """The standing of named runs of one task, under the condition that most of them have. If
    several conditions are equally common, the default one is taken, else one that is no control.

    A model's best rank is 1 plus the number of models that, by test, see further. Its last rank is
    the number of models minus those that, by test, see less far.
    """
    condition = _condition([run for _, run in runs])
    ranked: list[RankedRun] = []
    absent: list[RankedRun] = []
    for name, run in runs:
        judged = run.conditions.get(condition)
        estimate = judged.effective_length() if judged else None
        one = RankedRun(name, run, {condition: estimate})
        (ranked if one.is_ranked else absent).append(one)
    ranked.sort(key=lambda one: one.rank_key)
    complete = len(ranked) <= MOST_IN_PAIRS
    count = len(ranked)
    pairs = list(combinations(range(count), 2))
    conditions = [one.run.conditions[condition] for one in ranked]
    estimates = [(judged.curve, judged.effective_length()) for judged in conditions]
    fits = [(curve, one.fit) for curve, one in estimates if curve and one]
    sides = Sides(runs[0][1].settings.threshold, fits)
    compared = {
        (left, right): comparison
        for left, right in pairs
        if complete or left == 0
        if (comparison := _compare(ranked[left], ranked[right], condition, sides))
    }
    family = dict(zip(compared, in_family(list(compared.values())), strict=True))
    other_rows = {
        (left, right)
        for left, right in pairs
        if have_other_rows(conditions[left], conditions[right])
    }
    if complete and not other_rows:
        lengths = {
            pair: LengthTest(comparison.length.p, comparison.length.further)
            for pair, comparison in family.items()
        }
    else:
        lengths = length_tests(conditions, sides, other_rows)
        family = {
            pair: replace(comparison, length=replace(comparison.length, p=lengths[pair].p))
            for pair, comparison in family.items()
        }
    signs = {pair: test.further for pair, test in lengths.items()}
    tested = [pair for pair, test in lengths.items() if test.p is not None]
    ranking = Ranking(tuple(ranked), 0, family, runs[0][1].spec.unit)
    further = _further_than(count, signs)
    behind = Counter(chain.from_iterable(further))
    by_test = [(len(further[place]), behind[place], count - 1) for place in range(count)]
    places = [_place(one, condition, tested) for one, tested in zip(ranked, by_test, strict=True)]
    places += [_place(one, condition, None) for one in absent]
    places = _with_open_ones(places)
    return Standing(
        condition,
        any(
            is_default(run.conditions[condition]) for _, run in runs if condition in run.conditions
        ),
        tuple(places),
        ranking,
        complete,
        len(tested),
        len(other_rows & set(tested)),
        further,
        len(pairs) - len(signs),
    )


def _with_open_ones(places: Sequence[Place]) -> list[Place]:
    """The places, with lengths that the replies leave open among those below the shortest line, by
    accuracy: such a model may see further than they do.
    """
    known = [place for place in places if place.ranks is not None]
    first = len(known)
    while first and _sign(known[first - 1]) == "<":
        first -= 1
    rest = places[first:]
    is_open = [
        place.ranks is None and place.estimate is not None and place.estimate.limit.is_ranked
        for place in rest
    ]
    among = [one for one, is_one in zip(rest, is_open, strict=True) if is_one or one.ranks]
    among.sort(key=_accuracy, reverse=True)
    return [*places[:first], *among, *(one for one in rest if one not in among)]


def _sign(place: Place) -> str:
    length = place.estimate and place.estimate.length
    return length.sign if length else ""


def _accuracy(place: Place) -> float:
    """The share of right replies over all lengths."""
    assert place.estimate is not None
    return float(place.estimate.fit.correct.sum() / place.estimate.fit.answered.sum())


def _further_than(count: int, signs: Mapping[Pair, int]) -> list[list[int]]:
    """For each place those of the models that its model is shown to see further than."""
    found: list[list[int]] = [[] for _ in range(count)]
    for (left, right), sign in signs.items():
        if sign:
            found[left if sign > 0 else right].append(right if sign > 0 else left)
    return found


class LengthTest(NamedTuple):
    """Whether the effective lengths of a pair differ."""

    p: float | None
    """Two-sided, by Holm over all pairs that have one; `None` without a single threshold."""
    further: int
    """1 where first is shown to see further, -1 where second is, 0 where neither is."""


def length_tests(
    judged: Sequence[JudgedCondition],
    sides: Sides,
    other_rows: Collection[Pair],
) -> dict[Pair, LengthTest]:
    """The test of each pair of places, without pairs that `compare_runs` would not compare. Pairs
    in `other_rows` are compared without pairing, see `have_other_rows`.
    """
    pairs: dict[Pair, tuple[Side, Side]] = {}
    for left, right in combinations(range(len(judged)), 2):
        first, second, other = judged[left], judged[right], (left, right) in other_rows
        if _comparable(first, second, other_rows=other):
            found = sides_of(first, second, sides, other_rows=other)
            if found is not None:
                pairs[left, right] = found
    between = {
        pair: joined(*found, paired=pair not in other_rows)
        for pair, found in pairs.items()
        if all(side.one_threshold for side in found)
    }
    return {**dict.fromkeys(pairs, LengthTest(None, 0)), **tests_between(between)}


def tests_between(between: Mapping[Pair, JoinedPosteriors]) -> dict[Pair, LengthTest]:
    """The test of each pair of crossings, as one family.

    Holm's correction makes most p-values 1. So each has first a lower bound, and is computed only
    where the corrected bound is below 1: the corrected values are those of a full computation.
    """
    least = [one.least_p for one in between.values()]
    p_values = [
        one.p if corrected < 1 and bound > LEAST_P else bound
        for one, bound, corrected in zip(between.values(), least, holm(least), strict=True)
    ]
    return {
        pair: LengthTest(p, one.sign if p < SIGNIFICANT else 0)
        for (pair, one), p in zip(between.items(), holm(p_values), strict=True)
    }


def _comparable(first: JudgedCondition, second: JudgedCondition, *, other_rows: bool) -> bool:
    """Whether both were asked the same rows, and no sample of both with another prompt; or have
    recorded replies to different rows of one task.
    """
    try:
        check_same_task(first.run, second.run)
        if not other_rows:
            check_same_prompts(first, second)
    except CompareError:
        return False
    return True


def _condition(runs: Sequence[JudgedRun]) -> Condition:
    counts: dict[Condition, tuple[int, bool, bool]] = {}
    for run in runs:
        for condition, judged in run.conditions.items():
            count = counts.get(condition, (0, False, False))[0]
            counts[condition] = count + 1, is_default(judged), not judged.control
    return max(counts, key=lambda condition: counts[condition])


def _compare(
    first: RankedRun,
    second: RankedRun,
    condition: Condition,
    sides: Sides,
) -> Comparison | None:
    """The comparison; `None` if the models share no scored sample."""
    names = first.name, second.name
    try:
        return compare_runs(
            first.run,
            second.run,
            names=names,
            conditions=[condition],
            sides=sides,
        )
    except CompareError:
        return None


def _place(
    one: RankedRun,
    condition: Condition,
    by_test: tuple[int, int, int] | None,
) -> Place:
    judged = one.run.conditions.get(condition)
    return Place(
        one.name,
        one.run,
        condition,
        one.estimates[condition],
        None if by_test is None else rank_range(by_test[1], by_test[0], by_test[2]),
        judged is not None and judged.adaptive,
        by_test,
    )


def median_length(lengths: Sequence[Bound]) -> Bound | None:
    """The median; `None` of fewer than two lengths. Between two middle lengths it is their
    geometric mean, or the shorter one if either is a bound.
    """
    if len(lengths) <= 1:
        return None
    ordered = sorted(lengths, key=lambda length: length.order)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    known = low.sign == high.sign == "="
    return Bound("=", round(math.sqrt(low.length * high.length))) if known else low
