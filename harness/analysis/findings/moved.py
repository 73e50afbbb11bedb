"""What moved the effective length of a model: which values of its axes, and by how much."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from eyechart.harness.analysis.comparison.effects import Effect, effects
from eyechart.harness.analysis.comparison.signed_text import signed_end
from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.length.effective_length import EffectiveLength, limited_by
from eyechart.harness.analysis.samples.doing import doing
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.analysis.tables.tokens_text import confounded
from eyechart.harness.spec import Condition

_MOST_EFFECTS = 2
"""Most effects that a sentence names; the tables have all of them."""


def moved(
    run: JudgedRun,
    model: str,
    conditions: Collection[Condition] | None = None,
) -> Iterator[Finding]:
    """The strongest effects of axes, and of which axes none is shown or known; nothing where no two
    conditions can be compared.
    """
    fair = [one for one in effects(run, model, conditions) if one.fair]
    if not fair:
        return
    about = {"model": model, "verb": str(doing(fair[0].compared.sides, run.manifest.task))}
    strongest: dict[str, Effect] = {}
    for effect in sorted(
        (one for one in fair if one.moved), key=lambda one: (-abs(one.shift), -one.area_size)
    ):
        strongest.setdefault(effect.axis, effect)
    if strongest:
        yield MOVED(**about, changes=[*map(_change, strongest.values())][:_MOST_EFFECTS])
    unmoved = [one for one in fair if not one.is_limited and one.axis not in strongest]
    limited = [one for one in fair if one.is_limited]
    if unmoved or limited:
        ends = [end for one in unmoved if one.area for end in one.area.difference_ci]
        yield NOT_MOVED(
            **about,
            axes=list(dict.fromkeys(one.axis for one in unmoved)),
            areas=sum(one.area is not None for one in unmoved),
            span=[min(ends), max(ends)] if ends else [],
            limited=[*map(_limited, limited)],
        )


def _change(effect: Effect) -> dict[str, Any]:
    """An effect as facts: of its values, of both lengths and areas, and of one length."""
    area, axis = effect.area, _plain(effect.axis)
    names = f"{axis} {effect.value}", f"{axis} {effect.baseline}"
    return {
        **_named(effect),
        "further": effect.further,
        "before": effect.before,
        "after": effect.after,
        "area": None if area is None else [area.difference, *area.difference_ci],
        "line": _largest_line(effect),
        "tokens": confounded([effect.compared.tokens], names, effect.run.spec.unit),
    }


def _limited(effect: Effect) -> dict[str, Any]:
    """An effect that is not known, and what limits each side."""
    sides = zip((effect.value, effect.baseline), effect.compared.length.limits, strict=True)
    return {
        **_named(effect),
        "limited_by": {value: limit.by for value, limit in sides if not limit.is_ranked},
    }


def _named(effect: Effect) -> dict[str, str]:
    return {
        "axis": effect.axis,
        "value": effect.value,
        "baseline": effect.baseline,
        "where": effect.where,
    }


def _largest_line(effect: Effect) -> list[Any]:
    """The line, as a text, of the largest significant change in the direction of the effect, after
    the correction, and that change; empty if there is none.
    """
    sign = effect.further or (effect.area.larger if effect.area else 0)
    lines = [
        line for line, p in effect.compared.lines if p < SIGNIFICANT and sign * line.difference > 0
    ]
    if not lines:
        return []
    largest = max(lines, key=lambda line: abs(line.difference))
    return [str(largest.line), largest.difference]


def _moved(*, model: str, verb: str, changes: Sequence[Mapping[str, Any]]) -> str:
    return " ".join(_move(model, verb, **change) for change in changes)


def _move(
    model: str,
    verb: str,
    *,
    further: int,
    before: EffectiveLength,
    after: EffectiveLength,
    area: Sequence[float] | None,
    line: Sequence[Any],
    tokens: str,
    **named: str,
) -> str:
    rest = f"; {tokens}" if tokens else ""
    if line:
        length, change = line
        rises = "rises" if change > 0 else "falls"
        points = f"{abs(100 * change):.0f} points"
        rest = f"; at length {length} its accuracy {rises} by {points}{rest}"
    if further or area is None:
        how = "further" if further > 0 else "less far"
        return f"{_with(**named)}, {model} {verb} {how}: to {after} instead of {before}{rest}."
    return (
        f"{_with(**named)}, no difference in effective length is shown for {model} ({after} and "
        f"{before}), but its area is {'larger' if area[0] > 0 else 'smaller'}: a difference of "
        f"areas of {size_text(*area)}{rest}."
    )


MOVED = Kind(
    "moved",
    "result",
    "which values of axes move the effective length, or the area, and by how much",
    _moved,
)


def _not_moved(
    *,
    model: str,
    verb: str,
    axes: Sequence[str],
    areas: int,
    span: Sequence[float],
    limited: Sequence[Mapping[str, Any]],
) -> str:
    said = []
    if axes:
        text = f"No change of {_either(axes)} shows a difference in how far {model} {verb}"
        if span:
            low, high = (signed_end(100 * end) for end in span)
            which = (
                "s of its differences of areas lie"
                if areas > 1
                else " of its difference of areas lies"
            )
            text += f" or in its area; the 95 % interval{which} within {low} to {high} points"
        said.append(f"{text}.")
    unknown = f"it is not known whether {model} {verb} further"
    if len(limited) == 1:
        ((by, named),) = [(one["limited_by"], {**one}) for one in limited]
        del named["limited_by"]
        why = " and ".join(f"{value} is {limited_by(limit)}" for value, limit in by.items())
        said.append(f"{_with(**named)}, {unknown}: {why}.")
    elif limited:
        said.append(
            f"For {len(limited)} changes of {_either([one['axis'] for one in limited])} {unknown}: "
            "something else than sight limits a length."
        )
    return " ".join(said)


NOT_MOVED = Kind(
    "not moved",
    "note",
    "axes of which no value is shown to move the effective length, or of which this is not known",
    _not_moved,
)


def _with(*, axis: str, value: str, baseline: str, where: str) -> str:
    under = f" ({where})" if where else ""
    return f"With {_plain(axis)} {value} instead of {baseline}{under}"


def _either(axes: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(map(_plain, axes)))


def _plain(axis: str) -> str:
    return axis.replace("_", " ")


def size_text(difference: float, low: float, high: float) -> str:
    """`34 points (30 to 38)`: the size of a difference of areas, in points of accuracy."""
    ends = (-high, -low) if difference < 0 else (low, high)
    values = [100 * share for share in (abs(difference), *ends)]
    digits = 1 if any(0 < abs(value) < 1 for value in values) else 0
    middle, low_text, high_text = (signed_end(value, digits).lstrip("+") for value in values)
    return f"{middle} points ({low_text} to {high_text})"
