"""The standing of the models of a task on the page: a line for each, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eyechart.harness.analysis.interval import Bound, span_text
from eyechart.harness.analysis.not_known import not_ranked
from eyechart.harness.analysis.run_text import (
    correction,
    outside_text,
    ranking_finding,
    remedies,
)
from eyechart.harness.analysis.standing import Place, Standing
from eyechart.harness.analysis.tokens_text import unit_note
from eyechart.harness.report.section import Section


@dataclass(frozen=True)
class StandingLine:
    """One model, or one task of a page about a single model."""

    ranks: str
    name: str
    adaptive: bool
    length: str
    """`43`, `> 160`; a dash without a scored sample."""
    interval: str
    note: str
    """The note beside the length; mostly empty."""
    median: str
    """The median over all conditions except controls; a dash if there is one."""
    conditions: int
    """Number of conditions in the median."""
    left_out: int
    """Number of conditions that are not in it."""
    bar: tuple[float, float | None, float] | None
    """Lower end, length and upper end on the scale of the task, in percent; the length is `None`
    where it is not known."""


def standing_lines(section: Section, standing: Standing) -> list[StandingLine]:
    """A line for each model, the longest effective length first."""
    return [_line(place, section.lengths) for place in standing.places]


def _line(place: Place, lengths: Sequence[int]) -> StandingLine:
    estimate = place.estimate
    return StandingLine(
        place.ranks_text,
        place.name,
        place.adaptive,
        "–" if estimate is None else estimate.length_text,
        "" if estimate is None else span_text(estimate.length_ci),
        "no scored sample" if estimate is None else estimate.note,
        "–" if place.median is None else str(place.median),
        place.conditions,
        place.left_out,
        None
        if estimate is None
        else (
            _percent(estimate.length_ci[0], lengths),
            None if estimate.length is None else _percent(estimate.length, lengths),
            _percent(estimate.length_ci[1], lengths),
        ),
    )


def _percent(bound: Bound, lengths: Sequence[int]) -> float:
    """The place of a length between the shortest and the longest one, on a scale of logarithms."""
    low, high = lengths[0], lengths[-1]
    if low == high:
        return 50.0
    share = math.log(max(bound.length, low) / low) / math.log(high / low)
    return round(100 * min(share, 1.0), 1)


def standing_finding(standing: Standing) -> str:
    """Which model sees farthest, and which see less far by test; empty for a single model."""
    ranking = standing.ranking
    others = len(ranking.runs) - 1
    if others < 1:
        return ""
    if not standing.apart and not standing.unpaired and standing.complete:
        return ranking_finding(ranking)
    best = ranking.runs[0]
    estimate = best.estimates[standing.condition]
    tests = standing.tests
    count = standing.behind_first
    which = f"{count or 'any'} of the {others} others" if others > 1 else ranking.runs[1].name
    shown = f"{best.name} is {'' if count else 'not '}shown to see further than {which}"
    tied = [one.name for one in ranking.runs[1:] if one.rank_key == best.rank_key]
    others_too = f"and {tied[0] if len(tied) == 1 else f'{len(tied)} others'}"
    length = estimate and estimate.length
    outside = outside_text([length.sign]) if tied and length else ""
    if outside:
        first = f"{best.name} {others_too} cannot be ordered: their effective lengths lie {outside}"
    else:
        has = f"{others_too} have" if tied else "has"
        first = f"{best.name} {has} the longest effective length, {estimate}"
    return f"{first}; {shown} ({correction(tests, standing.unpaired)})."


def condition_text(section: Section, standing: Standing) -> str:
    """The condition of the standing by the axes that vary; empty if none does."""
    values = standing.condition.only(section.varied)
    if not values:
        return ""
    text = ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in values.items())
    return f"{text} (the default)" if standing.default else text


def _place_notes(place: Place, standing: Standing) -> Iterator[str]:
    """Why a model is not ranked, and what helps; and what helps under its other conditions."""
    estimate = place.estimate
    if estimate is None:
        return
    if not estimate.is_ranked:
        label, unit = standing.condition.label, place.run.spec.unit
        yield not_ranked(place.name, {label: estimate}, unit, 1)
    mine = estimate.limit.remedies
    more = [one for one in remedies(place.run, estimate.threshold) if not one.endswith(mine)]
    if more:
        yield f"To know how far {place.name} sees under all conditions, {'; '.join(more)}."


def standing_notes(standing: Standing) -> list[str]:
    """Limits of the ranks, in sentences; mostly empty."""
    notes = [note for place in standing.places for note in _place_notes(place, standing)]
    if standing.in_tokens:
        unit = standing.places[0].run.spec.unit
        notes.append(unit_note([place.tokens for place in standing.places], unit))
    if not standing.complete:
        notes.append(
            f"Of {len(standing.places)} models the effective lengths of each pair were compared, "
            "and single lines and areas with the first one only."
        )
    if standing.unpaired:
        rows = "replies to other rows, so their effective lengths were compared without pairing"
        one = standing.unpaired == 1
        notes.append(
            f"{standing.unpaired:,} pair{'' if one else 's'} of models {'has' if one else 'have'} "
            f"{rows}."
        )
    if standing.apart:
        apart = standing.apart
        notes.append(
            f"{apart} pair{'s' * (apart > 1)} of models cannot be compared: they were asked other "
            "samples, or none was scored for both."
        )
    return notes
