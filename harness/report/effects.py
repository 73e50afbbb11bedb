"""What moved the breaking point: paired differences between the values of each axis, in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from harness.analysis.comparison import ConditionComparison, compare_conditions, compare_runs
from harness.analysis.details import RunDetails
from harness.analysis.stats import (
    Bound,
    EffectiveLength,
    PairedArea,
    Threshold,
    effective_length,
    span_text,
)
from harness.errors import CompareError
from harness.report.section import Section, key_of
from harness.spec import Condition

_SAID = 2
"""Moves that are said of a model; the tables have all."""


@dataclass(frozen=True, eq=False)
class Effect:
    """One value of an axis against the first, all else equal, on samples that have both."""

    shown: RunDetails
    axis: str
    baseline: str
    value: str
    others: Condition
    """The values of the other axes that the section varies."""
    threshold: Threshold
    compared: ConditionComparison
    """The value first, the baseline second."""

    @cached_property
    def before(self) -> EffectiveLength:
        """How far with the baseline, on the pairs alone."""
        return effective_length(self.compared.pair[1], self.threshold)

    @cached_property
    def after(self) -> EffectiveLength:
        """How far with the value, on the pairs alone."""
        return effective_length(self.compared.pair[0], self.threshold)

    @property
    def where(self) -> str:
        """The others in words, empty if there are none."""
        return ", ".join(f"{axis} {value}" for axis, value in self.others.items())

    @property
    def area(self) -> PairedArea:
        """Under the curves of both."""
        return self.compared.paired.area

    @property
    def fair(self) -> bool:
        """Whether the difference is one of the axis alone."""
        return self.compared.same_targets and not self.compared.control

    @property
    def moved(self) -> bool:
        """Whether the interval of the area's difference leaves out zero."""
        low, high = self.area.difference_ci
        return low > 0 or high < 0

    @property
    def apart(self) -> bool:
        """Whether the intervals of both effective lengths do not overlap."""
        (low, high), (least, most) = self.before.length_ci, self.after.length_ci
        return _order(high) < _order(least) or _order(most) < _order(low)

    @property
    def shift(self) -> float:
        """Log ratio of the effective lengths if the move is real and the area agrees, else 0."""
        if not (self.moved and self.apart):
            return 0.0
        ends = self.before.length, self.after.length
        ratio = math.log(_order(ends[1]) / _order(ends[0]))
        return ratio if ratio * self.area.difference > 0 else 0.0

    @property
    def intervals(self) -> str:
        """Of both effective lengths; empty if both are single points."""
        spans = self.before.length_ci, self.after.length_ci
        if all(low == high for low, high in spans):
            return ""
        return " \u2192 ".join(map(span_text, spans))


def _order(bound: Bound) -> float:
    """A place among the bounds on the same lengths."""
    return {"<": 0.5, "=": 1.0, ">": 2.0}[bound.sign] * bound.length


def effects(section: Section) -> list[Effect]:
    """Every value of every varied axis against the first that was run."""
    return [
        effect
        for shown in section.runs
        for axis in section.varied
        for effect in _of_axis(section, shown, axis)
    ]


def _of_axis(section: Section, shown: RunDetails, axis: str) -> Iterator[Effect]:
    rest = [other for other in section.varied if other != axis]
    tried: dict[Condition, set[str]] = {}
    for condition in shown.run.conditions:
        tried.setdefault(condition.without(axis), set()).add(condition[axis])
    baselines = {
        condition: next(value for value in section.axes[axis] if value in values)
        for condition, values in tried.items()
    }
    compared = {
        (value, baseline): _compared(shown, axis, value, baseline)
        for baseline in dict.fromkeys(baselines.values())
        for value in section.axes[axis]
    }
    for condition, baseline in baselines.items():
        for value in section.axes[axis]:
            comparison = compared[value, baseline].get(condition)
            if comparison is not None:
                others = condition.only(rest)
                yield Effect(shown, axis, baseline, value, others, section.threshold, comparison)


def _compared(
    shown: RunDetails, axis: str, value: str, baseline: str
) -> dict[Condition, ConditionComparison]:
    """What `bench compare` says of two values, by the rest of the condition; empty where they have
    no scored sample in common.
    """
    if value == baseline:
        return {}
    try:
        comparison = compare_conditions(shown.run, axis, (value, baseline))
    except CompareError:
        return {}
    return {one.condition: one for one in comparison.conditions}


def finding(section: Section, shown: RunDetails, found: Sequence[Effect]) -> str:
    """A few sentences: what moved the breaking point of a model, and by how much."""
    mine = [effect for effect in found if effect.shown is shown and effect.fair]
    if not any(key_of(series)[0] == shown.name for series in section.series if series.curve):
        return f"{shown.name} has no scored sample here."
    if not mine:
        reached = [
            str(section.estimates[key_of(series)].length)
            for series in section.series
            if series.shown is shown and series.curve is not None
        ]
        only = f" under {len(reached)} conditions" if len(reached) > 1 else ""
        return (
            f"The effective length of {shown.name} is {' / '.join(dict.fromkeys(reached))}{only}."
        )
    moved = sorted(
        (effect for effect in mine if effect.moved),
        key=lambda effect: (-abs(effect.shift), -abs(effect.area.difference)),
    )
    first: dict[str, Effect] = {}
    for effect in moved:
        first.setdefault(effect.axis, effect)
    said = [_moved(effect) for effect in list(first.values())[:_SAID]]
    still = [effect for effect in mine if effect.axis not in first]
    if still:
        said.append(_unmoved(shown.name, still))
    return " ".join(said)


def _moved(effect: Effect) -> str:
    model, up = effect.shown.name, effect.area.difference > 0
    change = f"{'rises' if up else 'falls'} by {size_text(effect.area)}"
    where = f" ({effect.where})" if effect.where else ""
    axis = _plain(effect.axis)
    begin = f"With {axis} {effect.value} instead of {effect.baseline}{where}"
    before, after = effect.before.length, effect.after.length
    if effect.apart:
        link = "; its" if effect.shift else ", but its"
        return (
            f"{begin}, {model} sees to {_seen(effect.after)} instead of {_seen(effect.before)}"
            f"{link} accuracy {change}."
        )
    ends = (
        f"stays {before}"
        if before == after
        else f"is {after} and {before}, with intervals that overlap"
    )
    return f"{begin}, the accuracy of {model} {change}; the effective length {ends}."


def _seen(found: EffectiveLength) -> str:
    """The effective length, with its interval unless that is a single point."""
    low, high = found.length_ci
    interval = "" if low == high else f" ({span_text((low, high))})"
    return f"{found.length}{interval}"


def _unmoved(model: str, found: Sequence[Effect]) -> str:
    largest = max(found, key=lambda effect: abs(effect.area.difference))
    axes = " or ".join(dict.fromkeys(_plain(effect.axis) for effect in found))
    where = f" ({largest.where})" if largest.where else ""
    return (
        f"No change of {axes} moves the accuracy of {model} measurably: the largest difference in "
        f"area is {change_text(largest.area)}, of {_plain(largest.axis)} from {largest.baseline} "
        f"to {largest.value}{where}."
    )


def _plain(axis: str) -> str:
    return axis.replace("_", " ")


def change_text(area: PairedArea) -> str:
    """`+34 points (+30 to +38)`: a difference of areas, in points of accuracy over log length."""
    return _points(area.difference, *area.difference_ci, sign="+")


def size_text(area: PairedArea) -> str:
    """The same without its sign."""
    low, high = area.difference_ci
    if area.difference < 0:
        return _points(-area.difference, -high, -low, sign="")
    return _points(area.difference, low, high, sign="")


def _points(middle: float, low: float, high: float, *, sign: str) -> str:
    values = [100 * share for share in (middle, low, high)]
    digits = 1 if any(0 < abs(value) < 1 for value in values) else 0
    one, two, three = (
        f"{round(value, digits) + 0.0:{sign if round(value, digits) else ''}.{digits}f}"
        for value in values
    )
    return f"{one} points ({two} to {three})".replace("-", "\u2212")


@dataclass(frozen=True)
class Gap:
    """The model with the largest area against another, on the samples that both have."""

    first: str
    second: str
    area: PairedArea
    """Mean over the conditions that both have."""
    effects: tuple[Effect, ...]
    """By condition."""

    def __str__(self) -> str:
        """One sentence to quote."""
        turned = self.area.difference_ci[1] < 0
        ahead, behind = (self.second, self.first) if turned else (self.first, self.second)
        area = self.area.swapped if turned else self.area
        low, high = area.difference_ci
        numbers = (
            f"area {area.first:.2f} against {area.second:.2f}, difference "
            f"{area.difference:+.2f} (95 % interval {low:+.2f} to {high:+.2f})"
        ).replace("-", "\u2212")
        if low > 0:
            return f"{ahead} sees further than {behind}: {numbers}."
        return f"No difference in area between {ahead} and {behind} is shown: {numbers}."


def gaps(section: Section) -> list[Gap]:
    """Each model against the one with the largest area; of those that were asked the same."""
    areas: dict[str, dict[str, float]] = {}
    for (name, label), found in section.estimates.items():
        areas.setdefault(name, {})[label] = found.area
    common = set.intersection(*map(set, areas.values())) if areas else set()
    ranked = sorted(
        (shown for shown in section.runs if shown.name in areas),
        key=lambda shown: -_mean(areas[shown.name], common),
    )
    made = [_gap(section, ranked[0], other) for other in ranked[1:]]
    return [gap for gap in made if gap is not None]


def _mean(areas: Mapping[str, float], common: Collection[str]) -> float:
    """Over the conditions in common; over all, if there are none."""
    return fmean(area for label, area in areas.items() if label in common or not common)


def _gap(section: Section, best: RunDetails, other: RunDetails) -> Gap | None:
    """`None` where they were not asked the same, or nothing was scored in both."""
    try:
        comparison = compare_runs(best.run, other.run, names=(best.name, other.name))
    except CompareError:
        return None
    effects_of_models = tuple(
        Effect(
            best,
            "model",
            other.name,
            best.name,
            compared.condition.only(section.varied),
            section.threshold,
            compared,
        )
        for compared in comparison.conditions
    )
    return Gap(best.name, other.name, comparison.area, effects_of_models)
