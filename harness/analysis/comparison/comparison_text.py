"""What a comparison found, in sentences to quote; and lists of pairs that were asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.length_difference import LengthDifference
from eyechart.harness.analysis.comparison.paired_curves import PairedArea
from eyechart.harness.analysis.comparison.power import FROM, smallest_fall
from eyechart.harness.analysis.comparison.signed_text import signed_end, with_ends
from eyechart.harness.analysis.findings.not_known import alike, facts, under
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.length.effective_length import limited_by
from eyechart.harness.analysis.samples.doing import VerbPhrase, doing
from eyechart.harness.settings.judging import MARGIN, Margin, factor_of
from eyechart.harness.spec import varied_label
from eyechart.providers.naming import named

Verdict: TypeAlias = Literal["limited", "further", "area", "equivalent", "lines", "open"]
_LARGER = "has the larger area"
_AT_LINES = "at single lengths"
_LEAST_P = 0.001
_WHOLE = 1000
_NEAR_ONE = 1.1
"""Factors below it have three decimals."""


def verdict_on(comparison: Comparison, margin: Margin | None) -> Verdict:
    """The first of these that holds; `None` as `margin` leaves out whether both are equivalent.

    `limited`: something else than sight limits a length. `further`, `area`, `lines`: the two differ
    in effective length, in their areas, at single lengths. `open`: nothing is shown.
    """
    if comparison.length.is_limited:
        return "limited"
    if comparison.length.further:
        return "further"
    if comparison.area is not None and comparison.area.larger:
        return "area"
    if margin is not None and comparison.change(margin) == "equivalent":
        return "equivalent"
    return "lines" if comparison.significant else "open"


def ahead_behind(comparison: Comparison) -> tuple[str, str]:
    """The two names: first who is right further, or else who has the larger area."""
    larger = 0 if comparison.area is None else comparison.area.larger
    names = comparison.first, comparison.second
    return names[::-1] if (comparison.length.further or larger) < 0 else names


def _doing(comparison: Comparison) -> VerbPhrase:
    """What the sides do that is right."""
    sides = [side for one in comparison.conditions for side in one.sides]
    return doing(sides, comparison.task)


def verdict_text(comparison: Comparison, margin: Margin | None = MARGIN) -> str:
    """The verdict in short sentences: who is right further, that the two differ, that they are
    equivalent, or that this is open; then the numbers that it follows from. `None` as `margin`
    leaves out whether they are equivalent.

    An area alone is no reason to say that a model is right further: one whose accuracy is 80 % at
    all lengths may have a larger area than one that is perfect to 70 symbols.

    Factors and differences are those of the table, of first and second of `comparison`. A side that
    is right further is named first with its length; where that is second, the others say whose they
    are.
    """
    verdict = verdict_on(comparison, margin)
    first, second = comparison.first, comparison.second
    length, area = comparison.length, comparison.area
    is_behind = length.further < 0
    factor = _factor_of_behind(comparison) if is_behind else factor_text(length)
    is_equivalent = margin is not None and comparison.change(margin) == "equivalent"
    within = "" if margin is None else _within(comparison, margin)
    despite = f"the difference counts as none: {within}" if is_equivalent else ""
    no_further = _no_further(
        length,
        factor,
        _unlimited(comparison),
        is_equivalent=is_equivalent,
        is_open=verdict == "open",
    )
    of_sides = _of_sides(comparison) if is_behind else ("", "")
    areas = "" if area is None else area_text(area, *of_sides)
    of_model = "" if comparison.model is None else f" for {comparison.model}"
    where = comparison.task
    if (count := len(comparison.conditions)) > 1:
        where += f" (mean of {count} conditions)"
    if verdict == "limited":
        said = [
            f"{first} and {second} cannot be compared on {where}: {_limits(comparison)}",
            "failures of another kind than sight are no difference of the models",
        ]
    elif verdict == "further":
        ahead, behind = ahead_behind(comparison)
        verb = f"{ahead} {_doing(comparison)} further than {behind}"
        if comparison.model is not None:
            with_both = f"further with {ahead} than with {behind}"
            verb = f"{comparison.model} {_doing(comparison)} {with_both}"
        both = _both(length.swapped if is_behind else length, comparison.unit) * (count == 1)
        to = [one for one in (both, factor) if one]
        to = to if is_behind else [", ".join(to)]
        said = [f"{verb} on {where}: {to[0]}", *to[1:], areas, despite]
    elif verdict == "area":
        differ = f"{first} and {second} differ{of_model} on {where}"
        larger = ahead_behind(comparison)[0]
        said = [f"{differ}, and {larger} {_LARGER}", areas, no_further, despite]
    elif verdict == "equivalent":
        said = [f"{first} and {second} are equivalent{of_model} on {where}"]
        of_lengths = margin is not None and factor_of(margin) is not None
        said += [no_further, within] if of_lengths else [within, no_further]
    elif verdict == "lines":
        said = [f"{first} and {second} differ{of_model} on {where} {_AT_LINES}", no_further]
        said += [areas, within]
    else:
        differ = f"It is open whether {first} and {second} differ"
        said = [f"{differ}{of_model} on {where}", no_further, areas, within]
    if comparison.significant or not comparison.lines or verdict in ("limited", "lines", "open"):
        said.append(_of_lines(comparison))
    said.append(_each_way(comparison))
    if comparison.other_tests and any("95 %" in one for one in said):
        said.append("intervals are those of this pair alone, without a correction for the others")
    return _sentences(said)


def _sentences(said: Sequence[str]) -> str:
    """Each text as a sentence; the first one may begin with a name, and stays as it is."""
    first, *others = filter(None, said)
    return f"{'. '.join([first, *(f'{one[:1].upper()}{one[1:]}' for one in others)])}."


def margin_text(margin: Margin, *comparisons: Comparison) -> str:
    """`5 points, a factor of 1.26 in length over these lines`; from the least to the most where
    comparisons have other lines. What is given alone, where none of them has areas or lines of two
    lengths.
    """
    if (given := factor_of(margin)) is not None:
        return f"a factor of {given:g} in length"
    with_areas = [one for one in comparisons if one.area is not None]
    factors = [factor for one in with_areas if (factor := one.factor(margin)) is not None]
    points = f"{100 * float(margin):.3g} points"
    if not with_areas or len(factors) < len(with_areas):
        return points
    return f"{points}, a factor of {_from_to(factors)} in length over these lines"


def _from_to(factors: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(map(_factor, (min(factors), max(factors)))))


def _factor(factor: float) -> str:
    return f"{factor:.4g}" if factor < _NEAR_ONE else number_text(factor)


def _within(comparison: Comparison, margin: Margin) -> str:
    """How the difference lies to the margin, or why that is not tested."""
    not_tested = "whether the two are equivalent is not tested"
    if not comparison.is_paired:
        return f"areas are compared on the same rows only, so {not_tested}"
    if not math.isfinite(comparison.points(margin)):
        return (
            f"all lines have one length, so no factor of length is known, and {not_tested}: give a "
            f"share as {named('margin')}"
        )
    if comparison.is_at_floor(margin):
        return (
            "nearly all answers of both are wrong or guesses, so none can fall by more than the "
            f"margin ({margin_text(margin, comparison)}). Ask shorter rows or an easier task, or "
            f"give a smaller {named('margin')}"
        )
    if (factor := factor_of(margin)) is not None:
        _, low, high = comparison.in_margins(margin)
        lies = "lies" if low > -1 and high < 1 else "is not shown to lie"
        return f"the factor of length {lies} within the margin of {factor:g}"
    if comparison.area is None:
        lengths = f"{named('margin', '1.5x')} holds the lengths"
        return f"adaptive samples have no area, so {not_tested}: {lengths} against a factor"
    from_, to = (signed_end(100 * end, 1) for end in comparison.area.equivalence_ci)
    return (
        f"their areas differ by {from_} to {to} points (90 % interval, {comparison.first} minus "
        f"{comparison.second}). The margin is {margin_text(margin, comparison)}"
    )


def _each_way(comparison: Comparison) -> str:
    """That each side is better somewhere; empty if it is not so."""
    is_worse = {line.difference > 0 for line in comparison.significant}
    is_worse |= {comparison.length.further > 0} if comparison.length.further else set()
    return "each is better somewhere, which counts as worse" if len(is_worse) > 1 else ""


def _limits(comparison: Comparison) -> str:
    """Which side something else than sight limits, and where; empty if it limits none."""
    conditions = [compared.condition for compared in comparison.conditions]
    texts = []
    for place, name in enumerate((comparison.first, comparison.second)):
        limits = {
            varied_label(compared.condition, conditions): limit
            for compared in comparison.conditions
            if not (limit := compared.length.limits[place]).is_ranked
        }
        for group in alike(limits):
            by = limited_by(next(iter(group.values())).by)
            where = under(list(group), len(conditions))
            texts.append(f"{name} is {by}{where} ({facts(group.values())})")
    return "; ".join(texts)


def area_text(area: PairedArea, of_first: str = "", of_second: str = "") -> str:
    """Both areas, and first minus second; with the texts of `_of_sides` whose they are."""
    difference, low, high = with_ends(area.difference, area.difference_ci, 2)
    first = " ".join(filter(None, ("area", of_first, f"{area.first:.2f}")))
    second = " ".join(filter(None, (f"{area.second:.2f}", of_second)))
    return (
        f"{first} against {second}, difference {difference} (95 % interval {low} to {high}, "
        f"p {p_text(area.p)})"
    )


def factor_text(length: LengthDifference) -> str:
    """The factor between two effective lengths with its interval, which alone is said where the
    factor is not known.
    """
    if (middle := length.factors[0]) is None:
        return f"a factor of {factor_span(length)} (95 %)"
    return f"a factor of {number_text(middle)} ({_interval(length)})"


def factor_span(length: LengthDifference) -> str:
    """`1.41 to 2.83`, `at least 1.41`, `at most 2.83`, `not limited`: an interval of factors."""
    _, low, high = length.factors
    if low is not None and high is not None:
        return f"{number_text(low)} to {number_text(high)}"
    if low is not None:
        return f"at least {number_text(low)}"
    return "not limited" if high is None else f"at most {number_text(high)}"


def number_text(value: float) -> str:
    """`0.500`, `3.20`, `28.5`, `1,230`: a factor with its three digits."""
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:#.3g}".rstrip(".")


def _interval(length: LengthDifference) -> str:
    """`95 % interval 1.41 to 2.83`, `95 %: at least 1.41`."""
    is_limited = None not in length.factors[1:]
    return f"95 %{' interval' if is_limited else ':'} {factor_span(length)}"


def _of_sides(comparison: Comparison) -> tuple[str, str]:
    """`of tiny`, or of a model's conditions `with separator=none`."""
    word = "of" if comparison.model is None else "with"
    return f"{word} {comparison.first}", f"{word} {comparison.second}"


def _factor_of_behind(comparison: Comparison) -> str:
    """The factor where second comes first in the sentence: which length it is of, since it is that
    of the table, and mostly below 1.
    """
    length = comparison.length
    of_first, of_second = _of_sides(comparison)
    if length.factors[0] is None:
        return f"the length {of_first} is {factor_span(length)} times that {of_second} (95 %)"
    middle = number_text(length.factors[0])
    return f"the length {of_first} is {middle} times that {of_second} ({_interval(length)})"


def _unlimited(comparison: Comparison) -> str:
    """Where and why the factor between the effective lengths has no limit; empty if it has one."""
    if math.isfinite(comparison.length.low) or math.isfinite(comparison.length.high):
        return ""
    conditions = comparison.conditions
    of_both = {
        tuple(side and side.sign for side in (compared.length.first, compared.length.second))
        for compared in conditions
    }
    if of_both == {(">", ">")}:
        return "both effective lengths lie beyond the longest line"
    if of_both == {("<", "<")}:
        return "both effective lengths lie below the shortest line"
    outside = [
        compared
        for compared in conditions
        if not (math.isfinite(compared.length.low) and math.isfinite(compared.length.high))
    ]
    where = f" under {len(outside)} of {len(conditions)} conditions" * (len(conditions) > 1)
    return f"effective lengths tell nothing, as they may lie beyond the tested lines{where}"


def _both(length: LengthDifference, unit: str) -> str:
    """`to 26 symbols against 8`; empty where a length is not known."""
    if length.first is None or length.second is None:
        return ""
    return f"to {length.first.counted(unit)} against {length.second.words}"


def _no_further(
    length: LengthDifference, factor: str, unlimited: str, *, is_equivalent: bool, is_open: bool
) -> str:
    """Why the sentence does not say that one side is right further. Where the areas are shown to be
    equivalent, the factor may still be wide: a length is a point of a curve, an area all of it.
    """
    if not length.one_threshold:
        return "no effective lengths to compare, since at least one side has no single threshold"
    if unlimited:
        return unlimited
    if is_equivalent:
        return f"their effective lengths differ by {factor}"
    text = "no difference in effective length was found"
    if not is_open:
        text = "effective lengths alone do not show it"
    text += f": {factor}"
    if math.isfinite(length.detectable):
        text += f". A factor of {length.detectable:.1f} would have been found with a power of 80 %"
    return text


def _of_lines(comparison: Comparison) -> str:
    """The lines whose accuracies differ, or the differences that they could have shown."""
    tests = comparison.lines
    test = "McNemar" if comparison.is_paired else "Fisher"
    if comparison.significant:
        named_so = Counter(line.length for line in {line.line for line, _ in tests})
        lines = sorted({line.line for line in comparison.significant})
        lengths = [str(one.length if named_so[one.length] == 1 else one) for one in lines]
        p_values = [p for _, p in tests if p < SIGNIFICANT]
        p = " to ".join(dict.fromkeys(map(p_text, (min(p_values), max(p_values)))))
        return (
            f"accuracy differs at length{'s' * (len(lengths) > 1)} {', '.join(lengths)} "
            f"(p {p}, exact {test} with Holm's correction for {_tests(comparison)})"
        )
    if not tests:
        return "no line is in both"
    if not comparison.is_paired:
        return (
            f"no single line shows a difference (exact {test} with Holm's correction for "
            f"{_tests(comparison)})"
        )
    least, most = (find(line.n for line, _ in tests) for find in (min, max))
    pairs = (
        f"{most} pair{'s' * (most != 1)}"
        if least == most
        else f"the {most} pairs of the largest line"
    )
    return (
        "no single line shows a difference (exact McNemar with Holm's correction). With "
        f"{pairs} and {_tests(comparison)} "
        f"{_can_show(most, len(tests) + comparison.other_tests)}"
    )


def _can_show(pairs: int, tests: int) -> str:
    """What a line of so many pairs shows with a power of 80 %, beside so many tests."""
    if 2 * 0.5**pairs >= SIGNIFICANT / tests:
        return f"no difference can reach p < {SIGNIFICANT:g}, however large"
    if (fall := smallest_fall(pairs, tests)) is None:
        return f"even a fall from {100 * FROM:.0f} % to 0 % may be missed"
    return f"a fall from {100 * FROM:.0f} % to {100 * (FROM - fall):.0f} % can be shown"


def _tests(comparison: Comparison) -> str:
    """For how many tests the p-values of lines are corrected."""
    count = len(comparison.lines) + comparison.other_tests
    return (
        f"{count:,} test{'s' * (count > 1)}{' of all compared runs' * (comparison.other_tests > 0)}"
    )


def p_text(p: float) -> str:
    """`0.012`, `< 0.001`."""
    return f"< {_LEAST_P:g}" if p < _LEAST_P else f"{p:.3f}"


def decisions(comparisons: Sequence[Comparison], margin: Margin) -> str:
    """Which of the pairs are decided, by the lengths that ranks follow from, which are equivalent,
    and in which it is open who is right further, with what is shown of them:
    `decided: a counts exactly further than b; equivalent: b and c; open: c and d (d has
    the larger area)`.
    """
    said: dict[str, list[str]] = {"decided": [], "equivalent": [], "open": []}
    decided, equivalent, undecided = said.values()
    for one in comparisons:
        both, shown = f"{one.first} and {one.second}", _shown(one, margin)
        if verdict_on(one, margin) == "further":
            ahead, behind = ahead_behind(one)
            decided.append(f"{ahead} {_doing(one)} further than {behind}")
        elif one.change(margin) == "equivalent":
            equivalent.append(f"{both}{shown}")
        elif len(comparisons) == 1:
            undecided.append(f"which of {both} {_doing(one)} further{shown}")
        else:
            undecided.append(f"{both}{shown}")
    return "; ".join(f"{name}: {', '.join(texts)}" for name, texts in said.items() if texts)


def _shown(comparison: Comparison, margin: Margin) -> str:
    """What is known, in brackets, where nobody is shown to be right further; may be empty."""
    verdict = verdict_on(comparison, margin)
    if verdict == "limited":
        return " (they cannot be compared)"
    if verdict == "area":
        counts = ", which counts as none" if comparison.change(margin) == "equivalent" else ""
        return f" ({ahead_behind(comparison)[0]} {_LARGER}{counts})"
    if verdict == "lines":
        return f" (they differ {_AT_LINES})"
    return " (no area can fall by more than the margin)" if comparison.is_at_floor(margin) else ""
