"""The findings of a gate: those of its comparison, what has changed since the baseline, and what a
run is worth as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.gate import (
    BASELINE,
    MANY_ALARMS,
    GateResult,
    luck,
    unlucky,
)
from eyechart.harness.analysis.findings.finding import Finding, Kind, in_order
from eyechart.harness.analysis.findings.not_known import which_of
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.analysis.findings.served import doubts
from eyechart.harness.analysis.length.margin import is_at_floor
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.settings.judging import UNJUDGED, JudgeSettings
from eyechart.harness.spec import varied_label
from eyechart.providers.naming import named

_MOST_NAMED = 3
"""Conditions up to which each has its lengths in the sentence."""
_ENOUGH = 4
"""Replies to each row of a baseline that make an unlucky one rare."""


def of_gate(gated: GateResult, *, was_asked: bool) -> list[Finding]:
    """What became of the run, why, what is missing, and what it shows by itself. `was_asked`: this
    command asked it samples of the baseline.
    """
    shown = shown_of(gated)
    is_judged = gated.verdict not in UNJUDGED
    has_reason = is_judged or shown.is_at_floor(gated.margin)
    is_whole = not gated.without and not any(one.adaptive for one in shown.conditions)
    found = [SINCE(comparison=shown, is_whole=is_whole)]
    if gated.without:
        remedy = ""
        if not gated.is_decided:
            remedy = (
                "the same command asks on"
                if was_asked
                else "ask it with the same lengths, conditions and samples, or add --ask"
            )
        found.append(WITHOUT_PARTNER(remedy, without=gated.without, samples=gated.samples))
    found += map(_capital, of_pair(shown, gated.margin if has_reason else None))
    return in_order(found)


def of_baseline(run: JudgedRun, judging: JudgeSettings) -> Iterator[Finding]:
    """What a run is worth as a baseline."""
    yield from doubts(run)
    limits = {
        estimate.limit.said
        for one in run.conditions.values()
        if (estimate := one.effective_length()) and not estimate.limit.is_ranked
    }
    if limits:
        yield LIMITED_BASELINE(limits=sorted(limits))
    curves = [one.curve for one in run.conditions.values() if one.curve is not None]
    if curves and is_at_floor(curves, judging.margin):
        yield BASELINE_AT_FLOOR(
            "leave this run out, ask shorter rows or an easier task, or give a smaller "
            f"{named('margin')}"
        )
    if (unlucky_by := luck(run)) is not None:
        remedy = ""
        if _of_100(unlucky(_ENOUGH)) < _of_100(unlucky_by):
            remedy = f"save a run with {named('draws', str(_ENOUGH))}, which is unlucky less often"
        yield UNLUCKY(remedy, of_100=_of_100(unlucky_by), alarms=MANY_ALARMS)


def _of_100(share: float) -> int:
    return max(1, round(100 * share))


def _capital(finding: Finding) -> Finding:
    """A sentence that begins with the baseline, in place of a name, as any other sentence."""
    is_name = not finding.sentence.startswith(BASELINE)
    sentence = finding.sentence if is_name else f"T{finding.sentence[1:]}"
    return replace(finding, sentence=sentence)


def shown_of(gated: GateResult) -> Comparison:
    """The comparison that a gate shows: of a run that is worse, that of the conditions by which."""
    return (gated.by_sight if gated.verdict == "worse" else None) or gated.comparison


def lengths_text(comparison: Comparison) -> str:
    """`23 instead of 39 words`, `more than 20, before 39 words`; empty where a length is not known,
    or something else than sight limits it, and of many conditions with different ones.
    """
    conditions = [one.condition for one in comparison.conditions]
    texts: dict[str, str] = {}
    for compared in comparison.conditions:
        length = compared.length
        if length.is_limited or length.first is None or length.second is None:
            return ""
        before = length.first.counted(comparison.unit)
        is_same = length.first == length.second
        is_bound = length.second.sign != "=" or length.first.sign != "="
        now = f"{length.second.words}{', before' if is_bound else ' instead of'} {before}"
        text = f"{before} as before" if is_same else now
        texts[varied_label(compared.condition, conditions)] = text
    if len(set(texts.values())) == 1:
        (text,) = set(texts.values())
        return f"{text} under {which_of(len(texts), len(texts))}" if len(texts) > 1 else text
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
    "without partner", "warning", "samples of a baseline have no partner in the run", _without
)


def _limited(*, limits: Sequence[str]) -> str:
    by = " and ".join(limits)
    return f"Its length is limited by {by}, so no run can be compared with this baseline."


LIMITED_BASELINE = Kind(
    "limited baseline",
    "warning",
    "something else than sight limits a baseline, so nothing can be compared with it",
    _limited,
)


def _at_floor() -> str:
    return (
        "Nearly all answers are wrong or guesses, so no run can be found worse, and only a better "
        "one passes."
    )


BASELINE_AT_FLOOR = Kind(
    "baseline at the floor", "warning", "no run can be worse than this baseline", _at_floor
)


def _unlucky(*, of_100: int, alarms: float) -> str:
    return (
        f"If replies vary, a baseline can be unlucky: up to {of_100} of 100 such baselines of a "
        f"task call an unchanged model worse in more than {100 * alarms:g} % of its runs."
    )


UNLUCKY = Kind(
    "unlucky baseline", "note", "how often a baseline calls an unchanged model worse", _unlucky
)
