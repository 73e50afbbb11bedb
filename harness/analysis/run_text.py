"""A sentence to quote about the result of a run, or about a ranking of several runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from math import comb
from typing import TypeAlias

from eyechart.harness.analysis.comparability import have_other_rows
from eyechart.harness.analysis.comparison import sides_of
from eyechart.harness.analysis.effective_length import NOT_KNOWN, EffectiveLength
from eyechart.harness.analysis.family import Ranked, Ranking, corrected, is_default, longest
from eyechart.harness.analysis.further import LengthDifference, Sides, sides_difference
from eyechart.harness.analysis.interval import Sign
from eyechart.harness.analysis.judged_run import JudgedCondition, JudgedRun, without_controls
from eyechart.harness.analysis.not_known import (
    MOST_NAMES,
    listed,
    not_ranked,
    remedies_of,
    where_not_known,
)
from eyechart.harness.score.outcomes import NOT_SCORED, Outcome
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Condition, varied_label

_TWO = 2


Estimated: TypeAlias = tuple[JudgedCondition, EffectiveLength]


def run_finding(
    run: JudgedRun,
    threshold: float = THRESHOLD,
    conditions: Collection[Condition] | None = None,
    *,
    name: str = "",
) -> str:
    """How far a model sees under the default condition; the longest length that was seen under
    several, and whether tests on the same rows show that it is longer; then the conditions under
    which this is not known, and why. The longest of several lengths is too long by chance, so it is
    no headline.

    Controls are left out, unless there is nothing else. The best condition is compared with each
    other one, corrected for all pairs, because it is chosen by the answers. The model is called
    `name`, or as the run has it.
    """
    estimates, controls = _estimated(run, threshold, conditions)
    model, task = name or run.manifest.model, run.manifest.task
    if not estimates:
        return f"No sample of {task} is scored, so it is not known how far {model} sees."
    where = _where_not_known(estimates, run.spec.unit)
    if not any(estimate.is_ranked for _, estimate in estimates):
        return f"It is not known how far {model} sees on {task}{where}."
    finding = _finding(run, model, estimates, threshold, controls)
    return f"{finding} It is not known how far it sees{where}." if where else finding


def unknown_finding(run: JudgedRun, name: str, threshold: float = THRESHOLD) -> str:
    """Under which conditions of a run, called `name`, it is not known how far the model sees, and
    why; empty without any. Controls are left out, unless there is nothing else.
    """
    where = _where_not_known(_estimated(run, threshold)[0], run.spec.unit)
    return f"It is not known how far {name} sees{where}." if where else ""


def _estimated(
    run: JudgedRun, threshold: float, conditions: Collection[Condition] | None = None
) -> tuple[list[Estimated], str]:
    """The conditions with a scored sample, and the note that controls are left out; or empty."""
    shown = run.shown(conditions)
    judged = without_controls(shown)
    estimates = [(one, estimate) for one in judged if (estimate := one.effective_length(threshold))]
    return estimates, "controls are left out" if len(judged) < len(shown) else ""


def _where_not_known(estimates: Sequence[Estimated], unit: str) -> str:
    judged = [one for one, _ in estimates]
    return where_not_known(
        {_label(one, judged): estimate for one, estimate in estimates if not estimate.is_ranked},
        unit,
        len(estimates),
    )


def _finding(
    run: JudgedRun, model: str, estimates: Sequence[Estimated], threshold: float, controls: str
) -> str:
    """The sentence about the conditions whose lengths are ranked; there is one."""
    task, unit = run.manifest.task, run.spec.unit
    judged = [one for one, _ in estimates]
    ranked = [
        (one, estimate, length)
        for one, estimate in estimates
        if (length := estimate.length) is not None and estimate.is_ranked
    ]
    longest_one = ranked[longest([length for _, _, length in ranked])]
    usual = next((one for one in ranked if is_default(one[0])), None)
    is_usual = usual is not None and usual[2] == longest_one[2]
    best, estimate, length = usual if usual is not None and is_usual else longest_one
    if len(estimates) == 1:
        return f"{model} sees to {_length(estimate, unit)} on {task}."
    lengths = {length for _, _, length in ranked}
    note = f" ({controls})" if controls else ""
    if len(ranked) > 1 and len(lengths) == 1 and length.sign != "=":
        which = _which(len(ranked), len(estimates))
        texts = dict.fromkeys(_length(one, unit) for _, one, _ in ranked)
        seen = next(iter(texts)) if len(texts) == 1 else length.counted(unit)
        return f"{model} sees to {seen} on {task} under {which}{note}."
    others = [one for one, _, _ in ranked if one is not best]
    label = _label(best, judged)
    if not others:
        return f"{model} sees to {_length(estimate, unit)} on {task} with {label}{note}."
    equal = [_label(one, judged) for one, _, same in ranked if same == length and one is not best]
    which = f"with {equal[0]}" if len(equal) == 1 else f"under {len(equal)} other conditions"
    also = f", and as long {which}" if equal else ""
    single = [one for one, fitted, _ in ranked if fitted.one_threshold]
    pairs = comb(len(single), 2)
    shorter = sum(one.further > 0 for one in _differences(best, others, threshold, pairs))
    how = "; ".join(filter(None, (correction(pairs, _unpaired(single)), controls)))
    tail = f"{_shown(shorter, len(others))} ({how})."
    headline = f"{model} sees to {_length(estimate, unit)} on {task} with {label}"
    headline += ", the default" * is_usual
    if len(equal) == len(others):
        return f"{headline}, and as far {which.replace('under', 'under the')}; {tail}"
    seen = f"longest length seen under {len(ranked)} conditions"
    if is_usual:
        return f"{headline}, the {seen}{also}; {tail}"
    best_one = f"{_length(estimate, unit)}, with {label}{also}"
    if usual is None:
        return f"The {seen} by {model} on {task} is {best_one}; {tail}"
    return (
        f"{model} sees to {_length(usual[1], unit)} on {task} with {_label(usual[0], judged)}, the "
        f"default; the {seen} is {best_one}; {tail}"
    )


def _which(some: int, conditions: int) -> str:
    """`both conditions`, `all 3 conditions`, `2 of 3 conditions`."""
    if some < conditions:
        return f"{some} of {conditions} conditions"
    return "both conditions" if conditions == _TWO else f"all {conditions} conditions"


def remedies(
    run: JudgedRun,
    threshold: float = THRESHOLD,
    conditions: Collection[Condition] | None = None,
) -> list[str]:
    """What the user can do where something else than sight limits a length, each remedy once."""
    shown = run.shown(conditions)
    estimates = {_label(one, shown): one.effective_length(threshold) for one in shown}
    return remedies_of(estimates, len(shown))


def _differences(
    best: JudgedCondition, others: Sequence[JudgedCondition], threshold: float, pairs: int
) -> list[LengthDifference]:
    """The corrected differences of `best` and each of the others that shares samples with it."""
    sides = Sides(threshold)
    found = []
    for other in others:
        other_rows = have_other_rows(best, other)
        if pair := sides_of(best, other, sides, other_rows=other_rows):
            found.append(sides_difference(*pair, paired=not other_rows))
    return corrected(found, max(pairs, len(found)))


def _unpaired(judged: Sequence[JudgedCondition]) -> int:
    """How many pairs of conditions have other rows."""
    return sum(have_other_rows(*pair) for pair in combinations(judged, 2))


def _label(judged: JudgedCondition, others: Sequence[JudgedCondition]) -> str:
    return varied_label(judged.condition, [other.condition for other in others])


def _length(estimate: EffectiveLength, unit: str) -> str:
    """`29 symbols (95 % interval 21 to 39)`, `less than 5 symbols (95 % interval < 5 to 65)`."""
    interval = estimate.span and f"95 % interval {estimate.span}"
    inside = ", ".join(filter(None, (interval, estimate.note)))
    text = NOT_KNOWN if estimate.length is None else estimate.length.counted(unit)
    return text + (f" ({inside})" if inside else "")


def _shown(shorter: int, others: int) -> str:
    if not shorter:
        return f"no difference from the other condition{'s' * (others > 1)} is shown"
    which = f"{'each' if shorter == others else shorter} of the {others} other conditions"
    return f"that is further than with {which if others > 1 else 'the other condition'}"


def correction(pairs: int, unpaired: int = 0) -> str:
    """How the pairs were compared: with which correction, and how many on other rows."""
    if not pairs:
        return "no pair can be compared"
    rows = "same rows"
    if unpaired:
        rows = "unpaired: other rows"
        rows += f" in {unpaired:,} of {pairs:,} pairs" if unpaired < pairs else ""
    return rows if pairs == 1 else f"{rows}, Holm's correction for {pairs:,} pairs"


def recorded_note(runs: Sequence[tuple[str, JudgedRun]]) -> str:
    """Which of several named runs have recorded replies, and who collected these; or empty."""
    recorded = [(name, of) for name, run in runs if (of := run.manifest.recorded) is not None]
    if not recorded:
        return ""
    names = listed([name for name, _ in recorded], "runs")
    if len(recorded) == len(runs):
        names = {1: names, 2: "both runs"}.get(len(runs), f"all {len(runs)} runs")
    origins = dict.fromkeys(
        " ".join(filter(None, (file.by and f"by {file.by}", file.at and f"in {file.at}")))
        for _, of in recorded
        for file in of.latest
    )
    origin = "; ".join(filter(None, origins))
    return f"Recorded, and not asked here: {names}{origin and f' ({origin})'}."


def reading_note(runs: Sequence[tuple[str, JudgedRun]]) -> str:
    """Which of several named runs are read by likelihood, and what guesses are worth; or empty."""
    chosen = [(name, run) for name, run in runs if run.options]
    if not chosen:
        return ""
    fewest, most = (end(end(run.options) for _, run in chosen) for end in (min, max))
    count = str(most) if fewest == most else f"{fewest} to {most}"
    low, high = (f"{100 * end(run.chance for _, run in chosen):.0f}" for end in (min, max))
    share = low if low == high else f"{low} to {high}"
    names = listed([name for name, _ in chosen], "runs")
    rest = len(runs) - len(chosen)
    others = f"; the other{'s are' if rest > 1 else ' is'} read from replies" if rest else ""
    return (
        f"Read by likelihood over {count} options ({share} % are right by chance): {names}{others}."
    )


def missing_notes(runs: Sequence[tuple[str, JudgedRun]]) -> list[str]:
    """A sentence for each of the named runs that lacks replies: `9 of 20 samples are not scored:
    error 1, not run 8`; with the name of the run where there are several.
    """
    return [
        f"{f'{name}: ' * (len(runs) > 1)}{text}"
        for name, run in runs
        if (text := _missing_note(run))
    ]


def _missing_note(run: JudgedRun) -> str:
    if not run.missing:
        return ""
    planned = int(run.cells["n"].sum()) + run.missing
    are = "is" if run.missing == 1 else "are"
    return f"{run.missing:,} of {planned:,} samples {are} not scored: {unscored_text(run)}."


def cut_notes(runs: Sequence[tuple[str, JudgedRun]]) -> list[str]:
    """A sentence for each of the named runs whose server cut prompts without an error, or may have
    cut them.
    """
    return [
        f"{name}: {said}"
        for name, run in runs
        for said in (_cut_note(run), _one_count_note(run))
        if said
    ]


def _one_count_note(run: JudgedRun) -> str:
    if not (counts := [run.one_counts[one.condition] for one in run.shown(run.one_counts)]):
        return ""
    tokens = [one.tokens for one in counts]
    few, many = f"{min(tokens):,}", f"{max(tokens):,}"
    shortest, longest = min(one.shortest for one in counts), max(one.longest for one in counts)
    return (
        f"the server counts {few if few == many else f'{few} to {many}'} tokens in prompts of "
        f"{shortest:,} as of {longest:,} characters: it cuts them, or these are no counts of them. "
        "If it cuts them, raise its window (Ollama: num_ctx)."
    )


def _cut_note(run: JudgedRun) -> str:
    if not run.judge.cuts:
        return ""
    of_cuts = [place for one in run.shown(run.judge.cuts) for place in one.places]
    samples = run.samples[run.samples["cell"].isin(of_cuts)]
    is_cut = samples["outcome"] == Outcome.OVERFLOW.place
    records, most = samples["record"][is_cut].nunique(), samples["prompt_tokens"][is_cut].max()
    prompts = "1 prompt" if records == 1 else f"{records:,} prompts"
    return (
        f"the server cut {prompts} without an error: by its count none of these has more than "
        f"{most:,.0f} tokens, however long it is."
    )


def unscored_text(run: JudgedRun) -> str:
    """The samples of a run that are not scored, by outcome: `error 1, not run 8`."""
    counts = {name: int(run.cells[name].sum()) for name in NOT_SCORED}
    return ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in counts.items() if n)


def refused_notes(runs: Sequence[tuple[str, JudgedRun]]) -> list[str]:
    """A sentence for each of the named runs whose server samples in a way of its own."""
    return [
        f"{name}: its server does not take {', '.join(refused)}, so the server's own values hold."
        for name, run in runs
        if (refused := run.manifest.refused_sampling)
    ]


def several_models_notes(runs: Sequence[tuple[str, JudgedRun]]) -> list[str]:
    """A sentence for each of the named runs whose replies come from several models."""
    answered_by = [(name, run.manifest.answered_by) for name, run in runs]
    return [
        f"{name}: its replies come from {len(models)} models ({_some(models)}), so its numbers are "
        "those of no single one."
        for name, models in answered_by
        if len(models) > 1
    ]


def _some(names: Sequence[str]) -> str:
    """The first of many names, sorted: `m1, m2, m3 and 4 others`."""
    shown, rest = sorted(names)[:MOST_NAMES], len(names) - MOST_NAMES
    others = f" and {rest} other{'s' * (rest > 1)}"
    return ", ".join(shown) + others * (rest > 0)


def ranking_finding(ranking: Ranking) -> str:
    """Which runs see how far, and which of the others they are shown to see further than."""
    first = ranking.runs[0]
    task, runs, conditions = first.run.manifest.task, len(ranking.runs), len(ranking.conditions)
    if not any(one for ranked in ranking.runs for one in ranked.estimates.values()):
        return f"No sample of {task} is scored, so it is not known how far the models see."
    estimate = next(iter(first.estimates.values()))
    count = sum(one.is_ranked for one in ranking.runs)
    every = " under every condition" if conditions > 1 else ""
    if not count or estimate is None:
        return f"None of the {runs} runs has a known effective length on {task}{every}."
    of = (
        f" in the mean of {conditions} conditions"
        if conditions > 1
        else f", {_length(estimate, ranking.unit)}"
    )
    how = correction(len(ranking.tested), sum(not one.is_paired for one in ranking.tested))
    if count < runs:
        how += f"; {runs - count} not ranked"
    best = [place for place, one in enumerate(ranking.runs) if one.rank_key == first.rank_key]
    shorter = set.intersection(*(set(ranking.further_than(place)) for place in best))
    subject = listed([ranking.runs[place].name for place in best], "runs")
    outside = _outside(first) if len(best) > 1 else ""
    if len(best) == count and outside:
        return (
            f"{subject} cannot be ordered on {task}: their effective lengths lie {outside} ({how})."
        )
    if count == 1:
        others = "the others are" if runs > _TWO else "the other one is"
        return (
            f"Of {runs} runs only {subject} has a known effective length on {task}{every or of}; "
            f"{others} not ranked."
        )
    if len(best) == count:
        return (
            f"{subject} have the same effective length on {task}{of}; no difference between them "
            f"is shown ({how})."
        )
    has, it = ("have", "they") if len(best) > 1 else ("has", "it")
    what = _further(
        [ranking.runs[place].name for place in sorted(shorter)],
        count - len(best),
        plural=it == "they",
    )
    if outside:
        return (
            f"{subject} cannot be ordered on {task}: their effective lengths lie {outside}; {it} "
            f"{what} ({how})."
        )
    behind = [one for place, one in enumerate(ranking.runs) if place not in best]
    return f"{subject} {has} {longest_of(behind)} on {task}{of}; {it} {what} ({how})."


def not_by_length(ranking: Ranking, margin: float) -> str:
    """Why a run can be worse or better where no difference in effective length was found; empty
    where there is none.
    """
    reference = ranking.runs[ranking.reference].name
    said = [
        f"{ranking.runs[place].name} is {change} than {reference}"
        for place, comparison in ranking.against_reference
        if not comparison.length.further
        if (change := comparison.change(margin)) in ("worse", "better")
    ]
    if not said:
        return ""
    runs = f"{len(said)} runs are worse or better than {reference}"
    which = runs if len(said) > MOST_NAMES else listed(said, "")
    return (
        f"{which} though no difference was found between their effective lengths: "
        "“worse” and “better” are also about the areas and the accuracy at each length, and areas "
        "are not corrected for all pairs."
    )


def ranking_notes(ranking: Ranking) -> list[str]:
    """Why some of the runs are not ranked, and what helps; a sentence for each of them."""
    conditions = ranking.conditions
    return [
        not_ranked(
            ranked.name,
            {
                varied_label(condition, conditions): one
                for condition, one in ranked.estimates.items()
                if one is None or not one.is_ranked
            },
            ranking.unit,
            len(conditions),
        )
        for ranked in ranking.runs
        if not ranked.is_ranked
    ]


def _outside(ranked: Ranked) -> str:
    """`beyond the longest line asked` if the effective lengths of a run lie there under all
    conditions, or the like below the shortest line; else empty.
    """
    estimates = ranked.estimates.values()
    return outside_text({one.length.sign for one in estimates if one and one.length})


def longest_of(others: Iterable[Ranked]) -> str:
    """`the longest effective length`, or `the longest known effective length` where that of another
    run which is ranked lies beyond its lines.
    """
    ranked = [one for one in others if one.is_ranked]
    lengths = [found and found.length for one in ranked for found in one.estimates.values()]
    known = " known" if any(length and length.sign == ">" for length in lengths) else ""
    return f"the longest{known} effective length"


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
    return f"{see} further than {listed(shorter, 'runs')}{also}"
