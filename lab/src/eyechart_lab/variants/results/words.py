"""The sentences of a study: one for each variant under each condition, carried by its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.analysis import SIGNIFICANT, span_text
from eyechart.harness.settings.judging import THRESHOLD
from eyechart_lab.variants.results.results import (
    LEARNT,
    Result,
    VariantComparison,
    is_beyond,
    known_rows,
    p_text,
    share_span_text,
    share_text,
)
from eyechart_lab.variants.results.seeds import FEWEST, SeedValue, fewest_seeds, smallest_pair_p
from eyechart_lab.variants.study import LabSpec


def sentence(one: Result, reference: str) -> str:
    """`alibi: learned the trained lengths (to 32, asked at 4 to 31) in 3 of 3 seeds, …; right to 45
    (38 to 52), …`.
    """
    parts = (
        _learnt(one),
        _within(one, reference),
        _seen(one),
        _against(one, reference),
        _beyond(one, reference),
    )
    return f"{one.variant}: {''.join(parts)}."


def _of(count: int, one: Result) -> str:
    seeds = len(one.seeds)
    return f"{count} of {seeds} seed{'s' * (seeds != 1)}"


def _learnt(one: Result) -> str:
    """What became of the trainings."""
    said = []
    if one.diverged:
        so = "" if one.trained else ", so there is no trained model"
        said.append(f"the training diverged in {_of(one.diverged, one)}{so}")
    if not one.trained:
        return said[0]
    if one.asked_within is None:
        return ", ".join(
            [*said, f"was asked no line within the trained lengths (to {one.trained_to})"]
        )
    low, high = one.asked_within
    asked = f"{low} to {high}" if low < high else str(low)
    lengths = f"the trained lengths (to {one.trained_to}, asked at {asked})"
    failed = len(one.trained) - one.learnt
    if failed:
        reached = [of.accuracy for of in one.trained if of.accuracy is not None]
        below = [share for share in reached if share < LEARNT]
        span = f", with {_shares(below)} right there" if below else ""
        said.append(f"did not reach {100 * LEARNT:g} % at {lengths} in {_of(failed, one)}{span}")
    if one.learnt:
        said.append(f"learned {lengths} in {_of(one.learnt, one)}")
    return ", ".join(said)


def _shares(reached: Sequence[float]) -> str:
    """`12 %`, `12 % to 20 %`."""
    low, high = (f"{100 * share:.0f} %" for share in (min(reached), max(reached)))
    return low if low == high else f"{low} to {high}"


def _seen(one: Result) -> str:
    """How far the models are right, and whether that is beyond their training."""
    span, length = one.span, one.length
    unknown = ""
    if one.unknown:
        unknown = f"; the length of {_of(one.unknown, one)} is not known, and counts for nothing"
    if length is None:
        mixed = f"; some models see less than {one.shortest}, others more than {one.limit}"
        return f"{unknown}{mixed}, so the mean length is not known" if one.seen else unknown
    told = f" ({span_text(span)})" if span and span_text(span) != str(length) else ""
    models = f" in the other {len(one.seen)}" if one.diverged or one.unknown else ""
    said = f"{unknown}; is right to {length.words}{told}{models}"
    if one.answers_end and length.sign == ">":
        return f"{said}, where the answers of the training end"
    if not one.learnt:
        return said
    if span is None:
        return f"{said}, without an interval over fewer than {FEWEST} models"
    low, high = span
    if low.sign != "<" and low.length > one.trained_to:
        return f"{said}, beyond the trained lengths"
    if high.sign != ">" and high.length < one.limit and high.length <= one.trained_to:
        return f"{said}, not beyond the trained lengths"
    return f"{said}, and it is open whether that is beyond the trained lengths"


def _against(one: Result, reference: str) -> str:
    """The comparison of how far the models are right with the reference."""
    of = one.by_length
    if of.verdict == "no reference":
        return f"; nothing to compare it with, since no length of {reference} is known"
    if of.verdict == "answers end":
        return f"; not compared with {reference}, which is right to there as well"
    said = _difference(
        of, reference, better="is right farther than", worse="is right less far than"
    )
    return said and f"; {said}"


def _within(one: Result, reference: str) -> str:
    """How many rows of trained lengths the models have right, and the comparison."""
    if not one.within:
        return ""
    return _share(one.within, "rows of these lengths", one, one.by_within, reference)


def _beyond(one: Result, reference: str) -> str:
    """How many longer rows the models have right, and the comparison with the reference."""
    longer = [line for line in one.lines if is_beyond(line)]
    if one.beyond:
        known = sum(map(known_rows, longer)) < sum(line.n for line in longer)
        rows = "longer rows whose answer the training had" if known else "longer rows"
        return _share(one.beyond, rows, one, one.by_beyond, reference)
    if one.trained and longer:
        return "; nothing is said of longer rows, since the training had none of their answers"
    return ""


def _share(
    models: Sequence[SeedValue], rows: str, one: Result, of: VariantComparison, reference: str
) -> str:
    """A share of right answers, its interval, and the comparison with the reference."""
    span = f" ({told})" if (told := share_span_text(models)) else ""
    said = f"; right on {share_text(models)} of {rows}{span}"
    if of.verdict == one.by_length.verdict == "too few seeds":
        return said
    more = _difference(of, reference, better="more often than", worse="less often than")
    return f"{said}, {more}" if more else said


def _difference(of: VariantComparison, reference: str, *, better: str, worse: str) -> str:
    """What a comparison with the reference says; empty where there is none."""
    if of.p is None or of.smallest_p is None:
        return ""
    if of.verdict == "too few seeds":
        return (
            f"nothing can be said of a difference to {reference}: p is {p_text(of.p)}, and no p "
            f"below {p_text(of.smallest_p)} is possible with so few seeds"
        )
    if of.verdict == "no difference":
        return f"no difference to {reference} found (p = {p_text(of.p)})"
    kind = better if of.verdict == "better" else worse
    return f"{kind} {reference} over seeds (p = {p_text(of.p)})"


_GROUPS = {
    "better": "is right farther than {reference} over seeds",
    "worse": "is right less far than {reference} over seeds",
    "no difference": "no difference to {reference} found",
    "too few seeds": "too few seeds to compare with {reference}",
    "not trained": "no training came to its end",
    "not known": "no length is known",
    "no reference": "nothing to compare with, since no length of {reference} is known",
    "answers end": "right to where the answers of the training end, as {reference} is",
}
_OF_TRAINED = {
    "better": "right on more rows of trained lengths than {reference} over seeds",
    "worse": "right on fewer rows of trained lengths than {reference} over seeds",
    "no difference": "no difference to {reference} found in rows of trained lengths",
}
_OF_LONGER = {
    "better": "right on more of the longer rows than {reference} over seeds",
    "worse": "right on fewer of the longer rows than {reference} over seeds",
    "no difference": "no difference to {reference} found in longer rows",
}


def summary(mine: Sequence[Result], reference: str) -> str:
    """What the seeds say of all variants under one condition, in a line, such as "Is right farther
    than rope over seeds: none, alibi. No difference to rope found: kerple.".
    """
    found = (
        (_GROUPS, [one.by_length.verdict for one in mine]),
        (_OF_TRAINED, [one.by_within.verdict for one in mine]),
        (_OF_LONGER, [one.by_beyond.verdict for one in mine]),
    )
    groups = {
        said.format(reference=reference): [
            one.variant for one, own in zip(mine, verdicts, strict=True) if own == verdict
        ]
        for words, verdicts in found
        for verdict, said in words.items()
    }
    lines = [f"{said}: {', '.join(names)}" for said, names in groups.items() if names]
    return " ".join(f"{line[0].upper()}{line[1:]}." for line in lines)


def ceilings_text(mine: Sequence[Result]) -> str:
    """How many rows of each line have an answer that the training had, in a sentence; empty if no
    line was asked, or if it is not known.
    """
    told = [(one.length_low, one.length_high, one.ceiling) for one in mine[0].lines]
    if not told or any(ceiling is None for *_, ceiling in told):
        return ""
    spans: list[tuple[int | None, int | None, str]] = []
    for low, high, ceiling in told:
        share = f"{100 * (ceiling or 0):.0f} %"
        joins = spans and spans[-1][2] == share
        spans.append((spans.pop()[0] if joins else low, high, share))
    parts = [f"{share} at {low} to {high} symbols" for low, high, share in spans]
    said = f"Rows whose answer the training had: {', '.join(parts)}."
    if not mine[0].answers_end:
        return said
    return (
        f"{said} Lines with less than {100 * THRESHOLD:g} %, and those after them, do not say how "
        "far a model sees."
    )


def method(results: Sequence[Result], reference: str) -> str:
    """What the numbers of a study mean, how variants are compared, and what so many seeds show."""
    said = (
        f"A model has learned the trained lengths if it is right on {100 * LEARNT:g} % of the rows "
        "of the lines that end within them. It is right to the length at which its curve over all "
        f"lines falls below {100 * THRESHOLD:g} %, which may lie between two lines."
    )
    others = max(
        (sum(other.where == one.where for other in results) - 1 for one in results), default=0
    )
    if others < 1:
        return said
    smallest = [
        of.smallest_p
        for one in results
        for of in (one.by_length, one.by_within)
        if of.smallest_p is not None
    ]
    least, most = min(smallest, default=1.0), max(smallest, default=1.0)
    fewer = f" ({p_text(most)} where fewer lengths are known)" if most > least else ""
    return (
        f"{said} A seed of training is the unit. Each variant is compared with {reference} by the "
        "exact permutation test of the mean log length over models whose length is known, "
        "corrected by Holm over the variants of a condition; with these seeds p cannot be below "
        f"{p_text(least)}{fewer}, and one of them can be called better from {fewest_seeds(others)} "
        "seeds on. "
        "The shares of right answers to rows of trained lengths, and to longer rows whose answer "
        "the training had, are compared likewise over all trained models, and each is corrected by "
        "itself. Intervals are over rows and seeds."
    )


def shared_training(spec: LabSpec) -> str:
    """Which variants have the trained weights of the reference, and what that means for the test;
    empty if none has.
    """
    weights = spec.variants[spec.reference].trained_as
    names = [
        name
        for name, variant in spec.variants.items()
        if name != spec.reference and variant.trained_as == weights
    ]
    if not names:
        return ""
    others = len(spec.variants) - 1
    least = min(1.0, others * smallest_pair_p(spec.seeds))
    pairs = f"{spec.seeds:,} pair{'s' * (spec.seeds != 1)}"
    after = f" after the correction for {others:,} variants" if others > 1 else ""
    signs = f"Changes of signs over {pairs} would allow for that"
    if least > SIGNIFICANT:
        signs += f", but with so few seeds their p cannot be below {p_text(least)}{after}"
    return (
        f"Asked with the trained weights of {spec.reference}: {', '.join(names)}. The permutation "
        "test takes the two models of a seed for independent ones, which they are not. Where they "
        "go together, it says a difference less often than its level where there is none, and can "
        f"miss one that each seed shows. {signs}."
    )


def recipe(spec: LabSpec) -> str:
    """How all variants were trained and asked, in a line."""
    training = spec.training
    read = {
        "reply": "the replies are read",
        "likelihood": "the likeliest of given answers counts as the reply (read: likelihood)",
    }
    return (
        f"{spec.seeds:,} seed{'s' * (spec.seeds != 1)} of {training.steps:,} steps of "
        f"{training.rows:,} rows, learning rate {training.learning_rate:g} at most; "
        f"layers {_sizes(spec, 'layers')}, width {_sizes(spec, 'width')}, heads "
        f"{_sizes(spec, 'heads')}; {read[spec.read]}."
    )


def missing(spec: LabSpec, results: Sequence[Result]) -> str:
    """How many models are not trained or asked yet, so not in the results; empty if none."""
    wheres = {one.where for one in results}
    there = sum(len(one.seeds) for one in results) // max(1, len(wheres))
    models = len(spec.variants) * spec.seeds
    return f"{models - there} of {models} models are missing here." if there < models else ""


def _sizes(spec: LabSpec, name: str) -> str:
    """`2`, or `2 or 4` where variants differ."""
    sizes = sorted({int(getattr(one, name)) for one in spec.variants.values()})
    return " or ".join(f"{size:,}" for size in sizes)
