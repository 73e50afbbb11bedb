"""Sentences about effective lengths that are not ranked: why, what is known all the same, and what
helps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from eyechart.harness.analysis.findings.finding import MOST_NAMES, Finding, Kind, listed
from eyechart.harness.analysis.length.effective_length import GROUP, EffectiveLength
from eyechart.harness.analysis.length.interval import Z95, Bound, span_text, wilson
from eyechart.harness.analysis.length.limit import Limit
from eyechart.harness.score.outcomes import Cause

_TWO = 2


def where_not_known(
    estimates: Mapping[str, EffectiveLength | None], unit: str, conditions: int
) -> str:
    """The end of a sentence that says how far is not known: ` with separator=comma: all 40 failing
    replies were cut off; it is right to at least 20 symbols`.

    `estimates` are those that are not ranked, by the label of their condition. Where all
    `conditions` have one reason, none is named. Empty without estimates.
    """
    limited = {label: one for label, one in estimates.items() if one and not one.limit.is_ranked}
    texts = [
        (list(group), facts(group.values()) + _bounds([limited[label] for label in group], unit))
        for group in alike({label: one.limit for label, one in limited.items()})
    ]
    if found := {label: one for label, one in estimates.items() if one and one.limit.is_ranked}:
        texts.append((list(found), _left_open(list(found.values()))))
    if unscored := [label for label, one in estimates.items() if one is None]:
        texts.append((unscored, "no sample is scored"))
    parts = [f"{under(labels, conditions)}: {why}" for labels, why in texts]
    return "; ".join(parts[:1] + [part.removeprefix(" ") for part in parts[1:]])


def alike(limits: Mapping[str, Limit]) -> list[dict[str, Limit]]:
    """Limits in groups of one cause and one length up to which they count, or of one cause."""
    groups: dict[tuple[str, int | None], dict[str, Limit]] = {}
    for label, limit in limits.items():
        groups.setdefault((limit.by, limit.up_to), {})[label] = limit
    if len(groups) <= MOST_NAMES:
        return list(groups.values())
    causes = dict.fromkeys(by for by, _ in groups)
    return [{label: one for label, one in limits.items() if one.by == by} for by in causes]


def facts(limits: Collection[Limit]) -> str:
    """`Limit.fact` of limits with one cause; no numbers where they count up to other lengths."""
    causes: Counter[Cause] = Counter()
    for limit in limits:
        causes.update(limit.causes)
    ordered = dict(causes.most_common())
    (by, up_to), *others = dict.fromkeys((limit.by, limit.up_to) for limit in limits)
    failing, misread = (
        sum(getattr(limit, name) for limit in limits) for name in ("failing", "misread")
    )
    whole = Limit(by, failing, up_to, ordered, misread=misread)
    if others:
        return f"failing replies were {' or '.join(map(whole.happened, ordered))}"
    return whole.fact


def under(labels: Sequence[str], conditions: int) -> str:
    """` with separator=none and with separator=comma`, ` under 5 conditions`; empty for all."""
    if len(labels) == conditions:
        return ""
    if len(labels) > MOST_NAMES:
        return f" under {len(labels)} conditions"
    return f" {listed([f'with {label}' for label in labels], 'conditions')}"


def which_of(some: int, conditions: int) -> str:
    """`both conditions`, `all 3 conditions`, `2 of 3 conditions`."""
    if some < conditions:
        return f"{some} of {conditions} conditions"
    return "both conditions" if conditions == _TWO else f"all {conditions} conditions"


def _left_open(estimates: Sequence[EffectiveLength]) -> str:
    """Why the replies leave a length open that nothing else than sight limits."""
    spans = sorted({span_text(one.length_ci) for one in estimates})
    uneven = [one.note for one in estimates if not one.one_threshold]
    few = any(one.few or one.scored < GROUP for one in estimates)
    why = "with so few replies"
    if not few and all(map(_rises, estimates)):
        why = "the accuracy rises with the length, and"
    elif uneven:
        why = f"{uneven[0]}, and"
    elif not few:
        why = f"{_accuracies(estimates)}, and"
    return f"{why} the 95 % interval is {' or '.join(spans)}"


def _accuracies(estimates: Sequence[EffectiveLength]) -> str:
    """What the accuracies are over all lengths, where they leave the lengths open."""
    pooled = [(float(one.fit.correct.sum()), float(one.fit.answered.sum())) for one in estimates]
    spans = [wilson(*counts) or (0.0, 1.0) for counts in pooled]
    if all(
        low <= one.fit.required <= high for one, (low, high) in zip(estimates, spans, strict=True)
    ):
        return "the accuracy is near the threshold at all lengths"
    shares = sorted({f"{100 * right / n:.0f}" for right, n in pooled}, key=float)
    return f"the accuracy over all lengths is {' or '.join(shares)} %"


def _rises(estimate: EffectiveLength) -> bool:
    """Whether the longer half of the replies is right more often, by more than chance."""
    fit = estimate.fit
    longer = np.cumsum(fit.answered) > fit.answered.sum() / 2
    (right, n), (short_right, short_n) = (
        (float(fit.correct[half].sum()), float(fit.answered[half].sum()))
        for half in (longer, ~longer)
    )
    if not n or not short_n:
        return False
    pooled = (right + short_right) / (n + short_n)
    error = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / short_n))
    return right / n - short_right / short_n > Z95 * error


def _bounds(estimates: Sequence[EffectiveLength], unit: str) -> str:
    """`; it is right to at least 20 symbols and to at most 80 symbols`; empty without a bound."""
    known = sorted(one.length.length for one in estimates if one.length is not None)
    highs = [one.length_ci[1] for one in estimates if one.length_ci[1].sign != ">"]
    most = Bound("=", max(high.length for high in highs)) if len(highs) == len(estimates) else None
    at_most = "" if most is None else f"at most {most.counted(unit)}"
    if not known:
        return at_most and f"; it is right to {at_most}"
    least, last = Bound("=", known[0]), Bound("=", known[-1])
    span = least.counted(unit) if least == last else f"{least} to {last.counted(unit)}"
    some = f" under {len(known)} of them" if len(known) < len(estimates) else ""
    also = at_most and f" and to {at_most}"
    return f"; it is right to at least {span}{some}{also}"


def remedies_of(estimates: Mapping[str, EffectiveLength | None], conditions: int) -> list[str]:
    """What the user can do where something else than sight limits a length, each remedy once;
    `estimates` are by the label of their condition. The conditions that a remedy helps are named,
    but not where it helps all `conditions`, or all of those with a remedy.
    """
    limited = {label: one.limit for label, one in estimates.items() if one and one.limit.remedies}
    helped: dict[str, list[str]] = {}
    for label, limit in limited.items():
        for remedy in limit.remedies:
            helped.setdefault(remedy, []).append(label)
    texts = []
    for remedy, labels in helped.items():
        where = under(labels, conditions) if len(labels) < len(limited) else ""
        texts.append(f"{where[1:]}: {remedy}" if where else remedy)
    return texts


def not_known(estimates: Mapping[str, EffectiveLength | None], **facts: Any) -> Finding | None:
    """That the effective length is not known under some conditions, why, and what helps; `None`
    where it is known under all. `estimates` are by the label of their condition; `facts` are model,
    verb (see `doing`), task and unit.
    """
    unknown = {label: one for label, one in estimates.items() if one is None or not one.is_ranked}
    if not unknown and estimates:
        return None
    remedy = "; ".join(remedies_of(unknown, len(estimates)))
    return NOT_KNOWN(remedy, **facts, conditions=len(estimates), unknown=unknown)


def _words(
    *,
    model: str,
    verb: str,
    task: str,
    unit: str,
    conditions: int,
    unknown: Mapping[str, EffectiveLength | None],
) -> str:
    if not any(unknown.values()) and len(unknown) == conditions:
        return f"No sample of {task} is scored, so it is not known how far {model} {verb}."
    where = where_not_known(unknown, unit, conditions)
    return f"It is not known how far {model} {verb} on {task}{where}."


NOT_KNOWN = Kind(
    "not known",
    "warning",
    "the effective length is not known under some conditions",
    _words,
)
