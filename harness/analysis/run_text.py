"""A sentence to quote about the result of a run, or about a ranking of several runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from eyechart.harness.analysis.comparability import have_other_rows
from eyechart.harness.analysis.comparison import sides_of
from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.effective_length import EffectiveLength
from eyechart.harness.analysis.family import Ranked, Ranking, corrected, longest
from eyechart.harness.analysis.further import LengthDifference, Sides, sides_difference
from eyechart.harness.analysis.interval import Sign, span_text
from eyechart.harness.analysis.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.spec import Condition

_MOST_NAMES = 3
"""Most names in a sentence; of more names only their number is given."""


def run_finding(
    run: JudgedRun,
    threshold: Threshold = Threshold(),
    conditions: Collection[Condition] | None = None,
) -> str:
    """Under which condition a run sees farthest, and whether tests on the same rows show it.

    Controls are left out, unless there is nothing else. The best condition is compared with each
    other one, corrected for all pairs, because it is chosen by the answers.
    """
    shown = [one for key, one in run.conditions.items() if conditions is None or key in conditions]
    judged = [one for one in shown if not one.control] or shown
    estimates = [(one, estimate) for one in judged if (estimate := one.effective_length(threshold))]
    controls = "controls are left out" if len(judged) < len(shown) else ""
    model, task = run.manifest.label, run.manifest.task
    if not estimates:
        return f"No sample of {task} is scored, so it is not known how far {model} sees."
    place = longest([estimate.length for _, estimate in estimates])
    best, estimate = estimates[place]
    spans = {span_text(one.length_ci) for _, one in estimates if _is_unknown(one)}
    if spans and all(_is_unknown(one) for _, one in estimates):
        return (
            f"It is not known how far {model} sees on {task}: with so few replies the 95 % "
            f"interval is {' or '.join(sorted(spans))}."
        )
    if len(estimates) == 1:
        return f"{model} sees to {_length(estimate)} on {task}."
    lengths = {one.length for _, one in estimates}
    if len(lengths) == 1 and estimate.length.sign != "=":
        return (
            f"{model} sees to {estimate.length.symbols} on {task} under all "
            f"{len(estimates)} conditions{f' ({controls})' if controls else ''}."
        )
    others = [one for one, _ in estimates if one is not best]
    equal = sum(one.length == estimate.length for _, one in estimates) - 1
    also = f", and as long with {equal} other{'s' * (equal > 1)}" if equal else ""
    pairs = len(estimates) * (len(estimates) - 1) // 2
    shorter = sum(one.further > 0 for one in _differences(best, others, threshold, pairs))
    return (
        f"The longest effective length of {model} on {task} is {_length(estimate)}, with "
        f"{_label(best, judged)}{also}; {_shown(shorter, len(others), 'condition')} "
        f"({correction(pairs, _unpaired(judged))}{controls and f'; {controls}'})."
    )


def _differences(
    best: JudgedCondition, others: Sequence[JudgedCondition], threshold: Threshold, pairs: int
) -> list[LengthDifference]:
    """The corrected differences of `best` and each of the others that shares samples with it."""
    sides = Sides(threshold)
    found = []
    for other in others:
        other_rows = have_other_rows(best, other)
        if pair := sides_of(best, other, sides, other_rows=other_rows):
            found.append(sides_difference(*pair, paired=not other_rows))
    return corrected(found, pairs)


def _unpaired(judged: Sequence[JudgedCondition]) -> int:
    """How many pairs of conditions have other rows."""
    return sum(have_other_rows(*pair) for pair in combinations(judged, 2))


def _label(judged: JudgedCondition, others: Sequence[JudgedCondition]) -> str:
    """The values of the axes that the conditions vary."""
    varied = [
        f"{axis}={value}"
        for axis, value in judged.condition.items()
        if any(other.condition[axis] != value for other in others)
    ]
    return ", ".join(varied)


def _is_unknown(estimate: EffectiveLength) -> bool:
    """Whether the interval is open at both ends, so that the effective length is not known."""
    low, high = estimate.length_ci
    return low.sign == "<" and high.sign == ">"


def _length(estimate: EffectiveLength) -> str:
    """`29 symbols (95 % interval 21 to 39)`."""
    span = span_text(estimate.length_ci)
    interval = f"95 % interval {span}" if span != str(estimate.length) else ""
    inside = ", ".join(filter(None, (interval, estimate.note)))
    return estimate.length.symbols + (f" ({inside})" if inside else "")


def _shown(shorter: int, others: int, what: str) -> str:
    if not shorter:
        return f"no difference from the other {what}{'s' * (others > 1)} is shown"
    if shorter == others:
        return f"that is further than with {_every(others, what)}"
    return f"that is further than with {shorter} of the {others} other {what}s"


def _every(others: int, what: str) -> str:
    return f"each of the {others} other {what}s" if others > 1 else f"the other {what}"


def correction(pairs: int, unpaired: int = 0) -> str:
    """How the pairs were compared: with which correction, and how many on other rows."""
    rows = "same rows"
    if unpaired:
        rows = "unpaired: other rows"
        rows += f" in {unpaired:,} of {pairs:,} pairs" if unpaired < pairs else ""
    return rows if pairs == 1 else f"{rows}, Holm's correction for {pairs} pairs"


def recorded_note(runs: Sequence[tuple[str, JudgedRun]]) -> str:
    """Which of several named runs have recorded replies, and who collected these; or empty."""
    recorded = [(name, of) for name, run in runs if (of := run.manifest.recorded) is not None]
    if not recorded:
        return ""
    names = _listed([name for name, _ in recorded])
    if len(recorded) == len(runs):
        names = {1: names, 2: "both runs"}.get(len(runs), f"all {len(runs)} runs")
    origins = dict.fromkeys(
        " ".join(filter(None, (file.by and f"by {file.by}", file.at and f"in {file.at}")))
        for _, of in recorded
        for file in of.latest
    )
    origin = "; ".join(filter(None, origins))
    return f"Recorded, and not asked here: {names}{origin and f' ({origin})'}."


def ranking_finding(ranking: Ranking) -> str:
    """Which runs see how far, and which of the others they are shown to see further than."""
    first = ranking.runs[0]
    task, count = first.run.manifest.task, len(ranking.runs)
    conditions = len(ranking.conditions)
    estimate = next(iter(first.estimates.values()))
    if estimate is None:
        return f"No sample of {task} is scored, so it is not known how far the models see."
    of = f" in the mean of {conditions} conditions" if conditions > 1 else f", {_length(estimate)}"
    comparisons = ranking.comparisons.values()
    how = correction(len(comparisons), sum(not one.is_paired for one in comparisons))
    best = [place for place, one in enumerate(ranking.runs) if one.rank_key == first.rank_key]
    shorter = set.intersection(*(set(ranking.further_than(place)) for place in best))
    subject, has, it = _listed([ranking.runs[place].name for place in best]), "has", "it"
    outside = _outside(first) if len(best) > 1 else ""
    if len(best) == count and outside:
        return (
            f"{subject} cannot be ordered on {task}: their effective lengths lie {outside} ({how})."
        )
    if len(best) == count:
        return (
            f"All {count} runs have the same effective length on {task}{of}; no difference between "
            f"them is shown ({how})."
        )
    if len(best) > 1:
        has, it = "have", "they"
    others = count - len(best)
    what = _further(
        [ranking.runs[place].name for place in sorted(shorter)], others, plural=it == "they"
    )
    if outside:
        return (
            f"{subject} cannot be ordered on {task}: their effective lengths lie {outside}; {it} "
            f"{what} ({how})."
        )
    return f"{subject} {has} the longest effective length on {task}{of}; {it} {what} ({how})."


def _outside(ranked: Ranked) -> str:
    """`beyond the longest line asked` if the effective lengths of a run lie there under all
    conditions, or the like below the shortest line; else empty.
    """
    return outside_text({one.length.sign for one in ranked.estimates.values() if one is not None})


def outside_text(signs: Collection[Sign]) -> str:
    """Where effective lengths with these signs lie; empty if one of them is inside the lines."""
    places: dict[Sign, str] = {
        ">": "beyond the longest line asked",
        "<": "below the shortest line asked",
    }
    return places.get(next(iter(signs)), "") if len(set(signs)) == 1 else ""


def _further(shorter: Sequence[str], others: int, *, plural: bool) -> str:
    """What the best run of a ranking is shown to do, as a predicate."""
    see, are = ("see", "are") if plural else ("sees", "is")
    if not shorter:
        which = f"any of the {others} others" if others > 1 else "the other one"
        return f"{are} not shown to see further than {which}"
    if len(shorter) == others > 1:
        return f"{see} further than each of the {others} others"
    rest = others - len(shorter)
    also = (
        f", and {are} not shown to see further than {rest} other{'s' * (rest > 1)}" if rest else ""
    )
    return f"{see} further than {_listed(shorter)}{also}"


def _listed(names: Sequence[str]) -> str:
    """Names joined with "and"; if they are many, only their number."""
    if len(names) > _MOST_NAMES:
        return f"{len(names)} runs"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
