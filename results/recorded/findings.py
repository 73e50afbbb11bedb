"""What the replies show, in sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from eyechart.harness.analysis.length.limit import RANKED
from results.recorded.contrasts import Contrast, contrasts, rank_correlation
from results.recorded.power import smallest_fall
from results.recorded.tables import published, share, tables
from results.recorded.variants import USUAL, Variant

_SIGNIFICANT = 0.05
_FAR = 100
"""Items that only some models count."""


def findings(found: Sequence[Variant]) -> Iterator[str]:
    """The sentences of the README, each made from the numbers that it names."""
    models, writings = tables(found)
    made = contrasts(found)
    yield from _reach(found, models)
    yield from _changes(made)
    yield _of_size(models)
    yield _of_retests(found, writings)


def _reach(found: Sequence[Variant], models: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    known = [row for row in models if row["limited_by"] in RANKED and row["effective_length"]]
    best = known[0]
    far = sum(float(row["effective_length"]) >= _FAR for row in known)
    below = sum(row["effective_length_bound"] == "<" for row in known)
    yield (
        f"**Exact counting ends early.** {best['model']} counts furthest: "
        f"{best['effective_length']} items exactly in 85 % of its replies (95 % interval "
        f"{best['effective_length_ci_low']} to {best['effective_length_ci_high']}). "
        f"{share(far, len(known))} models count {_FAR} items or more; {below} fail on the shortest "
        "rows that they were asked."
    )
    for row in models:
        if row["replies"] and row not in known:
            at_least = f" (at least {row['effective_length']})" if row["effective_length"] else ""
            why = "with so few replies"
            if row["limited_by"] not in RANKED:
                why = f"it is limited by {row['limited_by']}"
            yield f"**Not known** is how far {row['model']} counts{at_least}: {why}."
    asked = [one for one in found if one.set != "stimulus"]
    able = [one for one in asked if one.capacity_number]
    shares = [
        100 * sum(outcome == "correct" for outcome, _ in trials.values()) / len(trials)
        for one in able
        for trials in [one.outcomes[one.capacity_number]]
    ]
    yield (
        f"**The capacity is no accuracy.** By our reading {share(len(able), len(asked))} models "
        f"have a capacity; the other {len(asked) - len(able)} fail on each of their lines. At its "
        f"capacity the median of these {len(able)} models is exactly right in "
        f"{np.median(shares):.0f} % of its replies; the rest misses by a few items, which the "
        "capacity forgives."
    )


def _changes(made: Sequence[tuple[Contrast, float]]) -> Iterator[str]:
    heads = {
        "size": ("Size.", "the larger of two models is right more often"),
        "generation": ("Generation.", "the newer of two models is right more often"),
        "reasoning": ("Reasoning.", "the variant that thinks is right more often than its twin"),
        "delimiter": ("Delimiter.", "`, ` is better than another delimiter, with the item a"),
        "item": ("Item.", "the item a is better than another one, with the delimiter `, `"),
    }
    for question, (head, better) in heads.items():
        of_question = [(one, p) for one, p in made if one.question == question]
        sure = [(one, p) for one, p in of_question if p < _SIGNIFICANT]
        for_first = sum(one.shares[0] > one.shares[1] for one, _ in sure)
        worse = f", and in {len(sure) - for_first} worse" if for_first < len(sure) else ""
        paired = sum(one.is_paired for one, _ in of_question)
        told = "".join(f"\n    - {_told(one, p)}" for one, p in sure)
        how = {0: "all unpaired", len(of_question): "all paired"}.get(paired, f"{paired} paired")
        yield (
            f"**{head}** In {for_first} of {len(of_question)} tests ({how}) {better}{worse}. The "
            f"{len(of_question) - len(sure)} others show no difference.{told}"
        )


def _told(one: Contrast, p: float) -> str:
    first, second = one.shares
    rows = "same rows" if one.is_paired else "other rows"
    return (
        f"{one.first} {first:.0f} %, {one.second} {second:.0f} % (lines {one.lines[0]} to "
        f"{one.lines[-1]}, {rows}, p = {p:.2g})"
    )


def _of_size(models: Sequence[Mapping[str, Any]]) -> str:
    sized = [row for row in models if row["parameters_billion"] and row["set"] == "open"]
    sizes = [float(row["parameters_billion"]) for row in sized]
    coefficient, p = rank_correlation(sizes, [row["capacity_published"] for row in sized])
    ours, _ = rank_correlation(sizes, [row["capacity"] for row in sized])
    return (
        f"**Over the {len(sized)} open models of known size** the published capacity and the "
        f"number of parameters go together (Spearman {coefficient:.3f}, p = {p:.2g} by "
        f"permutation; {ours:.3f} for the capacity by our reading; an association, as sizes "
        "differ in age and maker too)."
    )


def _of_retests(found: Sequence[Variant], writings: Sequence[Mapping[str, Any]]) -> str:
    made = contrasts(found)
    retests = [one for one, _ in made if one.question == "retest"]
    shown = sum(p < _SIGNIFICANT for one, p in made if one.question == "retest")
    level = _SIGNIFICANT / sum(p >= _SIGNIFICANT for _, p in made)
    falls = [(one.second.split()[0], smallest_fall(one.strata, level)) for one in retests]
    power = ", ".join(
        f"{before:.0f} % to {after:.0f} % ({name})" for name, (before, after) in falls
    )
    first = {one.model: one for one in found if one.set != "stimulus"}
    again = {one.model: one for one in found if one.set == "stimulus" and one.writing == USUAL}
    published = {
        row["model"]: row["capacity_published"]
        for row in writings
        if (row["item"], row["delimiter"]) == ("a", "comma")
    }
    told = "; ".join(
        f"{model} {first[model].estimate.length_text} and {one.estimate.length_text} (capacity "
        f"{reported(first[model])} and {published[model]})"
        for model, one in again.items()
    )
    return (
        f"**The same model asked twice.** {share(shown, len(retests))} retests show a difference, "
        "and they could not show a small one: with so few rows, corrected as here, such a test "
        f"finds in 80 % of cases a fall of the accuracy from {power} or a larger one. The lengths "
        f"were: {told}."
    )


def reported(variant: Variant) -> int:
    """The published capacity."""
    return int(float(published()[variant.set, variant.model, variant.writing]["capacity"]))
