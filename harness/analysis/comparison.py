"""Two models, or conditions of one run, on the same samples: which sees further, and is it real?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis.reach import conditions, scored
from harness.analysis.stats import (
    Pair,
    Paired,
    PairedArea,
    compare_pairs,
    curve,
    holm,
    mean_area,
    paired,
    smallest_difference,
)
from harness.analysis.tables import Run
from harness.columns import COMPARISON
from harness.errors import CompareError
from harness.spec import Condition, condition_label

SIGNIFICANT = 0.05
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Comparison:
    """First against second under one condition."""

    condition: Condition
    """Values that both have in common."""
    pair: Pair
    paired: Paired
    p_values: tuple[float, ...]
    """Of each length, corrected for all tests of the command (Holm)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All comparisons of two names on one task, and what they come to."""

    task: str
    task_version: int
    model: str | None
    """Whose conditions are compared; `None` for two models."""
    first: str
    second: str
    comparisons: tuple[Comparison, ...]
    area: PairedArea
    """Mean over the conditions."""

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference in area leaves out 0."""
        low, high = self.area.difference_ci
        return low > 0 or high < 0

    def __str__(self) -> str:
        """One sentence to quote."""
        turned = self.differs and self.area.difference < 0
        ahead, behind = (self.second, self.first) if turned else (self.first, self.second)
        area = self.area.swapped if turned else self.area
        low, high = area.difference_ci
        over = len(self.comparisons)
        where = self.task + (f" (mean of {over} conditions)" if over > 1 else "")
        tests = [
            (row, p)
            for one in self.comparisons
            for row, p in zip(one.paired.lengths, one.p_values, strict=True)
        ]
        real = sorted({row.length for row, p in tests if p < SIGNIFICANT})
        areas = (
            f"area {area.first:.2f} against {area.second:.2f}, difference "
            f"{area.difference:+.2f} (95 % interval {low:+.2f} to {high:+.2f})"
        )
        if self.differs:
            said = f"{ahead} sees further than {behind} on {where}: {areas}"
            if self.model is not None:
                said = (
                    f"{self.model} sees further with {ahead} than with {behind} on {where}: {areas}"
                )
        else:
            of = "" if self.model is None else f" for {self.model}"
            said = (
                f"no difference in area is shown between {ahead} and {behind}{of} on "
                f"{where}: {areas}"
            )
        if real:
            least = min(p for _, p in tests)
            lengths = ", ".join(map(str, real))
            but = "" if self.differs else "but "
            return (
                f"{said}; {but}accuracy differs at length{'s' * (len(real) > 1)} {lengths} "
                f"(p {_at_least(least)}, exact McNemar with Holm's correction for "
                f"{len(tests)} tests)."
            )
        pairs = min(row.n for row, _ in tests)
        least_shown = smallest_difference(pairs, len(tests))
        shown = "nothing" if least_shown is None else f"{100 * least_shown:.0f} points or more"
        return (
            f"{said}; no single length shows one (exact McNemar with Holm's correction: {pairs} "
            f"pairs and {len(tests)} tests can show {shown})."
        )


def _at_least(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"from {p:.3f}"  # noqa: PLR2004  as is usual


def compare_runs(first: Run, second: Run) -> Verdict:
    """Two runs of one task on the same samples, condition by condition.

    Raises:
        CompareError: they are of different tasks, versions, rows or prompts, or share nothing.
    """
    _check_same_task(first, second)
    common = [label for label in conditions(first) if label in conditions(second)]
    if not common:
        raise CompareError(
            f"{first.folder} and {second.folder} have no condition in common: "
            f"{'; '.join(conditions(first))} against {'; '.join(conditions(second))}"
        )
    pairs = []
    for label in common:
        pair = _paired(scored(first, label), scored(second, label), same_prompts=True)
        if pair is not None:
            pairs.append((conditions(first)[label], pair))
    return _verdict(first, None, _names(first, second), pairs)


def compare_conditions(run: Run, axis: str, values: Sequence[str]) -> Verdict:
    """Two values of an axis on the same rows, everything else equal.

    Raises:
        CompareError: the run has not both of them, or no sample in both.
    """
    known = conditions(run)
    tried = list(dict.fromkeys(condition.get(axis, "") for condition in known.values()))
    if not any(tried):
        axes = ", ".join(run.manifest.spec["axes"]) or "none"
        raise CompareError(f"{run.folder} has no axis {axis!r}; it has {axes}")
    wanted = tried if list(values) == ["all"] else list(values)
    for value in wanted:
        if value not in tried:
            raise CompareError(
                f"{run.folder} has no {axis}={value}; it has {', '.join(tried)}, and the task "
                f"{', '.join(run.manifest.spec['axes'][axis]['values'])}"
            )
    if len(wanted) != 2:  # noqa: PLR2004  one against the other
        raise CompareError(f"{axis} needs two values to compare, not {', '.join(wanted)}")
    one, other = wanted
    pairs = []
    for condition in known.values():
        against = condition_label({**condition, axis: other})
        if condition[axis] != one or against not in known:
            continue
        pair = _paired(
            scored(run, condition_label(condition)), scored(run, against), same_prompts=False
        )
        if pair is not None:
            rest = {name: value for name, value in condition.items() if name != axis}
            pairs.append((rest, pair))
    return _verdict(run, run.manifest.model, (f"{axis}={one}", f"{axis}={other}"), pairs)


def _verdict(
    run: Run, model: str | None, names: tuple[str, str], pairs: Sequence[tuple[Condition, Pair]]
) -> Verdict:
    if not pairs:
        raise CompareError(f"{names[0]} and {names[1]} have no scored sample in common")
    results = [compare_pairs(pair) for _, pair in pairs]
    corrected = iter(holm([row.p for one in results for row in one.lengths]))
    comparisons = tuple(
        Comparison(condition, pair, one, tuple(next(corrected) for _ in one.lengths))
        for (condition, pair), one in zip(pairs, results, strict=True)
    )
    manifest = run.manifest
    area = mean_area([pair for _, pair in pairs])
    return Verdict(manifest.task, manifest.task_version, model, *names, comparisons, area)


def _check_same_task(first: Run, second: Run) -> None:
    one, other = first.manifest, second.manifest
    where = f"{first.folder} and {second.folder} cannot be compared"
    if first.folder.resolve() == second.folder.resolve():
        raise CompareError(
            f"{first.folder} is both runs; --axis AXIS=VALUE,VALUE compares conditions of one"
        )
    if one.task != other.task:
        raise CompareError(f"{where}: one is of {one.task}, the other of {other.task}")
    if one.task_version != other.task_version:
        raise CompareError(
            f"{where}: one is of version {one.task_version} of {one.task}, the other of "
            f"{other.task_version}; run both with the same"
        )
    if one.task_digest != other.task_digest:
        raise CompareError(
            f"{where}: the file of {one.task} changed between them and its version did not; "
            "run both with the same"
        )
    seeds = one.settings.get("seed"), other.settings.get("seed")
    if seeds[0] != seeds[1]:
        raise CompareError(f"{where}: their rows differ (seed {seeds[0]} and seed {seeds[1]})")


def _names(first: Run, second: Run) -> tuple[str, str]:
    """The models; with the settings that differ, or the folders, where those are the same."""
    one, other = first.manifest, second.manifest
    if one.model != other.model:
        return one.model, other.model
    differ = [
        name
        for name in {**one.settings, **other.settings}
        if one.settings.get(name) != other.settings.get(name)
    ]
    if not differ:
        return str(first.folder), str(second.folder)

    def named(settings: Mapping[str, Any]) -> str:
        return f"{one.model} ({', '.join(f'{name}={settings.get(name)}' for name in differ)})"

    return named(one.settings), named(other.settings)


def _paired(first: pd.DataFrame, second: pd.DataFrame, *, same_prompts: bool) -> Pair | None:
    both = first.merge(second, on=["length", "index"], suffixes=("", "_other"))
    if same_prompts and (other := both[both["prompt"] != both["prompt_other"]]).size:
        place = other.iloc[0]
        raise CompareError(
            f"the prompts of {len(other):,} samples differ, the first at length "
            f"{place['length']}, index {place['index']}: the task's generator or items changed "
            "and its version did not; run both with the same"
        )
    if both.empty:
        return None
    lengths, indexes = both["length"].to_numpy(), both["index"].to_numpy()
    return paired(
        *(curve(lengths, indexes, both[name].to_numpy()) for name in ("correct", "correct_other"))
    )


def comparison_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Tidy: a row a length, and one of the measure `area` after the lengths of each condition."""
    rows = [
        {
            "task": verdict.task,
            "task_version": verdict.task_version,
            "condition": condition_label(one.condition),
            "first": verdict.first,
            "second": verdict.second,
            **row,
        }
        for verdict in verdicts
        for one in verdict.comparisons
        for row in _rows(one)
    ]
    table = pd.DataFrame(rows, columns=list(COMPARISON))
    counts = ["length", "n", "only_first", "only_second"]
    table[counts] = table[counts].astype("Int64")
    rounded = ["value_first", "value_second", "difference", "ci_low", "ci_high"]
    table[rounded] = table[rounded].round(_DIGITS)
    return table


def _rows(one: Comparison) -> Iterator[dict[str, Any]]:
    for row, corrected in zip(one.paired.lengths, one.p_values, strict=True):
        yield {
            "measure": "accuracy",
            "length": row.length,
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
    area = one.paired.area
    yield {
        "measure": "area",
        "length": None,
        "n": sum(row.n for row in one.paired.lengths),
        "value_first": area.first,
        "value_second": area.second,
        "difference": area.difference,
        "ci_low": area.difference_ci[0],
        "ci_high": area.difference_ci[1],
    }
