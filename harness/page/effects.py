"""What moved the breaking point: paired differences between the values of each axis, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.page.details import Shown
from harness.page.studies import Series, Study, key_of
from harness.spec import Condition
from harness.stats import Bound, Paired, PairedArea, Sight, compare_pairs, holm, paired


@dataclass(frozen=True)
class Effect:
    """One value of an axis against the first, all else equal, on the same samples."""

    shown: Shown
    axis: str
    baseline: str
    value: str
    others: Condition
    """The values of the other axes that the study varies."""
    compared: Paired
    """The value first, the baseline second."""
    adjusted: tuple[float, ...]
    """Holm's p-values, over the lengths."""
    before: Sight
    after: Sight

    @property
    def where(self) -> str:
        """The others in words, empty if there are none."""
        return ", ".join(f"{axis} {value}" for axis, value in self.others.items())

    @property
    def area(self) -> PairedArea:
        """Under the curves of both."""
        return self.compared.area

    @property
    def moved(self) -> bool:
        """Whether the interval of the area's difference leaves out zero."""
        low, high = self.area.difference_ci
        return low > 0 or high < 0


def effects(study: Study) -> list[Effect]:
    """Every value of every varied axis against the first that was run."""
    return [
        effect
        for shown in study.runs
        for axis in study.varied
        for effect in _of_axis(study, shown, axis)
    ]


def _of_axis(study: Study, shown: Shown, axis: str) -> Iterator[Effect]:
    mine = [series for series in study.series if series.shown is shown]
    rest = [other for other in study.varied if other != axis]
    groups: dict[tuple[str, ...], dict[str, Series]] = {}
    for series in mine:
        held = tuple(series.condition[other] for other in rest)
        groups.setdefault(held, {})[series.condition[axis]] = series
    for held, by_value in groups.items():
        run = [value for value in study.axes[axis] if value in by_value]
        for value in run[1:]:
            others = dict(zip(rest, held, strict=True))
            effect = _effect(study, by_value[run[0]], by_value[value], axis, others)
            if effect is not None:
                yield effect


def _effect(
    study: Study, base: Series, other: Series, axis: str, others: Condition
) -> Effect | None:
    """`None` where no pair was scored."""
    pair = paired(other.rows, base.rows)
    if pair is None:
        return None
    compared = compare_pairs(pair)
    adjusted = tuple(holm([row.p for row in compared.lengths]))
    sights = study.sights[key_of(base)], study.sights[key_of(other)]
    names = base.condition[axis], other.condition[axis]
    return Effect(base.shown, axis, *names, others, compared, adjusted, *sights)


def _order(bound: Bound) -> float:
    return {"<": 0.0, "=": bound.length, ">": 2 * bound.length}[bound.sign]


def finding(study: Study, shown: Shown, found: list[Effect]) -> str:
    """One sentence or two: what moved the breaking point of a model, and by how much."""
    mine = [effect for effect in found if effect.shown is shown]
    if not any(key_of(series)[0] == shown.name for series in study.series if series.curve):
        return f"{shown.name} has no scored sample here."
    if not mine:
        reached = [
            str(study.sights[key_of(series)].effective_length)
            for series in study.series
            if series.shown is shown and series.curve is not None
        ]
        only = f" under {len(reached)} conditions" if len(reached) > 1 else ""
        return (
            f"The effective length of {shown.name} is {' / '.join(dict.fromkeys(reached))}{only}."
        )
    moved = sorted(
        (effect for effect in mine if effect.moved),
        key=lambda effect: -abs(effect.area.difference),
    )
    first: dict[str, Effect] = {}
    for effect in moved:
        first.setdefault(effect.axis, effect)
    said = [_moved(effect) for effect in first.values()]
    still = [axis for axis in study.varied if axis not in first and _tried(mine, axis)]
    if still:
        said.append(_unmoved(shown.name, still, mine, also=bool(said)))
    return " ".join(said)


def _tried(found: list[Effect], axis: str) -> bool:
    return any(effect.axis == axis for effect in found)


def _moved(effect: Effect) -> str:
    before, after = effect.before.effective_length, effect.after.effective_length
    where = f" (with {effect.where})" if effect.where else ""
    name = effect.axis.replace("_", " ").capitalize()
    if before == after:
        up = effect.area.difference > 0
        return (
            f"{name} {'raises' if up else 'lowers'} the accuracy of {effect.shown.name}{where} "
            f"from {effect.baseline} to {effect.value} by {size_text(effect.area)}, but the "
            f"effective length stays {before}."
        )
    further = _order(after) > _order(before)
    link = "but" if further != (effect.area.difference > 0) else "and"
    return (
        f"{name} moves the effective length of {effect.shown.name}{where} from {before} "
        f"({effect.baseline}) to {after} ({effect.value}), {link} accuracy by "
        f"{change_text(effect.area)}."
    )


def _unmoved(model: str, axes: list[str], found: list[Effect], *, also: bool) -> str:
    largest = max(
        (effect for effect in found if effect.axis in axes),
        key=lambda effect: abs(effect.area.difference),
    )
    names = " nor ".join(axis.replace("_", " ") for axis in axes)
    begin = f"Neither {names} moved" if len(axes) > 1 else f"{names.capitalize()} did not move"
    whose = "it" if also else f"the breaking point of {model}"
    return f"{begin} {whose} measurably: {change_text(largest.area)} at most."


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


def comparison(study: Study) -> str:
    """Who sees furthest and who least under the first condition that all were asked under; empty
    for one model.
    """
    by_condition: dict[str, dict[str, Sight]] = {}
    for (model, condition), sight in study.sights.items():
        by_condition.setdefault(condition, {})[model] = sight
    models = {shown.name for shown in study.runs}
    shared = [sights for sights in by_condition.values() if set(sights) == models]
    if not shared or len(models) == 1:
        return ""
    ranked = sorted(shared[0].items(), key=lambda pair: (-_reach(pair[1]), -pair[1].area))
    (best, far), (worst, near) = ranked[0], ranked[-1]
    label = next(name for name, sights in by_condition.items() if sights is shared[0])
    varied = [part for part in label.split(",") if part.partition("=")[0] in study.varied]
    where = f" with {', '.join(varied).replace('=', ' ')}" if varied else ""
    if far.effective_length == near.effective_length:
        return f"All see as far{where}: {far.effective_length}."
    return (
        f"{best} sees furthest{where}, to {far.effective_length}; "
        f"{worst} least far, to {near.effective_length}."
    )


def _reach(sight: Sight) -> float:
    return _order(sight.effective_length)
