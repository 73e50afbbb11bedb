"""Which of several runs of a task are right furthest, and what the ranks do not go by."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from eyechart.harness.analysis.comparison.comparability import other_settings
from eyechart.harness.analysis.comparison.family import RankedRun, Ranking
from eyechart.harness.analysis.findings.at_lengths import longer_replies, suited
from eyechart.harness.analysis.findings.finding import (
    MOST_NAMES,
    Finding,
    Kind,
    in_order,
    listed,
    of_several,
)
from eyechart.harness.analysis.findings.of_run import beside
from eyechart.harness.analysis.findings.pair import asked_otherwise, few_pairs, lines_apart
from eyechart.harness.analysis.findings.right_to import correction, length_text
from eyechart.harness.analysis.length.at_length import at_length
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import Bound, Sign
from eyechart.harness.analysis.ranking.cost_at import costs_at
from eyechart.harness.analysis.ranking.standing import Standing
from eyechart.harness.analysis.samples.doing import FORMS, VerbPhrase, doing
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.settings.judging import Margin

_TWO = 2


def of_ranking(ranking: Ranking, margin: Margin) -> list[Finding]:
    """All that several runs show, of which each pair was compared."""
    found = [
        _ranks(
            ranking,
            [ranking.further_than(place) for place in range(len(ranking.runs))],
            tests=len(ranking.tested),
            unpaired=sum(not one.is_paired for one in ranking.tested),
        )
    ]
    if other := _not_by_length(ranking, margin):
        found.append(other)
    of_pairs = of_several(
        (name, [*lines_apart(comparison), *few_pairs(comparison)])
        for comparison in ranking.comparisons.values()
        for name in (comparison.first, comparison.second)
    )
    runs = [(one.name, one.run) for one in ranking.runs]
    return in_order([*found, *_asked_otherwise(runs), *of_pairs, *beside(runs, ranking.conditions)])


def _asked_otherwise(runs: Sequence[tuple[str, JudgedRun]]) -> Iterator[Finding]:
    names = [name for name, _ in runs]
    return asked_otherwise(names, other_settings([run for _, run in runs], names))


def of_standing(standing: Standing, at: Sequence[int] = ()) -> list[Finding]:
    """All that the models of a task show, also at each length of `at`; of a single model all but
    how far it is right, which its line of the table says.
    """
    found = []
    if len(standing.ranking.runs) > 1:
        further = standing.further
        found.append(
            _ranks(standing.ranking, further, tests=standing.tests, unpaired=standing.unpaired)
        )
        found += [
            suited(
                [
                    (one.name, at_length(one.estimate, length) if one.estimate else None)
                    for one in standing.places
                ],
                length,
                standing.places[0].run.settings.threshold,
                standing.ranking.unit,
            )
            for length in at
        ]
    costs = {
        one.name: costs_at(judged, at)
        for one in standing.places
        if (judged := one.run.conditions.get(one.condition))
    }
    found += longer_replies(costs, "rows")
    if not standing.complete:
        found.append(LENGTHS_ALONE(models=len(standing.places)))
    if standing.apart:
        found.append(APART(pairs=standing.apart))
    runs = [(place.name, place.run) for place in standing.places]
    return in_order([*found, *_asked_otherwise(runs), *beside(runs)])


def _ranks(
    ranking: Ranking, further: Sequence[Collection[int]], *, tests: int, unpaired: int
) -> Finding:
    """Which runs are right how far, and which of the others they are shown to be ahead of."""
    first = ranking.runs[0]
    best = [place for place, one in enumerate(ranking.runs) if one.rank_key == first.rank_key]
    shorter = set.intersection(*(set(further[place]) for place in best))
    alone = {place: set(further[place]) - shorter for place in best}
    estimates = [one for ranked in ranking.runs for one in ranked.estimates.values()]
    return RANKS(
        task=first.run.manifest.task,
        verb=str(doing(first.run.conditions.values(), first.run.manifest.task)),
        unit=ranking.unit,
        runs=len(ranking.runs),
        ranked=sum(one.is_ranked for one in ranking.runs),
        scored=any(estimates),
        conditions=len(ranking.conditions),
        best=[ranking.runs[place].name for place in best],
        length=next(iter(first.estimates.values())),
        outside=_outside(first) if len(best) > 1 else "",
        is_known=not any(map(_is_beyond, ranking.runs[len(best) :])),
        further_than=[ranking.runs[place].name for place in sorted(shorter)],
        alone={
            ranking.runs[place].name: [ranking.runs[other].name for other in sorted(others)]
            for place, others in alone.items()
            if others
        },
        tests=tests,
        unpaired=unpaired,
    )


def _words(
    *,
    task: str,
    verb: str,
    unit: str,
    runs: int,
    ranked: int,
    scored: bool,
    conditions: int,
    best: Sequence[str],
    length: EffectiveLength | None,
    outside: str,
    is_known: bool,
    further_than: Sequence[str],
    alone: Mapping[str, Sequence[str]],
    tests: int,
    unpaired: int,
) -> str:
    if not scored:
        known = f"how far the models {FORMS[verb].many}"
        return f"No sample of {task} is scored, so it is not known {known}."
    every = " under every condition" if conditions > 1 else ""
    if not ranked or length is None:
        return f"None of the {runs} runs has a known effective length on {task}{every}."
    of = f" in the mean of {conditions} conditions"
    if conditions == 1:
        of = f", {length_text(length, unit)}"
    how = correction(tests, unpaired) + (f"; {runs - ranked} not ranked" if ranked < runs else "")
    subject = listed(best, "runs")
    if ranked == 1:
        others = "the others are" if runs > _TWO else "the other one is"
        return (
            f"Of {runs} runs only {subject} has a known effective length on {task}{every or of}; "
            f"{others} not ranked."
        )
    has, it = ("have", "they") if len(best) > 1 else ("has", "it")
    what = f"{it} {_further(FORMS[verb], further_than, ranked - len(best), plural=len(best) > 1)}"
    if alone:  # of several best ones some are shown to be ahead of more
        only = [
            f"only {name} {FORMS[verb].one} further than {listed(others, 'runs')}"
            for name, others in alone.items()
        ]
        what = " and ".join([what, *only] if further_than else only)
    if outside:
        what = "" if len(best) == ranked else f"; {what}"
        return (
            f"{subject} cannot be ordered on {task}: their effective lengths lie {outside}{what} "
            f"({how})."
        )
    if len(best) == ranked:
        return (
            f"{subject} have the same effective length on {task}{of}; no difference between them "
            f"is shown ({how})."
        )
    longest = "longest" if is_known else "longest known"
    return f"{subject} {has} the {longest} effective length on {task}{of}; {what} ({how})."


RANKS = Kind(
    "ranks",
    "result",
    "which runs are right furthest, and which of the others they are shown to be ahead of",
    _words,
)


def _tasks(
    *,
    model: str,
    threshold: float,
    lengths: Mapping[str, Bound],
    units: Mapping[str, str],
    tasks: int,
) -> str:
    least, *_, most = sorted(lengths, key=lambda task: lengths[task].order)
    which = " with a known length" * (len(lengths) < tasks)
    return (
        f"{model} is right in {threshold_text(threshold)} of replies to {lengths[most].words} "
        f"{units[most]} in {most}, and to {lengths[least].words} {units[least]} in {least}: the "
        f"furthest and the least far of {len(lengths)} tasks{which}."
    )


OF_TASKS = Kind(
    "tasks",
    "result",
    "in which of several tasks a model is right furthest, and in which least far",
    _tasks,
)


def _not_by_length(ranking: Ranking, margin: Margin) -> Finding | None:
    """Why a run can be worse or better where no difference in effective length was found."""
    changes = {
        ranking.runs[place].name: change
        for place, comparison in ranking.against_reference
        if not comparison.length.further
        if (change := comparison.change(margin)) in ("worse", "better")
    }
    reference = ranking.runs[ranking.reference].name
    return NOT_BY_LENGTH(reference=reference, changes=changes) if changes else None


def _changed(*, reference: str, changes: Mapping[str, str]) -> str:
    said = [f"{name} is {change} than {reference}" for name, change in changes.items()]
    runs = f"{len(said)} runs are worse or better than {reference}"
    which = runs if len(said) > MOST_NAMES else listed(said, "")
    return (
        f"{which} though no difference was found between their effective lengths: "
        "“worse” and “better” are also about the areas and the accuracy at each length, and areas "
        "are not corrected for all pairs."
    )


NOT_BY_LENGTH = Kind(
    "not by length",
    "note",
    "runs are worse or better than the first one without a difference in effective length",
    _changed,
)


def _lengths_alone(*, models: int) -> str:
    return (
        f"Of {models} models the effective lengths of each pair were compared, and single lines "
        "and areas with the first one only."
    )


LENGTHS_ALONE = Kind(
    "lengths alone",
    "note",
    "of many models the pairs are compared by effective length alone",
    _lengths_alone,
)


def _apart(*, pairs: int) -> str:
    return (
        f"{pairs} pair{'s' * (pairs > 1)} of models cannot be compared: they were asked other "
        "samples, or none was scored for both."
    )


APART = Kind("apart", "note", "models that cannot be compared", _apart)


def _outside(ranked: RankedRun) -> str:
    """`beyond the longest line asked` if the effective lengths of a run lie there under all
    conditions, or the like below the shortest line; else empty.
    """
    signs = {one.length.sign for one in ranked.estimates.values() if one and one.length}
    places: dict[Sign, str] = {
        ">": "beyond the longest line asked",
        "<": "below the shortest line asked",
    }
    return places.get(next(iter(signs)), "") if len(signs) == 1 else ""


def _is_beyond(ranked: RankedRun) -> bool:
    """Whether the length of a run that is ranked lies beyond its lines under a condition."""
    lengths = [one and one.length for one in ranked.estimates.values()]
    return ranked.is_ranked and any(length and length.sign == ">" for length in lengths)


def _further(verb: VerbPhrase, shorter: Sequence[str], others: int, *, plural: bool) -> str:
    """What the best run of a ranking is shown to do, as a predicate."""
    does, are = (verb.many, "are") if plural else (verb.one, "is")
    if not shorter:
        which = f"any of the {others} others" if others > 1 else "the other one"
        return f"{are} not shown to {verb.base} further than {which}"
    if len(shorter) == others > 1:
        return f"{does} further than each of the {others} others"
    rest = others - len(shorter)
    also = (
        f", and {are} not shown to {verb.base} further than {rest} other{'s' * (rest > 1)}"
        if rest
        else ""
    )
    return f"{does} further than {listed(shorter, 'runs')}{also}"
