"""What each value of an axis changes, on paired samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from eyechart.harness.analysis.comparison.comparison import ConditionComparison, compare_conditions
from eyechart.harness.analysis.comparison.family import corrected
from eyechart.harness.analysis.comparison.paired_curves import PairedArea
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import span_text
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.errors import CompareError
from eyechart.harness.spec import Condition


@dataclass(frozen=True, eq=False)
class Effect:
    """One value of an axis against the first value, all else equal, on paired samples."""

    name: str
    """The model."""
    run: JudgedRun
    axis: str
    baseline: str
    value: str
    others: Condition
    """The values of the other axes that vary."""
    compared: ConditionComparison
    """The comparison: its first side is the value, its second side the baseline."""

    @property
    def before(self) -> EffectiveLength:
        """The effective length with the baseline."""
        return _known(self.compared.estimates[1])

    @property
    def after(self) -> EffectiveLength:
        """The effective length with the value."""
        return _known(self.compared.estimates[0])

    @property
    def where(self) -> str:
        """`others` as text; empty if there are none."""
        return ", ".join(f"{axis} {value}" for axis, value in self.others.items())

    @property
    def area(self) -> PairedArea | None:
        """The areas under both curves and their difference; `None` if a side is adaptive."""
        return self.compared.area

    @property
    def area_size(self) -> float:
        """The size of the difference of areas; 0 if there are no areas."""
        return abs(self.area.difference) if self.area else 0.0

    @property
    def fair(self) -> bool:
        """Whether both values were asked with the same targets and neither is a control."""
        return self.compared.same_targets and not self.compared.control

    @property
    def moved(self) -> bool:
        """Whether a difference is shown, of effective lengths or of areas, and sight limits both
        sides.
        """
        if self.is_limited:
            return False
        return bool(self.further or (self.area and self.area.larger))

    @property
    def is_limited(self) -> bool:
        """Whether something else than sight limits one of the two effective lengths."""
        return self.compared.length.is_limited

    @property
    def further(self) -> int:
        """1 if the model is right further with the value, -1 if with the baseline, else 0."""
        return self.compared.length.further

    @property
    def shift(self) -> float:
        """Octaves by which the value moves the effective length, if that is shown, else 0."""
        return self.compared.length.octaves if self.further else 0.0

    @property
    def intervals(self) -> str:
        """The intervals of both effective lengths as text, each with its note."""
        spans = " \u2192 ".join(map(span_text, (self.before.length_ci, self.after.length_ci)))
        return ", ".join(filter(None, (spans, self.before.note or self.after.note)))


def _known(estimate: EffectiveLength | None) -> EffectiveLength:
    assert estimate is not None  # samples are scored on both sides
    return estimate


def effects(
    run: JudgedRun, name: str, conditions: Collection[Condition] | None = None
) -> list[Effect]:
    """Every value of every axis that varies in a run, or under some of its conditions, against the
    first value that was asked; the tests of effective lengths have Holm's correction over all fair
    effects.
    """
    asked = [one.condition for one in run.shown(conditions)]
    values = {
        axis: [value for value in spec["values"] if any(one[axis] == value for one in asked)]
        for axis, spec in run.manifest.spec["axes"].items()
    }
    varied = [axis for axis in values if len(values[axis]) > 1]
    varied.sort(key=lambda axis: -len(values[axis]))
    found = [
        Effect(
            name,
            run,
            axis,
            baseline,
            value,
            rest.only([other for other in varied if other != axis]),
            compared,
        )
        for axis in varied
        for rest, baseline, value, compared in _of_axis(run, axis, values[axis], asked)
    ]
    family = [effect for effect in found if effect.fair]
    lengths = iter(corrected([effect.compared.length for effect in family]))
    return [
        replace(effect, compared=replace(effect.compared, length=next(lengths)))
        if effect.fair
        else effect
        for effect in found
    ]


def _of_axis(
    run: JudgedRun,
    axis: str,
    values: Collection[str],
    asked: Collection[Condition],
) -> Iterator[tuple[Condition, str, str, ConditionComparison]]:
    """The rest of a condition, the first value, another one, and their comparison."""
    values_by_rest: dict[Condition, set[str]] = {}
    for condition in asked:
        values_by_rest.setdefault(condition.without(axis), set()).add(condition[axis])
    baselines = {
        rest: next(value for value in values if value in of_rest)
        for rest, of_rest in values_by_rest.items()
    }
    compared = {
        (value, baseline): _compared(run, axis, value, baseline)
        for baseline in dict.fromkeys(baselines.values())
        for value in values
    }
    for rest, baseline in baselines.items():
        for value in values:
            found = compared[value, baseline].get(rest)
            if found is not None and value in values_by_rest[rest]:
                yield rest, baseline, value, found


def _compared(
    run: JudgedRun, axis: str, value: str, baseline: str
) -> dict[Condition, ConditionComparison]:
    """What `bench compare` finds, by the rest of the condition; empty without shared samples."""
    if value == baseline:
        return {}
    try:
        comparison = compare_conditions(run, axis, (value, baseline))
    except CompareError:
        return {}
    return {compared.condition: compared for compared in comparison.conditions}
