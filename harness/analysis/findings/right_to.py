"""To which lengths a model is right under the conditions of a run, and which of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb

from eyechart.harness.analysis.comparison.comparability import have_other_rows
from eyechart.harness.analysis.comparison.comparison import sides_of
from eyechart.harness.analysis.comparison.family import corrected, is_default, longest
from eyechart.harness.analysis.comparison.length_difference import (
    LengthDifference,
    Sides,
    sides_difference,
)
from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.findings.not_known import which_of
from eyechart.harness.analysis.length.effective_length import NOT_KNOWN, EffectiveLength
from eyechart.harness.analysis.length.interval import reach_text
from eyechart.harness.analysis.order.apart import ApartLength
from eyechart.harness.analysis.order.words import ANY, WORDS, OrderWords, answers_of
from eyechart.harness.analysis.samples.doing import doing
from eyechart.harness.analysis.samples.judged_run import JudgedCondition


def right_to(
    judged: Mapping[str, JudgedCondition],
    estimates: Mapping[str, EffectiveLength],
    *,
    model: str,
    task: str,
    unit: str,
    controls_left_out: bool,
) -> Finding | None:
    """To which length a model is right under the default condition; the longest length seen under
    several, and whether tests on the same rows show that it is longer; `None` where no length is
    known. The longest of several lengths is too long by chance, so it is no headline.

    `judged` and `estimates` are by the label of their condition. The best condition is compared
    with each other one, corrected for all pairs, because it is chosen by the answers.
    """
    known = {label: one for label, one in estimates.items() if one.is_ranked}
    if not known:
        return None
    best = list(known)[longest([one.length for one in known.values() if one.length])]
    default = next((label for label in known if is_default(judged[label])), "")
    if default and known[default].length == known[best].length:
        best = default
    others = [judged[label] for label in known if label != best]
    single = [judged[label] for label, one in known.items() if one.one_threshold]
    pairs = comb(len(single), 2)
    differences = _differences(judged[best], others, pairs)
    first = judged[default or best]
    return RIGHT_TO(
        model=model,
        task=task,
        verb=str(doing([first], task)),
        unit=unit,
        lengths=known,
        default=default,
        longest=best,
        near_length=first.near_length,
        near=first.run.settings.near,
        apart=first.order and first.order.apart,
        answers=answers_of(first.scored) if first.scored else "",
        conditions=len(judged),
        further_than=sum(one.further > 0 for one in differences),
        pairs=pairs,
        unpaired=sum(have_other_rows(*pair) for pair in combinations(single, 2)),
        controls_left_out=controls_left_out,
    )


def _differences(
    best: JudgedCondition, others: Sequence[JudgedCondition], pairs: int
) -> list[LengthDifference]:
    """The corrected differences of `best` and each of the others that shares samples with it."""
    sides = Sides(best.run.settings.threshold)
    found = []
    for other in others:
        other_rows = have_other_rows(best, other)
        if pair := sides_of(best, other, sides, other_rows=other_rows):
            found.append(sides_difference(*pair, paired=not other_rows))
    return corrected(found, max(pairs, len(found)))


def _words(
    *,
    model: str,
    task: str,
    verb: str,
    unit: str,
    lengths: Mapping[str, EffectiveLength],
    default: str,
    longest: str,
    near_length: EffectiveLength | None,
    near: float,
    apart: ApartLength | None,
    answers: str,
    conditions: int,
    further_than: int,
    pairs: int,
    unpaired: int,
    controls_left_out: bool,
) -> str:
    first, best = lengths[default or longest], lengths[longest]
    said = f"{model} {verb} to {length_text(first, unit)} on {task}"
    nearly, tells = _beside(first, near_length, near, apart, WORDS.get(answers, ANY))
    if conditions == 1:
        return f"{said}{nearly and f', {nearly}'}{tells and f', and {tells}'}."
    beside = " and ".join(filter(None, (nearly and f"is {nearly}", tells)))
    beside = beside and f" With {default or longest} it {beside}."
    controls = "controls are left out" if controls_left_out else ""
    note = f" ({controls})" if controls else ""
    assert best.length is not None  # it is known
    equal = [label for label, one in lengths.items() if one.length == best.length]
    if len(equal) == len(lengths) > 1 and best.length.sign != "=":
        texts = dict.fromkeys(length_text(one, unit) for one in lengths.values())
        found = best.length.counted(unit) if len(texts) > 1 else next(iter(texts))
        under = f"under {which_of(len(lengths), conditions)}"
        return f"{model} {verb} to {found} on {task} {under}{note}.{beside}"
    headline = f"{said} with {default or longest}{', the default' if default else ''}"
    if len(lengths) == 1:
        return f"{said} with {longest}{note}.{beside}"
    others, equal = len(lengths) - 1, [label for label in equal if label != longest]
    how = "; ".join(filter(None, (correction(pairs, unpaired), controls)))
    tail = f"{_shown(further_than, others)} ({how})."
    which = f"with {equal[0]}" if len(equal) == 1 else f"under {len(equal)} other conditions"
    if len(equal) == others:
        return f"{headline}, and as far {which.replace('under', 'under the')}. {tail}{beside}"
    also = f", and as long {which}" if equal else ""
    longest_of = f"longest length seen under {len(lengths)} conditions"
    if default == longest:
        return f"{headline}, the {longest_of}{also}. {tail}{beside}"
    best_text = f"{length_text(best, unit)}, with {longest}{also}"
    if not default:
        return f"The {longest_of} by {model} on {task} is {best_text}. {tail}{beside}"
    return f"{headline}; the {longest_of} is {best_text}. {tail}{beside}"


def _beside(
    exact: EffectiveLength,
    near_length: EffectiveLength | None,
    near: float,
    apart: ApartLength | None,
    words: OrderWords,
) -> tuple[str, str]:
    """`within 5 % to 323 (154 to 521)`, and `distinguishes rows that differ by a fifth, beyond
    1157, the longest pair tested (95 % interval from 741)`; empty where answers have no such
    length, and of what says no more.
    """
    nearly = tells = ""
    found = near_length
    if found is not None and found.length and (found.dips or found.length != exact.length):
        nearly = words.near.format(share=f"{100 * near:g}")
        nearly += f" {reach_text(found.length, found.length_ci)}"
        if (
            found.dips
        ):  # as where long answers are rounded: the same step is a smaller share of them
            nearly += f" and again beyond {found.dips[-1][1]:,}"
    if apart is not None and apart.length is not None and apart.length.sign != "<":
        cue = " (by count or length of prompt)" * apart.by_length
        tells = f"{words.apart}{cue}, {reach_text(apart.length, apart.length_ci, words.longest)}"
    return nearly, tells


RIGHT_TO = Kind(
    "effective length",
    "result",
    "to which length the model is right: under the default condition, and under which one longest",
    _words,
)


def length_text(estimate: EffectiveLength, unit: str) -> str:
    """`29 symbols (95 % interval 21 to 39)`, `less than 5 symbols (95 % interval < 5 to 65)`. That
    rows are few stands beside the length in every table.
    """
    interval = estimate.span and f"95 % interval {estimate.span}"
    inside = ", ".join(filter(None, (interval, estimate.threshold_note)))
    text = NOT_KNOWN if estimate.length is None else estimate.length.counted(unit)
    return text + (f" ({inside})" if inside else "")


def _shown(shorter: int, others: int) -> str:
    if not shorter:
        return f"No difference from the other condition{'s' * (others > 1)} is shown"
    which = f"{'each' if shorter == others else shorter} of the {others} other conditions"
    which = which if others > 1 else "the other condition"
    return f"Tests show that it is longer than with {which}"


def correction(pairs: int, unpaired: int = 0) -> str:
    """How the pairs were compared: with which correction, and how many on other rows."""
    if not pairs:
        return "no pair can be compared"
    rows = "same rows"
    if unpaired:
        rows = "unpaired: other rows"
        rows += f" in {unpaired:,} of {pairs:,} pairs" if unpaired < pairs else ""
    return rows if pairs == 1 else f"{rows}, Holm's correction for {pairs:,} pairs"
