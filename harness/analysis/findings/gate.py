"""The findings of a gate: those of its comparison, and what has changed since the baseline."""

from __future__ import annotations

from dataclasses import replace

from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.gate import BASELINE, UNJUDGED, Gated
from eyechart.harness.analysis.findings.finding import Finding, Kind, in_order
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.spec import varied_label

_MOST_NAMED = 3
"""Conditions up to which each has its lengths in the sentence."""


def of_gate(gated: Gated, *, was_asked: bool) -> list[Finding]:
    """What became of the run, why, what is missing, and what it shows by itself. `was_asked`: this
    command asked it samples of the baseline.
    """
    shown = shown_of(gated)
    is_judged = gated.verdict not in UNJUDGED
    has_reason = is_judged or shown.is_at_floor(gated.margin)
    is_whole = not gated.without and not any(one.adaptive for one in shown.conditions)
    found = [
        SINCE(comparison=shown, is_whole=is_whole),
        *map(_capital, of_pair(shown, gated.margin if has_reason else None)),
    ]
    if gated.without:
        remedy = ""
        if not gated.is_decided:
            remedy = (
                "the same command asks on"
                if was_asked
                else "ask it with the same lengths, conditions and samples, or add --ask"
            )
        found.append(WITHOUT_PARTNER(remedy, without=gated.without, samples=gated.samples))
    return in_order(found)


def _capital(finding: Finding) -> Finding:
    """A sentence that begins with the baseline, in place of a name, as any other sentence."""
    is_name = not finding.sentence.startswith(BASELINE)
    sentence = finding.sentence if is_name else f"T{finding.sentence[1:]}"
    return replace(finding, sentence=sentence)


def shown_of(gated: Gated) -> Comparison:
    """The comparison that a gate shows: of a run that is worse, that of the conditions by which."""
    return (gated.by_sight if gated.verdict == "worse" else None) or gated.comparison


def lengths_text(comparison: Comparison) -> str:
    """`23 instead of 39 words`; empty where a length is not known, or something else than sight
    limits it, and of many conditions with different ones.
    """
    conditions = [one.condition for one in comparison.conditions]
    texts: dict[str, str] = {}
    for compared in comparison.conditions:
        length = compared.length
        if length.is_limited or length.first is None or length.second is None:
            return ""
        before = length.first.counted(comparison.unit)
        is_same = length.first == length.second
        text = f"{before} as before" if is_same else f"{length.second.words} instead of {before}"
        texts[varied_label(compared.condition, conditions)] = text
    if len(set(texts.values())) == 1:
        (text,) = set(texts.values())
        return f"{text} under all {len(texts)} conditions" if len(texts) > 1 else text
    if len(texts) > _MOST_NAMED:
        return ""
    return " and ".join(f"{text} with {label}" for label, text in texts.items())


def shares_text(comparison: Comparison) -> str:
    """`49 % instead of 63 %`: how much of the rows that both were asked is right."""
    before, now = (
        f"{100 * sum(one.correct.sum() for one in side) / _rows(comparison):.0f} %"
        for side in zip(*(compared.paired.pair for compared in comparison.conditions), strict=True)
    )
    return f"{now} as before" if now == before else f"{now} instead of {before}"


def _rows(comparison: Comparison) -> int:
    return sum(int(one.paired.pair[0].scored.sum()) for one in comparison.conditions)


def _since(*, comparison: Comparison, is_whole: bool) -> str:
    rows = "all rows" if is_whole else f"{_rows(comparison):,} rows of both"
    shares = f"of {rows} {shares_text(comparison)}"
    lengths = lengths_text(comparison)
    said = f"right to {lengths}; {shares}" if lengths else f"{shares} are right"
    return f"{comparison.second} on {comparison.task}: {said}."


SINCE = Kind(
    "since the baseline",
    "result",
    "both effective lengths, and how many of the rows of a baseline are right",
    _since,
)


def _without(*, without: int, samples: int) -> str:
    return f"{without:,} of {samples:,} samples of the baseline have no partner in the run."


WITHOUT_PARTNER = Kind(
    "without partner", "warning", "samples of a baseline that the run does not have", _without
)
