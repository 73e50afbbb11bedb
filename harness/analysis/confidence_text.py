"""Sentences about how sure a model is in forced choices, and where it is sure and wrong."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from eyechart.harness.analysis.judged_run import JudgedCondition, JudgedRun, without_controls
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Condition, varied_label


class SureAndBlind(NamedTuple):
    """The lines beyond an effective length on which a model is sure, and right as by chance."""

    judged: JudgedCondition
    shortest: int
    """Symbols in the shortest row of these lines."""
    longest: int
    """Symbols in the longest row that was asked."""
    choices: int
    """Forced choices on these lines."""
    confidence: float
    accuracy: float


def sure_and_blind(judged: JudgedCondition, threshold: float = THRESHOLD) -> SureAndBlind | None:
    """From which line on a model is sure where it is blind; `None` where it is not.

    That line and every longer one lie beyond the effective length. On each of them the interval of
    the accuracy reaches down to chance, the mean confidence is at least half-way between chance and
    certainty, and the interval of the overconfidence lies above 0.
    """
    estimate, curve = judged.effective_length(threshold), judged.curve
    if estimate is None or estimate.length is None or estimate.length.sign == ">" or curve is None:
        return None
    cells = judged.scored_cells.join(judged.run.diagnosis)
    cells = cells[cells["length"] > 0].sort_values("length")
    chance = curve.mean_chance
    blind = (
        (cells["length_low"] > (estimate.length.at_least or 0))
        & (cells["ci_low"] <= chance)
        & (cells["confidence"] >= (1 + chance) / 2)
        & (cells["overconfidence_ci_low"] > 0)
    ).to_numpy(bool)
    first = len(blind) - int(np.logical_and.accumulate(blind[::-1]).sum())
    if first == len(blind):
        return None
    chosen = judged.chosen_at(cells.index[first:])
    return SureAndBlind(
        judged,
        int(cells["length_low"].iloc[first]),
        int(cells["length_high"].iloc[-1]),
        len(chosen.right),
        float(chosen.confidence.mean()),
        float(chosen.right.mean()),
    )


def confidence_finding(
    run: JudgedRun,
    threshold: float = THRESHOLD,
    conditions: Collection[Condition] | None = None,
    *,
    name: str = "",
) -> str:
    """How sure a model, called `name`, is of its first choices, how often these are right, and
    where it is sure and blind; empty where replies are read. Controls are left out, unless there is
    nothing else.
    """
    if not run.options:
        return ""
    judged = without_controls(run.shown(conditions))
    chosen = [one.chosen_at(one.places) for one in judged]
    errors = sorted(one.calibration for one in judged if one.calibration is not None)
    if not errors:
        return ""
    model = name or run.manifest.model
    sure, right, tied = (
        np.concatenate([getattr(one, field) for one in chosen])
        for field in ("confidence", "right", "tied")
    )
    span = " to ".join(dict.fromkeys(f"{one.error:.2f}" for one in (errors[0], errors[-1])))
    if len(errors) == 1:
        span += f", 95 % interval {errors[0].low:.2f} to {errors[0].high:.2f}"
    said = (
        f"{model} is {100 * sure.mean():.0f} % sure of its first choice on average, and right in "
        f"{100 * right.mean():.0f} % (expected calibration error {span})."
    )
    if tied.any():
        said += (
            f" In {tied.sum():,} of {len(tied):,} choices the right option has the same "
            "probability as the best wrong one, which counts as not right."
        )
    found = [blind for one in judged if (blind := sure_and_blind(one, threshold))]
    if found:
        said += f" {_blind(found, judged, run.spec.unit)}"
    return " ".join(filter(None, (said, _below_chance(judged, run.spec.unit))))


def _below_chance(judged: Sequence[JudgedCondition], unit: str) -> str:
    """A sentence on the lines with fewer right choices than guesses would have; or empty."""
    found = [
        (one, one.curve) for one in judged if one.curve is not None and one.curve.below_chance.any()
    ]
    if not found:
        return ""
    worst, curve = max(found, key=lambda pair: pair[1].n[pair[1].below_chance].sum())
    places = curve.below_chance
    lines = [line for line, is_below in zip(curve.lines, places, strict=True) if is_below]
    low, high = lines[0].low, lines[-1].high
    lengths = f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
    n = curve.n[places]
    right, guessed = (
        100 * float(share[places] @ n / n.sum()) for share in (curve.accuracies, curve.chance)
    )
    cells = worst.run.manifest.cells
    chosen = worst.chosen_at([place for place in worst.places if cells[place].line in lines])
    why = "options of the same probability, which count as not right, can explain that"
    if 100 * (chosen.right | chosen.tied).mean() < guessed:
        why = (
            "it prefers wrong options by a rule of its own, which can also make choices right "
            "elsewhere"
        )
    where = more = ""
    if len(judged) > 1:
        where = f" with {varied_label(worst.condition, [one.condition for one in judged])}"
    if len(found) > 1:
        more = f" It is so under {len(found)} of {len(judged)} conditions."
    return (
        f"On {len(lines)} of {len(curve.lines)} lines ({lengths}){where} it is right less often "
        f"than by guessing ({right:.0f} % against {guessed:.0f} %): {why}.{more}"
    )


def _blind(found: Sequence[SureAndBlind], judged: Sequence[JudgedCondition], unit: str) -> str:
    """Sentences about the condition where confidence is farthest from accuracy."""
    worst = max(found, key=lambda one: one.confidence - one.accuracy)
    low, high = worst.shortest, worst.longest
    lengths = f"at {low} {unit}" if low == high else f"from {low} to {high} {unit}"
    count = f"{worst.choices:,} choice{'s' * (worst.choices != 1)}"
    where = more = ""
    if len(judged) > 1:
        label = varied_label(worst.judged.condition, [one.condition for one in judged])
        where = f" with {label}"
    if len(found) > 1:
        more = (
            f" It is so under {len(found)} of {len(judged)} conditions; these numbers are those of "
            "the largest difference."
        )
    return (
        f"It is sure where it is blind: {lengths}{where} ({count}) it is "
        f"{100 * worst.confidence:.0f} % sure of its first choice on average, and right in "
        f"{100 * worst.accuracy:.0f} %.{more}"
    )
