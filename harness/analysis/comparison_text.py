"""What a comparison found, in sentences to quote."""

from __future__ import annotations

import math

from eyechart.harness.analysis.comparison import Change, Comparison
from eyechart.harness.analysis.effective_length import limited_by
from eyechart.harness.analysis.factor import factors, number_text
from eyechart.harness.analysis.further import LengthDifference
from eyechart.harness.analysis.not_known import alike, facts, under
from eyechart.harness.analysis.paired import PairedArea
from eyechart.harness.analysis.power import FROM, smallest_fall
from eyechart.harness.analysis.signed import signed
from eyechart.harness.analysis.tokens_text import tokens_text
from eyechart.harness.spec import varied_label

UNPAIRED = "unpaired: the replies are to different rows"
_CHANGES: dict[Change, str] = {
    "worse": "{second} is worse than {first}",
    "better": "{second} is better than {first}",
    "equivalent": "{second} and {first} are equivalent",
    "undecided": "It is open whether {second} is worse than {first}",
}


def finding(comparison: Comparison) -> str:
    """One sentence: who sees further, has the larger area, or that no difference was found.

    An area alone is no reason to say that a model sees further: a model whose accuracy is 80 % at
    all lengths may have a larger area than one that is perfect to 70 symbols.
    """
    length, area = comparison.length, comparison.area
    open_ends = _unlimited(comparison)
    larger = 0 if area is None else area.larger
    ahead, behind = comparison.first, comparison.second
    if (length.further or larger) < 0:
        ahead, behind, length = behind, ahead, length.swapped
        area = None if area is None else area.swapped
    count = len(comparison.conditions)
    where = comparison.task + (f" (mean of {count} conditions)" if count > 1 else "")
    model = comparison.model
    if limited := _limits(comparison):
        sentence = (
            f"{comparison.first} and {comparison.second} cannot be compared on {where}: {limited}"
        )
    elif length.further:
        verb = f"{ahead} sees further than {behind}"
        if model is not None:
            verb = f"{model} sees further with {ahead} than with {behind}"
        sentence = f"{verb} on {where}: {_lengths(length, count, comparison.length_unit)}"
    elif area is not None and larger:
        verb = f"{ahead} has a larger area than {behind}"
        if model is not None:
            verb = f"{model} has a larger area with {ahead} than with {behind}"
        sentence = f"{verb} on {where}: {area_text(area)}; {_no_further(length, open_ends)}"
    else:
        of_model = "" if model is None else f" for {model}"
        sentence = (
            f"No difference found between {ahead} and {behind}{of_model} on {where}: "
            f"{_no_further(length, open_ends)}"
        )
        if area is not None:
            sentence += f"; {area_text(area)}"
    rows = "" if comparison.is_paired else f"; {UNPAIRED}"
    tokens = tokens_text(comparison)
    tokens = tokens and f"; {tokens}"
    return f"{sentence}; {_of_lines(comparison)}{_of_adaptive(comparison)}{rows}{tokens}."


def _limits(comparison: Comparison) -> str:
    """Which side is limited by something else than sight, under which conditions; empty if both are
    limited by sight.
    """
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


def change_sentence(comparison: Comparison, margin: float) -> str:
    """One sentence: whether second is worse than, better than or equivalent to first."""
    change = comparison.change(margin)
    equivalent, differing = change == "equivalent", comparison.significant
    verdict = _CHANGES[change].format(first=comparison.first, second=comparison.second)
    if comparison.length.is_limited:
        return f"{verdict}: failures of another kind than sight are no difference of the models."
    if not comparison.is_paired:
        return (
            f"{verdict}: areas are compared on the same rows only, so whether the two are "
            "equivalent is not tested."
        )
    if comparison.area is None:
        return (
            f"{verdict}: adaptive samples have no area, so whether the two are equivalent is not "
            "tested; full runs of both can show it."
        )
    low, high = (signed(100 * end, 1) for end in comparison.area.equivalence_ci)
    return (
        f"{verdict}: their areas differ by {low} to {high} points (first minus second, "
        f"90 % interval), and the margin is {100 * margin:g} points"
        + (", also on every line that differs significantly" if equivalent and differing else "")
        + "."
    )


def area_text(area: PairedArea) -> str:
    """Both areas and their difference with its interval."""
    low, high = (signed(end, 2) for end in area.difference_ci)
    return (
        f"area {area.first:.2f} against {area.second:.2f}, difference "
        f"{signed(area.difference, 2)} (95 % interval {low} to {high})"
    )


def factor_text(length: LengthDifference) -> str:
    """The factor between two effective lengths with its interval, as far as they are limited."""
    middle, low, high = (None if one is None else number_text(one) for one in factors(length))
    if low is None and high is None:
        return "a factor that the answers limit in neither direction"
    interval = (
        f"95 % interval {low} to {high}"
        if low is not None and high is not None
        else f"95 %: at least {low}"
        if low is not None
        else f"95 %: at most {high}"
    )
    if middle is None:
        limit = "upper" if low is not None else "lower"
        return f"a factor without {limit} limit ({interval})"
    return f"a factor of {middle} ({interval})"


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
    return (
        "no difference in effective length was found, and none can be, as effective lengths may "
        f"lie beyond the tested lines{where}"
    )


def _lengths(length: LengthDifference, conditions: int, unit: str) -> str:
    """Both effective lengths and the factor; the factor alone over several conditions."""
    if conditions > 1:
        return factor_text(length)
    if length.first is None or length.second is None:
        return factor_text(length)
    first, second = length.first.counted(unit), length.second.words
    return f"to {first} against {second}, {factor_text(length)}"


def _no_further(length: LengthDifference, unlimited: str) -> str:
    """Why the sentence does not say that one side sees further."""
    if not length.one_threshold:
        return "no effective lengths to compare, since at least one side has no single threshold"
    if unlimited:
        return unlimited
    text = f"no difference in effective length was found, {factor_text(length)}"
    if math.isfinite(length.detectable):
        text += f", where {length.detectable:.1f} would have been found with a power of 80 %"
    return text


def _of_lines(comparison: Comparison) -> str:
    """The lines whose accuracies differ, or the differences that they could have shown."""
    tests = comparison.lines
    test = "McNemar" if comparison.is_paired else "Fisher"
    significant = sorted({line.length for line in comparison.significant})
    if significant:
        least = min(p for _, p in tests)
        lengths = ", ".join(map(str, significant))
        return (
            f"accuracy differs at length{'s' * (len(significant) > 1)} {lengths} "
            f"(p {_at_least(least)}, exact {test} with Holm's correction for {len(tests)} "
            f"test{'s' * (len(tests) > 1)})"
        )
    if not tests:
        return "no line is in both"
    if not comparison.is_paired:
        return (
            f"no single line shows a difference (exact {test} with Holm's correction for "
            f"{len(tests)} test{'s' * (len(tests) > 1)})"
        )
    least, most = (find(line.n for line, _ in tests) for find in (min, max))
    fall = smallest_fall(most, len(tests))
    shown = (
        "nothing"
        if fall is None
        else f"a fall from {100 * FROM:.0f} % to {100 * (FROM - fall):.0f} %"
    )
    pairs = (
        f"{most} pair{'s' * (most != 1)}"
        if least == most
        else f"the {most} pairs of the largest line"
    )
    return (
        "no single line shows a difference (exact McNemar with Holm's correction: "
        f"{pairs} and {len(tests)} test{'s' * (len(tests) > 1)} can show {shown})"
    )


def _of_adaptive(comparison: Comparison) -> str:
    """Which samples a comparison of adaptive runs uses; empty if no side is adaptive."""
    conditions = comparison.conditions
    adaptive = [one for one in conditions if one.adaptive and one.is_paired]
    if not adaptive:
        return ""
    pairs = sum(line.n for compared in adaptive for line in compared.paired.lengths)
    which = f" under {len(adaptive)} of {len(conditions)} conditions" * (len(conditions) > 1)
    return (
        f"; at least one side is adaptive{which}, so only the {pairs:,} samples that both sides "
        "have there are compared, and no areas"
    )


def _at_least(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"from {p:.3f}"  # noqa: PLR2004  as is usual
