"""The effect of each axis in words: which values moved the effective length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eyechart.harness.analysis.comparison.comparison import (
    Comparison,
    ConditionComparison,
    compare_conditions,
    compare_runs,
)
from eyechart.harness.analysis.comparison.family import Ranked, corrected, in_family
from eyechart.harness.analysis.comparison.paired_curves import PairedArea
from eyechart.harness.analysis.comparison.signed_text import printed, signed_end
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.length.effective_length import EffectiveLength, limited_by
from eyechart.harness.analysis.length.interval import span_text
from eyechart.harness.analysis.ranking.standing import Standing
from eyechart.harness.analysis.samples.details import RunDetails
from eyechart.harness.analysis.samples.doing import Doing, doing
from eyechart.harness.analysis.tables.tokens_text import confounded
from eyechart.harness.errors import CompareError
from eyechart.harness.report.page.section import Section
from eyechart.harness.spec import Condition

_MOST_EFFECTS = 2
"""Most effects that the sentences about a model name; the tables have all of them."""


@dataclass(frozen=True, eq=False)
class Effect:
    """One value of an axis against the first value, all else equal, on paired samples."""

    run_details: RunDetails
    axis: str
    baseline: str
    value: str
    others: Condition
    """The values of the other axes that the section varies."""
    compared: ConditionComparison
    """The comparison of the value, which is first, with the baseline, which is second."""

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
        """Whether one is right further or has the larger area, and sight limits both."""
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


def effects(section: Section) -> list[Effect]:
    """Every value of every varied axis against the first value that was run; the tests of effective
    lengths have Holm's correction over all fair effects of a model.
    """
    found = []
    for run_details in section.runs:
        of_model = [
            effect
            for axis in section.varied
            for effect in _axis_effects(section, run_details, axis)
        ]
        family = [effect for effect in of_model if effect.fair]
        lengths = iter(corrected([effect.compared.length for effect in family]))
        found += [
            replace(effect, compared=replace(effect.compared, length=next(lengths)))
            if effect.fair
            else effect
            for effect in of_model
        ]
    return found


def _axis_effects(section: Section, run_details: RunDetails, axis: str) -> Iterator[Effect]:
    other_axes = [other for other in section.varied if other != axis]
    values_by_rest: dict[Condition, set[str]] = {}
    for condition in run_details.run.conditions:
        values_by_rest.setdefault(condition.without(axis), set()).add(condition[axis])
    baselines = {
        condition: next(value for value in section.axes[axis] if value in values)
        for condition, values in values_by_rest.items()
    }
    compared = {
        (value, baseline): _compare_values(run_details, axis, value, baseline)
        for baseline in dict.fromkeys(baselines.values())
        for value in section.axes[axis]
    }
    for condition, baseline in baselines.items():
        for value in section.axes[axis]:
            comparison = compared[value, baseline].get(condition)
            if comparison is not None:
                others = condition.only(other_axes)
                yield Effect(run_details, axis, baseline, value, others, comparison)


def _compare_values(
    run_details: RunDetails, axis: str, value: str, baseline: str
) -> dict[Condition, ConditionComparison]:
    """What `bench compare` finds, by the rest of the condition; empty without shared samples."""
    if value == baseline:
        return {}
    try:
        comparison = compare_conditions(run_details.run, axis, (value, baseline))
    except CompareError:
        return {}
    return {compared.condition: compared for compared in comparison.conditions}


def moved_text(run_details: RunDetails, section_effects: Sequence[Effect]) -> str:
    """A few sentences: what moved the effective length of a model, and by how much; empty where
    nothing can be compared.
    """
    fair_effects = [
        effect for effect in section_effects if effect.run_details is run_details and effect.fair
    ]
    return " ".join(_effect_sentences(run_details.name, fair_effects))


def _effect_sentences(name: str, fair_effects: Sequence[Effect]) -> list[str]:
    moved = sorted(
        (effect for effect in fair_effects if effect.moved),
        key=lambda effect: (-abs(effect.shift), -effect.area_size),
    )
    strongest: dict[str, Effect] = {}
    for effect in moved:
        strongest.setdefault(effect.axis, effect)
    sentences = [_move_sentence(effect) for effect in list(strongest.values())[:_MOST_EFFECTS]]
    comparable = [effect for effect in fair_effects if not effect.is_limited]
    unmoved = [effect for effect in comparable if effect.axis not in strongest]
    if unmoved:
        sentences.append(_no_move_sentence(name, unmoved))
    if limited := [effect for effect in fair_effects if effect.is_limited]:
        sentences.append(_limited_sentence(name, limited))
    return sentences


def _move_sentence(effect: Effect) -> str:
    model, before, after = effect.run_details.name, effect.before, effect.after
    begin = _begin(effect)
    if effect.further or effect.area is None:
        how = "further" if effect.further > 0 else "less far"
        return (
            f"{begin}{model} {_doing(effect)} {how}: to {after} instead of {before}{_rest(effect)}."
        )
    change = "larger" if effect.area.difference > 0 else "smaller"
    return (
        f"{begin}no difference in effective length is shown for {model} ({after} and {before}), "
        f"but its area is {change}: a difference of areas of {size_text(effect.area)}"
        f"{_rest(effect)}."
    )


def _rest(effect: Effect) -> str:
    """The change at one length, and that tokens a symbol differ too."""
    axis, unit = _plain(effect.axis), effect.run_details.run.spec.unit
    names = f"{axis} {effect.value}", f"{axis} {effect.baseline}"
    tokens = confounded([effect.compared.tokens], names, unit)
    return _line_text(effect) + (tokens and f"; {tokens}")


def _doing(effect: Effect) -> Doing:
    return doing(effect.compared.sides, effect.run_details.run.manifest.task)


def _begin(effect: Effect) -> str:
    where = f" ({effect.where})" if effect.where else ""
    return f"With {_plain(effect.axis)} {effect.value} instead of {effect.baseline}{where}, "


def _limited_sentence(model: str, limited: Sequence[Effect]) -> str:
    """What is not known, because something else than sight limits one side."""
    if len(limited) == 1:
        (effect,) = limited
        why = " and ".join(
            f"{value} is {limited_by(limit.by)}"
            for value, limit in zip(
                (effect.value, effect.baseline), effect.compared.length.limits, strict=True
            )
            if not limit.is_ranked
        )
        return f"{_begin(effect)}it is not known whether {model} {_doing(effect)} further: {why}."
    axes = " or ".join(dict.fromkeys(_plain(effect.axis) for effect in limited))
    return (
        f"For {len(limited)} changes of {axes} it is not known whether {model} "
        f"{_doing(limited[0])} further: something else than sight limits a length."
    )


def _line_text(effect: Effect) -> str:
    """`; at length 40 its accuracy rises by 30 points`: the largest significant change at one
    length in the same direction, after the correction; empty if there is none.
    """
    sign = effect.further or (effect.area.larger if effect.area else 0)
    lines = [
        line for line, p in effect.compared.lines if p < SIGNIFICANT and sign * line.difference > 0
    ]
    if not lines:
        return ""
    largest = max(lines, key=lambda line: abs(line.difference))
    verb = "rises" if largest.difference > 0 else "falls"
    points = round(100 * abs(largest.difference))
    return f"; at length {largest.line} its accuracy {verb} by {points} points"


def _no_move_sentence(model: str, unmoved: Sequence[Effect]) -> str:
    axes = " or ".join(dict.fromkeys(_plain(effect.axis) for effect in unmoved))
    areas = [effect.area for effect in unmoved if effect.area is not None]
    begin = f"No change of {axes} shows a difference in how far {model} {_doing(unmoved[0])}"
    if not areas:
        return f"{begin}."
    ends = [end for area in areas for end in area.difference_ci]
    low, high = (printed(signed_end(100 * end)) for end in (min(ends), max(ends)))
    which = (
        "s of its differences of areas lie"
        if len(areas) > 1
        else " of its difference of areas lies"
    )
    return f"{begin} or in its area; the 95 % interval{which} within {low} to {high} points."


def _plain(axis: str) -> str:
    return axis.replace("_", " ")


def size_text(area: PairedArea) -> str:
    """`34 points (30 to 38)`: the size of a difference of areas, in points of accuracy."""
    low, high = area.difference_ci
    ends = (-high, -low) if area.difference < 0 else (low, high)
    values = [100 * share for share in (abs(area.difference), *ends)]
    digits = 1 if any(0 < abs(value) < 1 for value in values) else 0
    middle, low_text, high_text = (signed_end(value, digits).lstrip("+") for value in values)
    return printed(f"{middle} points ({low_text} to {high_text})")


@dataclass(frozen=True)
class Gap:
    """The model with the longest effective length against another one, on the same samples."""

    comparison: Comparison
    """The model with the longest effective length is the first."""
    effects: tuple[Effect, ...]
    """The comparison under each condition that both have."""


def gaps(section: Section, ranks: Standing) -> list[Gap]:
    """The best model of a standing against each other model that was asked the same samples, with
    Holm's correction: over all conditions that both have, or over the standing's condition if there
    are too many models.
    """
    if not ranks.complete:
        found = [
            comparison for (best, _), comparison in ranks.ranking.comparisons.items() if best == 0
        ]
    else:
        compared = [_against(ranks.ranking.runs[0], other) for other in ranks.ranking.runs[1:]]
        found = in_family([comparison for comparison in compared if comparison is not None])
    details = {run_details.name: run_details for run_details in section.runs}
    return [Gap(comparison, _of_models(section, details, comparison)) for comparison in found]


def _against(best: Ranked, other: Ranked) -> Comparison | None:
    """The comparison; `None` if the models share no scored sample."""
    try:
        return compare_runs(best.run, other.run, names=(best.name, other.name))
    except CompareError:
        return None


def _of_models(
    section: Section, details: Mapping[str, RunDetails], comparison: Comparison
) -> tuple[Effect, ...]:
    return tuple(
        Effect(
            details[comparison.first],
            "model",
            comparison.second,
            comparison.first,
            compared.condition.only(section.varied),
            compared,
        )
        for compared in comparison.conditions
    )
