"""Compares two models, or two conditions of one run, on the same samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from harness.analysis.comparability import (
    check_same_prompts,
    check_same_task,
    names_of,
    same_targets,
)
from harness.analysis.curve import Threshold
from harness.analysis.further import (
    SIGNIFICANT,
    LengthDifference,
    Sides,
    mean_difference,
)
from harness.analysis.judged_run import JudgedCondition, JudgedRun
from harness.analysis.paired import (
    Paired,
    PairedArea,
    PairedLength,
    compare_pairs,
    holm,
    mean_area,
    paired,
)
from harness.errors import CompareError
from harness.spec import Condition

Change: TypeAlias = Literal["worse", "better", "equivalent", "undecided"]


@dataclass(frozen=True, eq=False)
class ConditionComparison:
    """First against second under one condition."""

    condition: Condition
    """The axis values that both sides share."""
    paired: Paired
    p_values: tuple[float, ...]
    """One for each line, with Holm's correction for all tests of the comparison."""
    same_targets: bool
    """Whether each sample has the same target on both sides."""
    control: bool
    """Whether at least one side is a control, see `JudgedCondition.control`."""
    length: LengthDifference
    """The difference of the effective lengths."""
    adaptive: bool = False
    """Whether at least one side is adaptive, see `JudgedCondition.adaptive`."""

    @property
    def area(self) -> PairedArea | None:
        """The areas under both curves; `None` where a side is adaptive."""
        return None if self.adaptive else self.paired.area

    @property
    def swapped(self) -> ConditionComparison:
        """The same with first and second exchanged."""
        return replace(self, paired=self.paired.swapped, length=self.length.swapped)

    @property
    def lines(self) -> Iterator[tuple[PairedLength, float]]:
        """Each line with its corrected p-value."""
        return zip(self.paired.lengths, self.p_values, strict=True)


@dataclass(frozen=True, eq=False)
class Comparison:
    """First against second on one task, condition by condition and in the mean.

    The tests of all conditions and lengths are one family for Holm's correction, because they
    answer one question: whether first and second differ on this task.
    """

    task: str
    task_version: int
    model: str | None
    """The model whose conditions are compared; `None` where two models are compared."""
    first: str
    second: str
    threshold: Threshold
    conditions: tuple[ConditionComparison, ...]
    length: LengthDifference
    """Mean over the conditions."""

    @cached_property
    def area(self) -> PairedArea | None:
        """Mean over the conditions; `None` where one of them is adaptive."""
        if any(compared.adaptive for compared in self.conditions):
            return None
        if len(self.conditions) == 1:
            return self.conditions[0].area
        return mean_area([compared.paired.pair for compared in self.conditions])

    @property
    def lines(self) -> list[tuple[PairedLength, float]]:
        """The lines of all conditions, each with its corrected p-value."""
        return [line for compared in self.conditions for line in compared.lines]

    @property
    def significant(self) -> list[PairedLength]:
        """The lines whose accuracies differ after the correction."""
        return [line for line, p in self.lines if p < SIGNIFICANT]

    @property
    def swapped(self) -> Comparison:
        """The same with first and second exchanged."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            conditions=tuple(compared.swapped for compared in self.conditions),
            length=self.length.swapped,
        )

    def change(self, margin: float) -> Change:
        """What became of second, compared with first.

        `equivalent`: the 90 % interval of the difference of the areas lies within `margin` on both
        sides, and no single line differs significantly by more. Otherwise `worse` or `better`
        where an effective length, the area or a single line shows it; `worse` where both are shown.
        Without an area nothing is equivalent.
        """
        signs = {
            self.length.further,
            *(1 if line.difference > 0 else -1 for line in self.significant),
        }
        if self.area is not None:
            low, high = self.area.equivalence_ci
            beyond = [line for line in self.significant if abs(line.difference) > margin]
            if -margin < low and high < margin and not beyond:
                return "equivalent"
            signs.add(self.area.larger)
        return "worse" if 1 in signs else "better" if -1 in signs else "undecided"


def compare_runs(
    first: JudgedRun,
    second: JudgedRun,
    threshold: Threshold = Threshold(),
    *,
    names: tuple[str, str] | None = None,
    conditions: Collection[Condition] | None = None,
    sides: Sides | None = None,
) -> Comparison:
    """Compares two runs of one task on the same samples, condition by condition.

    `names` replaces the names of the runs: their models, with the settings that differ.
    `conditions` are compared, and without them all that both runs have. `sides`
    keeps the fits of runs that are in many comparisons.

    Raises:
        CompareError: their tasks, versions, rows or prompts differ, or they share no condition or
            no scored sample.
    """
    check_same_task(first, second)
    common = [
        condition
        for condition in first.conditions
        if condition in second.conditions and (conditions is None or condition in conditions)
    ]
    if not common:
        raise CompareError(
            f"{first.folder} and {second.folder} have no condition in common: "
            f"{_labels(first)} against {_labels(second)}"
        )
    pairs = [
        (condition, first.conditions[condition], second.conditions[condition])
        for condition in common
    ]
    for _, first_condition, second_condition in pairs:
        check_same_prompts(first_condition, second_condition)
    return _compare(first, None, names or names_of(first, second), pairs, threshold, sides=sides)


def _labels(run: JudgedRun) -> str:
    return "; ".join(condition.label for condition in run.conditions)


def compare_conditions(
    run: JudgedRun, axis: str, values: Sequence[str], threshold: Threshold = Threshold()
) -> Comparison:
    """Compares two values of an axis on the same rows, with all other axes equal.

    `values` are two value names, or `all` where the run has two.

    Raises:
        CompareError: the run lacks the axis or a value, or no sample is scored under both values.
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
        given = ", ".join(map(repr, compared))
        raise CompareError(f"{axis} needs two different values to compare, not {given}")
    value, other_value = compared
    pairs = [
        (condition.without(axis), judged, run.conditions[other])
        for condition, judged in run.conditions.items()
        if condition[axis] == value
        and (other := condition.with_value(axis, other_value)) in run.conditions
    ]
    names = f"{axis}={value}", f"{axis}={other_value}"
    return _compare(run, run.manifest.model, names, pairs, threshold)


def _compare(
    run: JudgedRun,
    model: str | None,
    names: tuple[str, str],
    conditions: Sequence[tuple[Condition, JudgedCondition, JudgedCondition]],
    threshold: Threshold,
    *,
    sides: Sides | None = None,
) -> Comparison:
    """Raises `CompareError` where no sample is scored on both sides."""
    matched = [
        (condition, pair, first, second)
        for condition, first, second in conditions
        if first.curve is not None
        and second.curve is not None
        and (pair := paired(first.curve, second.curve)) is not None
    ]
    if not matched:
        raise CompareError(f"{names[0]} and {names[1]} have no scored sample in common")
    sides = Sides(threshold) if sides is None else sides
    results = [
        compare_pairs((sides.of(first).samples, sides.of(second).samples))  # one copy of equal ones
        for _, (first, second), _, _ in matched
    ]
    corrected = iter(holm([row.p for result in results for row in result.lengths]))
    compared = tuple(
        ConditionComparison(
            condition,
            result,
            tuple(next(corrected) for _ in result.lengths),
            same_targets(first, second),
            first.control or second.control,
            sides.difference(*result.pair),
            first.adaptive or second.adaptive,
        )
        for (condition, _, first, second), result in zip(matched, results, strict=True)
    )
    manifest = run.manifest
    length = mean_difference([condition.length for condition in compared])
    return Comparison(
        manifest.task, manifest.task_version, model, *names, threshold, compared, length
    )
