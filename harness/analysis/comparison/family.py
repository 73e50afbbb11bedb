"""Comparisons that are corrected together: all pairs of several runs, or conditions of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

from eyechart.harness.analysis.comparison.comparability import check_same_task, names_of
from eyechart.harness.analysis.comparison.comparison import Comparison, compare_runs
from eyechart.harness.analysis.comparison.length_difference import LengthDifference, Sides
from eyechart.harness.analysis.comparison.paired_curves import holm
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.errors import CompareError
from eyechart.harness.spec import Condition

Places: TypeAlias = tuple[int, int]
"""The places of two runs, the smaller one first."""


def corrected(
    differences: Sequence[LengthDifference], tests: int | None = None
) -> list[LengthDifference]:
    """Differences of effective lengths with Holm's correction; those that cannot be compared are no
    part of the family. `tests` is its size, if these are only some of it.
    """
    p_values = iter(holm([one.p for one in differences if one.p is not None], tests))
    return [one if one.p is None else replace(one, p=next(p_values)) for one in differences]


def in_family(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with Holm's correction over all of them. Their differences in effective
    length are one family, the tests of all their lines another one. Areas are not corrected.
    """
    lengths = corrected([comparison.length for comparison in comparisons])
    p_values = holm([line.p for comparison in comparisons for line, _ in comparison.lines])
    tests = iter(p_values)
    return [
        replace(
            comparison,
            length=length,
            conditions=tuple(
                replace(compared, p_values=tuple(next(tests) for _ in compared.p_values))
                for compared in comparison.conditions
            ),
            other_tests=len(p_values) - len(comparison.lines),
        )
        for comparison, length in zip(comparisons, lengths, strict=True)
    ]


def is_default(judged: JudgedCondition) -> bool:
    """Whether every axis has its default value; of several default values the first counts."""
    axes = judged.run.spec.axes
    return all(axes[axis].default[0] == value for axis, value in judged.condition.items())


def ranked_lengths(estimates: Iterable[EffectiveLength | None]) -> list[Bound]:
    """The lengths that are known and a property of the model."""
    return [one.length for one in estimates if one and one.is_ranked and one.length]


def rank_range(ahead: int, behind: int, others: int) -> tuple[int, int]:
    """The best and the last rank that the tests allow a model, if so many are shown to see further,
    and so many less far, of all `others`.
    """
    return 1 + ahead, 1 + others - behind


def ranks_text(ranks: tuple[int, int] | None) -> str:
    """`2`, `1–3`, or a dash."""
    return "–" if ranks is None else "–".join(map(str, dict.fromkeys(ranks)))


@dataclass(frozen=True, eq=False)
class RankedRun:
    """One of several runs that are compared."""

    name: str
    run: JudgedRun
    estimates: dict[Condition, EffectiveLength | None]
    """Its effective length under each condition that all runs have."""

    @property
    def is_ranked(self) -> bool:
        """Whether its effective length is known under every condition, and limited by sight."""
        return all(one is not None and one.is_ranked for one in self.estimates.values())

    @property
    def rank_key(self) -> tuple[float, int]:
        """Key to sort runs by the mean of log effective length over the conditions; a length
        outside the tested range counts as the end of that range. A run that is not ranked comes
        last: the mean of a part of its conditions would stand beside means of all.
        """
        if not self.is_ranked:
            return math.inf, 0
        lengths = ranked_lengths(self.estimates.values())
        octaves = sum(math.log2(length.length) for length in lengths) / len(lengths)
        return -octaves, -sum(length.order[1] for length in lengths)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Several runs of one task, and the comparison of each pair of them, as one family."""

    runs: tuple[RankedRun, ...]
    """By effective length, the longest first."""
    reference: int
    """Place of the run that was named first."""
    comparisons: dict[Places, Comparison]
    unit: str
    """The unit of the effective lengths."""

    @property
    def conditions(self) -> list[Condition]:
        """The conditions that all runs have."""
        return list(self.runs[0].estimates)

    @property
    def tested(self) -> list[Comparison]:
        """The comparisons whose effective lengths can be compared: the family of their tests."""
        return [one for one in self.comparisons.values() if one.length.p is not None]

    @cached_property
    def against_reference(self) -> list[tuple[int, Comparison]]:
        """The place of each other run, and its comparison with the reference as first."""
        return [
            (right, comparison) if left == self.reference else (left, comparison.swapped)
            for (left, right), comparison in self.comparisons.items()
            if self.reference in (left, right)
        ]

    def further_than(self, place: int) -> list[int]:
        """The places of all runs that see less far, by test, than the run at `place`."""
        return self._further[place]

    @cached_property
    def _further(self) -> list[list[int]]:
        """See `further_than`; of all places at once, as each rank asks for those of all others."""
        found: list[list[int]] = [[] for _ in self.runs]
        for (left, right), comparison in self.comparisons.items():
            if further := comparison.length.further:
                found[left if further > 0 else right].append(right if further > 0 else left)
        return found

    def ranks(self, place: int) -> tuple[int, int] | None:
        """Best and last rank that the tests allow the run; `None` where it is not ranked."""
        if not self.runs[place].is_ranked:
            return None
        ranked = [other for other, one in enumerate(self.runs) if one.is_ranked]
        ahead = sum(place in self.further_than(other) for other in ranked)
        return rank_range(ahead, len(self.further_than(place)), len(ranked) - 1)


def conditions_of_all(runs: Sequence[JudgedRun]) -> list[Condition]:
    """The conditions that all runs have; raises `CompareError` if there are none, or if the runs
    are not of one task.
    """
    for other in runs[1:]:
        check_same_task(runs[0], other)
    common = [
        condition
        for condition in runs[0].conditions
        if all(condition in run.conditions for run in runs)
    ]
    if not common:
        raise CompareError(f"the {len(runs)} runs have no condition in common")
    return common


def rank_runs(
    runs: Sequence[JudgedRun],
    *,
    of: Callable[[Sequence[Places]], Iterable[Places]] = iter,
) -> Ranking:
    """Compares each pair of `runs` under the conditions that all of them have. `of` is given
    the pairs, and may count them while they are compared.

    Raises:
        CompareError: two of them cannot be compared, or there is no condition that all have.
    """
    common = conditions_of_all(runs)
    named = [
        RankedRun(
            name,
            run,
            {condition: run.conditions[condition].effective_length() for condition in common},
        )
        for name, run in zip(names_of(runs), runs, strict=True)
    ]
    order = sorted(range(len(runs)), key=lambda place: named[place].rank_key)
    ranked = [named[place] for place in order]
    pairs = list(combinations(range(len(ranked)), 2))
    sides = Sides(runs[0].settings.threshold)
    compared = [
        compare_runs(
            ranked[left].run,
            ranked[right].run,
            names=(ranked[left].name, ranked[right].name),
            conditions=common,
            sides=sides,
            unpaired=True,
        )
        for left, right in of(pairs)
    ]
    comparisons = dict(zip(pairs, in_family(compared), strict=True))
    return Ranking(tuple(ranked), order.index(0), comparisons, runs[0].spec.unit)


def longest(lengths: Sequence[Bound]) -> int:
    """The place of the longest of several lengths; of equal ones the first."""
    return max(range(len(lengths)), key=lambda place: (*lengths[place].order, -place))
