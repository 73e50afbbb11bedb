"""Compares two models, or two conditions of one run, on the same samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from eyechart.harness.analysis.comparison.comparability import (
    check_same_prompts,
    check_same_task,
    have_other_rows,
    names_of,
    other_settings,
    same_targets,
)
from eyechart.harness.analysis.comparison.length_difference import (
    LengthDifference,
    Side,
    Sides,
    mean_difference,
    sides_difference,
)
from eyechart.harness.analysis.comparison.paired_curves import (
    LineDifference,
    PairedArea,
    PairedLines,
    compare_pairs,
    compare_unpaired,
    holm,
    mean_area,
    paired,
)
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.limit import Limit
from eyechart.harness.analysis.length.margin import as_factor, as_points, is_at_floor
from eyechart.harness.analysis.length.tokens_of_row import PairTokens
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.errors import CompareError, NoneSharedError
from eyechart.harness.settings.judging import Margin, factor_of
from eyechart.harness.spec import Condition
from eyechart.providers.naming import named, turned_on

Change: TypeAlias = Literal["worse", "better", "equivalent", "undecided"]


@dataclass(frozen=True, eq=False)
class ConditionComparison:
    """The comparison of first and second under one condition."""

    condition: Condition
    """The axis values that both sides share."""
    paired: PairedLines
    """The comparison of each line."""
    p_values: tuple[float, ...]
    """The p-value of each line, with Holm's correction for all tests of the comparison."""
    same_targets: bool
    """Whether each sample has the same target on both sides."""
    control: bool
    """Whether at least one side is a control, see `JudgedCondition.control`."""
    length: LengthDifference
    """The difference of the effective lengths."""
    tokens: PairTokens
    """Tokens a symbol on both sides."""
    adaptive: bool = False
    """Whether at least one side is adaptive, see `JudgedCondition.adaptive`."""
    has_same_rows: bool = False
    """Whether a sample has the same row of symbols at all lengths."""
    estimates: tuple[EffectiveLength | None, EffectiveLength | None] = (None, None)
    """Both effective lengths as the tables of the two runs have them."""
    has_same_lines: bool = True
    """Whether both sides have scored samples on the same lines."""
    sides: tuple[JudgedCondition, ...] = ()
    """First and second."""

    @property
    def rows(self) -> int | None:
        """Rows of the pairs; `None` where each length has rows of its own."""
        if not self.has_same_rows:
            return None
        return int(self.paired.pair[0].scored.any(axis=1).sum())

    @property
    def is_paired(self) -> bool:
        """Whether the sides are compared on the same rows."""
        return self.paired.is_paired

    @property
    def area(self) -> PairedArea | None:
        """The areas under both curves; `None` if a side is adaptive or the rows differ."""
        return None if self.adaptive else self.paired.area

    @property
    def swapped(self) -> ConditionComparison:
        return replace(
            self,
            paired=self.paired.swapped,
            length=self.length.swapped,
            tokens=self.tokens.swapped,
            estimates=self.estimates[::-1],
            sides=self.sides[::-1],
        )

    @property
    def lines(self) -> Iterator[tuple[LineDifference, float]]:
        """Each line with its corrected p-value."""
        return zip(self.paired.lengths, self.p_values, strict=True)


@dataclass(frozen=True, eq=False)
class Comparison:
    """First against second on one task, under each condition and in the mean.

    The tests of all conditions and lengths are one family for Holm's correction, because they
    answer one question: whether first and second differ on this task.
    """

    task: str
    task_version: int
    unit: str
    """The unit of the task's lengths."""
    model: str | None
    """The model whose conditions are compared; `None` where two models are compared."""
    first: str
    second: str
    conditions: tuple[ConditionComparison, ...]
    length: LengthDifference
    """Mean over the conditions."""
    readings_of: str = ""
    """The model as tables name its replies, where the other side is its likelihoods; else empty."""
    runs: tuple[JudgedRun, ...] = ()
    """The runs of both sides, in their order; one where its conditions are compared."""
    other_settings: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """What the sides were asked with otherwise, see `comparability.other_settings`."""
    other_tests: int = 0
    """Tests of lines of other comparisons for which the p-values are corrected too."""

    @property
    def threshold(self) -> float:
        """The accuracy from which a side is right to a length."""
        return self.runs[0].settings.threshold

    @cached_property
    def area(self) -> PairedArea | None:
        """Mean over the conditions; `None` if one of them has no areas."""
        if any(compared.adaptive or not compared.is_paired for compared in self.conditions):
            return None
        if len(self.conditions) == 1:
            return self.conditions[0].area
        return mean_area([compared.paired.pair for compared in self.conditions])

    @property
    def is_paired(self) -> bool:
        """Whether the sides are compared on the same rows under every condition."""
        return all(compared.is_paired for compared in self.conditions)

    @property
    def has_same_lines(self) -> bool:
        """Whether no side has a line that the other one lacks, under any condition."""
        return all(compared.has_same_lines for compared in self.conditions)

    @property
    def lines(self) -> list[tuple[LineDifference, float]]:
        """The lines of all conditions, each with its corrected p-value."""
        return [line for compared in self.conditions for line in compared.lines]

    @property
    def significant(self) -> list[LineDifference]:
        """The lines whose accuracies differ after the correction."""
        return [line for line, p in self.lines if p < SIGNIFICANT]

    @property
    def swapped(self) -> Comparison:
        return replace(
            self,
            first=self.second,
            second=self.first,
            conditions=tuple(compared.swapped for compared in self.conditions),
            length=self.length.swapped,
            runs=self.runs[::-1],
            other_settings={name: pair[::-1] for name, pair in self.other_settings.items()},
        )

    def points(self, margin: Margin) -> float:
        """A margin as a difference of areas over the lines that are compared, see `as_points`."""
        return as_points(margin, [compared.paired.pair[0] for compared in self.conditions])

    def factor(self, margin: Margin) -> float | None:
        """A margin as a factor of length over the lines that are compared, see `as_factor`."""
        return as_factor(margin, [compared.paired.pair[0] for compared in self.conditions])

    def is_at_floor(self, margin: Margin) -> bool:
        """Whether the areas of both are so small that none can fall by more than the margin."""
        pairs = [compared.paired.pair for compared in self.conditions]
        return all(is_at_floor(side, margin) for side in zip(*pairs, strict=True))

    def in_margins(self, margin: Margin) -> tuple[float, float, float]:
        """The difference that is held against a margin, and both ends of its interval, as multiples
        of the margin: of a share that of the areas with 90 %, of a factor that of the effective
        lengths with 95 %, on a logarithmic scale. NaN and infinite without it.
        """
        factor, area = factor_of(margin), self.area
        if factor is not None:
            middle, low, high = (octaves / math.log2(factor) for octaves in self.length.shown)
            return middle, low, high
        if area is None:
            return math.nan, -math.inf, math.inf
        low, high = area.equivalence_ci
        return area.difference / float(margin), low / float(margin), high / float(margin)

    def change(self, margin: Margin) -> Change:
        """How second compares with first; `undecided` where something else than sight limits an
        effective length.

        `equivalent`: the interval of `in_margins` lies within the margin on both sides, neither the
        areas nor a single line differ significantly by more, and not both are at the floor.
        Otherwise `worse` or `better` if an effective length, the area or a single line shows it;
        `worse` if both are shown. Adaptive sides have no areas: they are `equivalent` only within a
        factor. Sides with other rows never are.
        """
        if self.length.is_limited:
            return "undecided"
        signs = {
            self.length.further,
            *(1 if line.difference > 0 else -1 for line in self.significant),
        }
        differences = [line.difference for line in self.significant]
        if self.area is not None:
            signs.add(self.area.larger)
            differences += [self.area.difference] * bool(self.area.larger)
        _, low, high = self.in_margins(margin)
        is_within = self.is_paired and low > -1 and high < 1 and not self.is_at_floor(margin)
        if is_within and all(abs(one) <= self.points(margin) for one in differences):
            return "equivalent"
        return "worse" if 1 in signs else "better" if -1 in signs else "undecided"


def compare_runs(
    first: JudgedRun,
    second: JudgedRun,
    *,
    names: tuple[str, str] | None = None,
    conditions: Collection[Condition] | None = None,
    sides: Sides | None = None,
    unpaired: bool = False,
) -> Comparison:
    """Compares two runs of one task on the same samples, condition by condition.

    With `unpaired` recorded replies to different rows are compared too, see `have_other_rows`.

    `names` replaces the names of the runs: their models, with the settings that differ.
    `conditions` are compared, and without them all that both runs have. `sides`
    keeps the fits of runs that are in many comparisons.

    Raises:
        CompareError: their tasks, versions, rows or prompts differ, or they share no condition or
            no scored sample, or tokens a symbol are not known.
    """
    check_same_task(first, second)
    pairs = [
        (condition, judged, second.conditions[condition])
        for condition, judged in first.conditions.items()
        if condition in second.conditions and (conditions is None or condition in conditions)
    ]
    if not pairs:
        raise CompareError(
            f"{first.folder} and {second.folder} have no condition in common: "
            f"{_labels(first)} against {_labels(second)}"
        )
    for _, first_condition, second_condition in pairs:
        if not (unpaired and have_other_rows(first_condition, second_condition)):
            check_same_prompts(first_condition, second_condition)
    said = names or names_of([first, second])
    compared = _compare(first, "", said, pairs, sides=sides, unpaired=unpaired)
    return replace(
        compared,
        readings_of=readings_of(first, second),
        runs=(first, second),
        other_settings=other_settings([first, second], said),
    )


def readings_of(first: JudgedRun, second: JudgedRun) -> str:
    """The model of which these are both readings; empty if they are not."""
    if bool(first.options) == bool(second.options):
        return ""
    if first.manifest.asked_as != second.manifest.asked_as:
        return ""
    return (second if first.options else first).manifest.model_name


def _labels(run: JudgedRun) -> str:
    return "; ".join(condition.label for condition in run.conditions)


def compare_conditions(
    run: JudgedRun,
    axis: str,
    values: Sequence[str],
    *,
    unpaired: bool = False,
) -> Comparison:
    """Compares two values of an axis on the same rows, with all other axes equal.

    `values` are two value names, or `all` where the run has two. With `unpaired` recorded replies
    to different rows are compared too, and without it such conditions are left out.

    Raises:
        CompareError: the run lacks the axis or a value, or no sample is scored under both values,
            or tokens a symbol are not known.
    """
    axes = run.spec.axes
    run_values = list(dict.fromkeys(condition.get(axis, "") for condition in run.conditions))
    if not any(run_values):
        raise CompareError(f"{run.folder} has no axis {axis!r}; it has {', '.join(axes) or 'none'}")
    compared = run_values if list(values) == ["all"] else list(values)
    for value in compared:
        if value not in run_values:
            raise CompareError(
                f"{run.folder} has no {axis}={value}; it has {', '.join(run_values)}, and the task "
                f"{', '.join(axes[axis].values)}"
            )
    if len(set(compared)) != 2 or len(compared) != 2:  # noqa: PLR2004  one against the other
        of_run = f"; {run.folder} has {', '.join(run_values)}"
        given = ", ".join(map(repr, values))
        raise CompareError(
            f"{axis} needs exactly two different values to compare, not {given}{of_run}"
        )
    value, other_value = compared
    pairs = [
        (condition.without(axis), judged, run.conditions[other])
        for condition, judged in run.conditions.items()
        if condition[axis] == value
        and (other := condition.with_value(axis, other_value)) in run.conditions
        and (unpaired or not have_other_rows(judged, run.conditions[other]))
    ]
    names = f"{axis}={value}", f"{axis}={other_value}"
    return _compare(run, axis, names, pairs, unpaired=unpaired)


def _compare(
    run: JudgedRun,
    axis: str,
    names: Sequence[str],
    conditions: Sequence[tuple[Condition, JudgedCondition, JudgedCondition]],
    *,
    sides: Sides | None = None,
    unpaired: bool = False,
) -> Comparison:
    """`axis` is empty of two runs. Raises `NoneSharedError` without a sample scored on both."""
    sides = Sides(run.settings.threshold) if sides is None else sides
    matched = [
        (condition, result, first, second)
        for condition, first, second in conditions
        if (result := _lines(first, second, sides, unpaired=unpaired)) is not None
    ]
    if not matched:
        remedy = f"; ask both the same {named('lengths')}, or compare them with {turned_on('ask')}"
        raise NoneSharedError(
            f"{names[0]} and {names[1]} have no scored sample in common{'' if axis else remedy}"
        )
    of_writing = run.may_change_tokens(axis)
    corrected = iter(holm([row.p for _, result, _, _ in matched for row in result.lengths]))
    compared = []
    for condition, result, first, second in matched:
        is_paired = result.is_paired
        pair = sides_of(first, second, sides, other_rows=not is_paired)
        assert pair is not None  # their lines are compared
        estimates = [judged.effective_length() for judged in (first, second)]
        compared.append(
            ConditionComparison(
                condition,
                result,
                tuple(next(corrected) for _ in result.lengths),
                same_targets(first, second),
                first.control or second.control,
                _length(estimates, pair, paired=is_paired),
                PairTokens(first.tokens_a_symbol, second.tokens_a_symbol, axis, of_writing),
                first.adaptive or second.adaptive,
                len(result.lengths) > 1 and not first.run.has_given_rows,
                (estimates[0], estimates[1]),
                len({side.curve and side.curve.lines for side in (first, second)}) == 1,
                (first, second),
            )
        )
    manifest = run.manifest
    length = mean_difference([condition.length for condition in compared])
    return Comparison(
        task=manifest.task,
        task_version=manifest.task_version,
        unit=run.spec.unit,
        model=run.manifest.model if axis else None,
        first=names[0],
        second=names[1],
        conditions=tuple(compared),
        length=length,
        runs=(run,),
    )


def _length(
    estimates: Sequence[EffectiveLength | None], pair: tuple[Side, Side], *, paired: bool
) -> LengthDifference:
    """A length that something else than sight limits is a lower bound."""
    difference = sides_difference(*pair, paired=paired)
    limits = [Limit() if one is None else one.limit for one in estimates]
    lengths = [
        found if one is None or one.limit.is_ranked else one.length
        for one, found in zip(estimates, (difference.first, difference.second), strict=True)
    ]
    p = difference.p if all(limit.is_ranked for limit in limits) else None
    return replace(
        difference, first=lengths[0], second=lengths[1], limits=(limits[0], limits[1]), p=p
    )


def sides_of(
    first: JudgedCondition,
    second: JudgedCondition,
    sides: Sides,
    *,
    other_rows: bool,
) -> tuple[Side, Side] | None:
    """Both sides, each with all of its own samples, so that each has the effective length of its
    run. `None` where no sample is scored on both sides, unless with `other_rows`, see
    `have_other_rows`.
    """
    if first.curve is None or second.curve is None:
        return None
    if not other_rows and paired(first.curve, second.curve) is None:
        return None
    return sides.of(first.curve), sides.of(second.curve)


def _lines(
    first: JudgedCondition, second: JudgedCondition, sides: Sides, *, unpaired: bool
) -> PairedLines | None:
    """The comparison of each line; `None` if no sample is scored on both sides."""
    if first.curve is None or second.curve is None:
        return None
    if unpaired and have_other_rows(first, second):
        return compare_unpaired(first.curve, second.curve)
    pair = paired(first.curve, second.curve)
    if pair is None:
        return None
    # equal curves of many pairs share one copy
    return compare_pairs((sides.of(pair[0]).samples, sides.of(pair[1]).samples))
