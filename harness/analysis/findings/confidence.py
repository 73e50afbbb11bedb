"""How sure a model is in forced choices, and where it is sure and wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.order.apart import CHANCE
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.spec import varied_label


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


def sure_and_blind(judged: JudgedCondition) -> SureAndBlind | None:
    """From which line on a model is sure where it is blind; `None` where it is not.

    That line and every longer one lie beyond the effective length. On each of them the interval of
    the accuracy reaches down to chance, the mean confidence is at least half-way between chance and
    certainty, and the interval of the overconfidence lies above 0.
    """
    estimate, curve = judged.effective_length(), judged.curve
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


def confidence(run: JudgedRun, judged: Sequence[JudgedCondition], model: str) -> Iterator[Finding]:
    """How sure a model is of its first choices under these conditions, how often these are right,
    and where it is sure and blind; nothing where replies are read.
    """
    if not run.options:
        return
    fewest, most = min(run.options), max(run.options)
    yield READ_BY_LIKELIHOOD(fewest=fewest, most=most, chance=run.chance)
    errors = sorted(one.calibration for one in judged if one.calibration is not None)
    if not errors:
        return
    chosen = [one.chosen_at(one.places) for one in judged]
    sure, right, tied = (
        np.concatenate([getattr(one, field) for one in chosen])
        for field in ("confidence", "right", "tied")
    )
    yield CONFIDENCE(
        model=model,
        confidence=float(sure.mean()),
        accuracy=float(right.mean()),
        errors=[one._asdict() for one in errors],
    )
    found = [blind for one in judged if (blind := sure_and_blind(one))]
    if found:
        worst = max(found, key=lambda one: one.confidence - one.accuracy)
        condition = varied_label(worst.judged.condition, [one.condition for one in judged])
        facts = {name: value for name, value in worst._asdict().items() if name != "judged"}
        counts = {"found": len(found), "conditions": len(judged)}
        yield SURE_AND_BLIND(**facts, **counts, condition=condition, unit=run.spec.unit)
    if below := _below_chance(judged, run.spec.unit):
        yield below
    if tied.any():
        yield TIED(tied=int(tied.sum()), choices=len(tied))


def _read_by_likelihood(*, fewest: int, most: int, chance: float) -> str:
    count = str(most) if fewest == most else f"{fewest} to {most}"
    return f"Read by likelihood over {count} options ({100 * chance:.0f} % are right by chance)."


READ_BY_LIKELIHOOD = Kind(
    "read by likelihood",
    "note",
    "options were chosen by their probability, and how many are right by chance",
    _read_by_likelihood,
)


def _confidence(
    *, model: str, confidence: float, accuracy: float, errors: Sequence[Mapping[str, float]]
) -> str:
    ends = dict.fromkeys(f"{one['error']:.2f}" for one in (errors[0], errors[-1]))
    span = " to ".join(ends)
    if len(errors) == 1:
        span += f", 95 % interval {errors[0]['low']:.2f} to {errors[0]['high']:.2f}"
    return (
        f"{model} is {100 * confidence:.0f} % sure of its first choice on average, and right in "
        f"{100 * accuracy:.0f} % (expected calibration error {span})."
    )


CONFIDENCE = Kind(
    "confidence",
    "result",
    "how sure the model is of its first choices, and how often these are right",
    _confidence,
)


def _tied(*, tied: int, choices: int) -> str:
    return (
        f"In {tied:,} of {choices:,} choices the right option has the same probability as the best "
        "wrong one, which counts as not right."
    )


TIED = Kind("tied choices", "note", "options of the same probability", _tied)


def _below_chance(judged: Sequence[JudgedCondition], unit: str) -> Finding | None:
    """The lines with fewer right choices than guesses would have, where they are most."""
    found = [
        (one, one.curve) for one in judged if one.curve is not None and one.curve.below_chance.any()
    ]
    if not found:
        return None
    worst, curve = max(found, key=lambda pair: pair[1].n[pair[1].below_chance].sum())
    places = curve.below_chance
    lines = [line for line, is_below in zip(curve.lines, places, strict=True) if is_below]
    n = curve.n[places]
    right, guessed = (
        float(share[places] @ n / n.sum()) for share in (curve.accuracies, curve.chance)
    )
    order = worst.order.lines if worst.order else {}
    cells = worst.run.manifest.cells
    still = [cells[place].line for place, line in order.items() if line.share_ci[0] > CHANCE]
    chosen = worst.chosen_at([place for place in worst.places if cells[place].line in lines])
    return BELOW_CHANCE(
        lines=len(lines),
        of_lines=len(curve.lines),
        shortest=lines[0].low,
        longest=lines[-1].high,
        unit=unit,
        accuracy=right,
        chance=guessed,
        still_told=[[line.low, line.high] for line in still if line in lines],
        by_ties=bool((chosen.right | chosen.tied).mean() >= guessed),
        condition=varied_label(worst.condition, [one.condition for one in judged]),
        found=len(found),
        conditions=len(judged),
    )


def _below(
    *,
    lines: int,
    of_lines: int,
    shortest: int,
    longest: int,
    unit: str,
    accuracy: float,
    chance: float,
    still_told: Sequence[Sequence[int]],
    by_ties: bool,
    condition: str,
    found: int,
    conditions: int,
) -> str:
    lengths = f"{shortest} {unit}" if shortest == longest else f"{shortest} to {longest} {unit}"
    why = (
        "it prefers wrong options by a rule of its own, which can also make choices right elsewhere"
    )
    if by_ties:
        why = "options of the same probability, which count as not right, can explain that"
    where = f" with {condition}" if condition else ""
    if still_told:
        ends = f"{still_told[0][0]} to {still_told[-1][1]} {unit}"
        why += f". On {len(still_told)} of these lines, from {ends}, its probabilities still tell "
        why += "the row from its control"
    more = f" It is so under {found} of {conditions} conditions." if found > 1 else ""
    return (
        f"On {lines} of {of_lines} lines ({lengths}){where} it is right less often than by "
        f"guessing ({100 * accuracy:.0f} % against {100 * chance:.0f} %): {why}.{more}"
    )


BELOW_CHANCE = Kind(
    "below chance", "warning", "fewer choices are right than guesses would be", _below
)


def _sure_and_blind(
    *,
    shortest: int,
    longest: int,
    choices: int,
    confidence: float,
    accuracy: float,
    condition: str,
    found: int,
    conditions: int,
    unit: str,
) -> str:
    at = f"at {shortest} {unit}" if shortest == longest else f"from {shortest} to {longest} {unit}"
    where = f" with {condition}" if condition else ""
    more = ""
    if found > 1:
        more = (
            f" It is so under {found} of {conditions} conditions; these numbers are those of the "
            "largest difference."
        )
    return (
        f"It is sure where it is blind: {at}{where} ({choices:,} choice{'s' * (choices != 1)}) it "
        f"is {100 * confidence:.0f} % sure of its first choice on average, and right in "
        f"{100 * accuracy:.0f} %.{more}"
    )


SURE_AND_BLIND = Kind(
    "sure and blind",
    "result",
    "on lines beyond the effective length the model is sure, and right as by chance",
    _sure_and_blind,
)
