"""Compares two models, or two conditions of one run, on the same samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis.judged_run import JudgedCondition, JudgedRun, line_columns
from harness.analysis.paired import (
    Pair,
    Paired,
    PairedArea,
    compare_pairs,
    holm,
    mean_area,
    paired,
    smallest_difference,
)
from harness.columns import COMPARISON, LINE
from harness.errors import CompareError
from harness.spec import Condition

SIGNIFICANT = 0.05
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class ConditionComparison:
    """First against second under one condition."""

    condition: Condition
    """The axis values that both sides share."""
    pair: Pair
    paired: Paired
    p_values: tuple[float, ...]
    """One for each line, with Holm's correction for all tests of the comparison."""
    same_targets: bool
    """Whether each sample has the same target on both sides."""
    control: bool
    """Whether at least one side is a control, see `JudgedCondition.control`."""


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
    conditions: tuple[ConditionComparison, ...]
    area: PairedArea
    """Mean over the conditions."""

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference in area excludes 0."""
        low, high = self.area.difference_ci
        return low > 0 or high < 0

    def __str__(self) -> str:
        """One sentence to quote."""
        second_ahead = self.differs and self.area.difference < 0
        ahead, behind = (self.second, self.first) if second_ahead else (self.first, self.second)
        area = self.area.swapped if second_ahead else self.area
        low, high = area.difference_ci
        count = len(self.conditions)
        task = self.task + (f" (mean of {count} conditions)" if count > 1 else "")
        tests = [
            (row, p)
            for compared in self.conditions
            for row, p in zip(compared.paired.lengths, compared.p_values, strict=True)
        ]
        significant = sorted({row.length for row, p in tests if p < SIGNIFICANT})
        areas = (
            f"area {area.first:.2f} against {area.second:.2f}, difference "
            f"{area.difference:+.2f} (95 % interval {low:+.2f} to {high:+.2f})"
        )
        if self.differs:
            finding = f"{ahead} sees further than {behind} on {task}: {areas}"
            if self.model is not None:
                finding = (
                    f"{self.model} sees further with {ahead} than with {behind} on {task}: {areas}"
                )
        else:
            model = "" if self.model is None else f" for {self.model}"
            finding = (
                f"no difference in area is shown between {ahead} and {behind}{model} on "
                f"{task}: {areas}"
            )
        if significant:
            least = min(p for _, p in tests)
            lengths = ", ".join(map(str, significant))
            but = "" if self.differs else "but "
            return (
                f"{finding}; {but}accuracy differs at length{'s' * (len(significant) > 1)} "
                f"{lengths} (p {_at_least(least)}, exact McNemar with Holm's correction for "
                f"{len(tests)} tests)."
            )
        pairs = min(row.n for row, _ in tests)
        least_shown = smallest_difference(pairs, len(tests))
        shown = "nothing" if least_shown is None else f"{100 * least_shown:.0f} points or more"
        return (
            f"{finding}; no single length shows one (exact McNemar with Holm's correction: {pairs} "
            f"pairs and {len(tests)} tests can show {shown})."
        )


def _at_least(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"from {p:.3f}"  # noqa: PLR2004  as is usual


def compare_runs(
    first: JudgedRun, second: JudgedRun, *, names: tuple[str, str] | None = None
) -> Comparison:
    """Compares two runs of one task on the same samples, condition by condition.

    `names` replaces the names of the runs: their models, with the settings that differ.

    Raises:
        CompareError: their tasks, versions, rows or prompts differ, or they share no condition or
            no scored sample.
    """
    _check_same_task(first, second)
    common = [condition for condition in first.conditions if condition in second.conditions]
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
        _check_same_prompts(first_condition, second_condition)
    return _compare(first, None, names or _names(first, second), pairs)


def _labels(run: JudgedRun) -> str:
    return "; ".join(condition.label for condition in run.conditions)


def compare_conditions(run: JudgedRun, axis: str, values: Sequence[str]) -> Comparison:
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
    if len(compared) != 2:  # noqa: PLR2004  one against the other
        raise CompareError(f"{axis} needs two values to compare, not {', '.join(compared)}")
    value, other_value = compared
    pairs = [
        (condition.without(axis), judged, run.conditions[other])
        for condition, judged in run.conditions.items()
        if condition[axis] == value
        and (other := condition.with_value(axis, other_value)) in run.conditions
    ]
    names = f"{axis}={value}", f"{axis}={other_value}"
    return _compare(run, run.manifest.model, names, pairs)


def _compare(
    run: JudgedRun,
    model: str | None,
    names: tuple[str, str],
    conditions: Sequence[tuple[Condition, JudgedCondition, JudgedCondition]],
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
    results = [compare_pairs(pair) for _, pair, _, _ in matched]
    corrected = iter(holm([row.p for result in results for row in result.lengths]))
    compared = tuple(
        ConditionComparison(
            condition,
            pair,
            result,
            tuple(next(corrected) for _ in result.lengths),
            _same_targets(first, second),
            first.control or second.control,
        )
        for (condition, pair, first, second), result in zip(matched, results, strict=True)
    )
    manifest = run.manifest
    area = mean_area([pair for _, pair, _, _ in matched])
    return Comparison(manifest.task, manifest.task_version, model, *names, compared, area)


def _common(first: JudgedCondition, second: JudgedCondition, column: str) -> pd.DataFrame:
    """The samples with a record on both sides: `column` of first, `column_other` of second."""
    names = ["length", "length_low", "length_high", "index"]
    other = second.recorded[[*names, column]]
    return first.recorded[[*names, "true_length", column]].merge(
        other, on=names, suffixes=("", "_other")
    )


def _same_targets(first: JudgedCondition, second: JudgedCondition) -> bool:
    both = _common(first, second, "target")
    return bool((both["target"] == both["target_other"]).all())


def _check_same_prompts(first: JudgedCondition, second: JudgedCondition) -> None:
    both = _common(first, second, "prompt")
    other = both[both["prompt"] != both["prompt_other"]]
    if len(other):
        place = other.iloc[0]
        raise CompareError(
            f"the prompts of {len(other):,} samples differ, the first at "
            f"length {int(place['true_length'])}, index {int(place['index'])}: the task's "
            "generator or items changed and its version did not; run both with the same"
        )


def _check_same_task(first: JudgedRun, second: JudgedRun) -> None:
    left, right = first.manifest, second.manifest
    problem = f"{first.folder} and {second.folder} cannot be compared"
    if first.folder.resolve() == second.folder.resolve():
        raise CompareError(
            f"{first.folder} is both runs; --axis AXIS=VALUE,VALUE compares conditions of one"
        )
    if left.task != right.task:
        raise CompareError(f"{problem}: one is of {left.task}, the other of {right.task}")
    if left.task_version != right.task_version:
        raise CompareError(
            f"{problem}: one is of version {left.task_version} of {left.task}, the other of "
            f"{right.task_version}; run both with the same"
        )
    if left.task_digest != right.task_digest:
        raise CompareError(
            f"{problem}: the file of {left.task} changed between them and its version did not; "
            "run both with the same"
        )
    seeds = left.settings.get("seed"), right.settings.get("seed")
    if seeds[0] != seeds[1]:
        raise CompareError(f"{problem}: their rows differ (seed {seeds[0]} and seed {seeds[1]})")


def _names(first: JudgedRun, second: JudgedRun) -> tuple[str, str]:
    """The two models. Of one model: with the settings that differ, else the two folders."""
    left, right = first.manifest, second.manifest
    if left.model != right.model:
        return left.model, right.model
    differ = [
        name
        for name in {**left.settings, **right.settings}
        if left.settings.get(name) != right.settings.get(name)
    ]
    if not differ:
        return str(first.folder), str(second.folder)

    def named(settings: Mapping[str, Any]) -> str:
        return f"{left.model} ({', '.join(f'{name}={settings.get(name)}' for name in differ)})"

    return named(left.settings), named(right.settings)


def comparison_table(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """The columns `COMPARISON`: one row for each condition and line, and one for its area."""
    rows = [
        {
            "task": comparison.task,
            "task_version": comparison.task_version,
            "condition": compared.condition.label,
            "first": comparison.first,
            "second": comparison.second,
            **row,
        }
        for comparison in comparisons
        for compared in comparison.conditions
        for row in _rows(compared)
    ]
    table = pd.DataFrame(rows, columns=list(COMPARISON))
    counts = [*LINE, "n", "only_first", "only_second"]
    table[counts] = table[counts].astype("Int64")
    rounded = ["value_first", "value_second", "difference", "ci_low", "ci_high"]
    table[rounded] = table[rounded].round(_DIGITS)
    return table


def _rows(compared: ConditionComparison) -> Iterator[dict[str, Any]]:
    for row, corrected in zip(compared.paired.lengths, compared.p_values, strict=True):
        yield {
            "measure": "accuracy",
            **line_columns(row.line),
            "n": row.n,
            "value_first": row.first,
            "value_second": row.second,
            "difference": row.difference,
            "ci_low": row.difference_ci[0],
            "ci_high": row.difference_ci[1],
            "only_first": row.only_first,
            "only_second": row.only_second,
            "p": row.p,
            "p_holm": corrected,
        }
    area = compared.paired.area
    yield {
        "measure": "area",
        "n": sum(row.n for row in compared.paired.lengths),
        "value_first": area.first,
        "value_second": area.second,
        "difference": area.difference,
        "ci_low": area.difference_ci[0],
        "ci_high": area.difference_ci[1],
    }
