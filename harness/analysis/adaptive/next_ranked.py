"""Which of several runs are asked next, so that their order, or the best of them, is known.

Between two looks only models in an open pair are asked: neighbours whose order is open, or the
model that is right furthest and those that may be. This is successive elimination (Even-Dar,
Mannor & Mansour 2006, JMLR 7) with a fixed price and as many looks as a pair has, as in sequential
halving (Karnin, Koren & Somekh 2013, ICML). `results/simulations` has what it
finds for its price.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from eyechart.harness.analysis.adaptive.adaptive import around_crossing
from eyechart.harness.analysis.adaptive.next_pairs import (
    Counts,
    by_line,
    draws_of,
    is_decided,
    is_found,
    planned,
)
from eyechart.harness.analysis.comparison.comparison_text import margin_text
from eyechart.harness.analysis.comparison.family import RankedRun, Ranking
from eyechart.harness.analysis.findings.finding import listed
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.plan.selection import MOST_SAMPLES
from eyechart.harness.settings.judging import Margin, factor_of
from eyechart.harness.spec import CellKey, Condition

BEST, RANKS = "best", "ranks"
QUESTIONS = (RANKS, BEST)
"""What may be asked for: the order of all runs, or which of them is right furthest."""

_KNOWN = {
    RANKS: "no two neighbours in the ranking are open",
    BEST: "it is decided which run is right furthest",
}
_ASKED_FOR = {RANKS: "the order that is open", BEST: "which run is right furthest"}


def pairs_of(question: str, places: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of places, the longest length first, whose order is asked for."""
    if question == BEST:
        return [(places[0], place) for place in places[1:]]
    return list(pairwise(places))


def open_pairs(ranking: Ranking, question: str, margin: Margin) -> list[tuple[int, int]]:
    """The places of the pairs whose order is asked for and not decided. Left out is what more
    samples do not show: the order of a run that has no single threshold, or is limited by something
    else than sight, and that of two runs that are both right beyond the longest line.
    """
    return [
        pair
        for pair in asked_pairs(ranking, question)
        if not is_decided(ranking.comparisons[pair], margin)
    ]


def asked_pairs(ranking: Ranking, question: str) -> list[tuple[int, int]]:
    """The places of the pairs whose order is asked for, and that more samples can show."""
    ordered = _ordered(ranking)
    return [
        (left, right)
        for left, right in (pairs_of(question, ordered) if ordered else ())
        if not _are_outside(ranking.runs[left], ranking.runs[right])
    ]


def why_none_is_open(ranking: Ranking, question: str, margin: Margin) -> str:
    """Why `open_pairs` is empty: an equivalent pair is asked no more, and its order stays open."""
    asked, ordered = asked_pairs(ranking, question), _ordered(ranking)
    alike = [pair for pair in asked if not ranking.comparisons[pair].length.further]
    is_equivalent = all(ranking.comparisons[pair].change(margin) == "equivalent" for pair in alike)
    if not asked or len(asked) < len(ordered) - 1 or not is_equivalent:
        return f"more samples would not show {_ASKED_FOR[question]}"
    if alike:
        return _equivalent(ranking, question, alike, margin)
    of_those = " of those that can be compared" if len(ordered) < len(ranking.runs) else ""
    return f"{_KNOWN[question]}{of_those}"


def _equivalent(
    ranking: Ranking, question: str, pairs: Sequence[tuple[int, int]], margin: Margin
) -> str:
    comparisons = [ranking.comparisons[pair] for pair in pairs]
    what = "areas" if factor_of(margin) is None else "lengths"
    how = f"({what} equal within {margin_text(margin, *comparisons)})"
    if question == RANKS:
        return f"the neighbours whose order is open are equivalent {how}"
    others = listed([ranking.runs[right].name for _, right in pairs], "runs")
    best = ranking.runs[pairs[0][0]].name
    return (
        f"{others} {'is' if len(pairs) == 1 else 'are'} equivalent to {best} {how}, so which of "
        "them is right furthest stays open"
    )


def _ordered(ranking: Ranking) -> list[int]:
    return [place for place, one in enumerate(ranking.runs) if _has_order(one)]


def _has_order(one: RankedRun) -> bool:
    return one.is_ranked and all(found and found.one_threshold for found in one.estimates.values())


def _are_outside(*both: RankedRun) -> bool:
    """Whether both intervals lie beyond the longest line, or below the shortest, everywhere."""
    ends = [found.length_ci for one in both for found in one.estimates.values() if found]
    return all(low.sign == ">" for low, _ in ends) or all(high.sign == "<" for _, high in ends)


def lines_of_all(ranking: Ranking, question: str, margin: Margin) -> dict[Path, Counts]:
    """Folder -> what each run is to have before rows are added, see `with_lines_of_all`. Left out
    are runs whose order is found.
    """
    found = {ranking.runs[place].run.folder for place in _found(ranking, question, margin)}
    wanted = with_lines_of_all([one.run for one in ranking.runs], ranking.conditions)
    return {folder: counts for folder, counts in wanted.items() if folder not in found}


def with_lines_of_all(
    runs: Sequence[JudgedRun], conditions: Collection[Condition]
) -> dict[Path, Counts]:
    """Folder -> the cells of a run, and those under these conditions that it lacks of others, with
    as many samples as the run that has fewest there.
    """
    fewest: dict[CellKey, int] = {}
    for run in runs:
        for key, samples in planned(run).items():
            if key[0] in conditions:
                fewest[key] = min(samples, fewest.get(key, samples))
    return {run.folder: by_line({**fewest, **planned(run)}) for run in runs}


def _found(ranking: Ranking, question: str, margin: Margin) -> set[int]:
    """The places of the runs that are in order, and of which each pair asked for is found."""
    ordered = _ordered(ranking)
    pairs = pairs_of(question, ordered) if ordered else []
    return {
        place
        for place in ordered
        if all(is_found(ranking.comparisons[pair], margin) for pair in pairs if place in pair)
    }


def more_of_open(
    ranking: Ranking, pairs: Sequence[tuple[int, int]], requests: int
) -> Mapping[Path, Counts]:
    """Folder -> what each run in one of the open `pairs` is to have, for at most so many requests
    more: as many for each, on the lines where its crossing may lie.
    """
    asked = {place for pair in pairs for place in pair}
    wanted = {}
    for place in asked:
        ranked = ranking.runs[place]
        rows = requests // len(asked) // draws_of(ranked.run)
        wanted[ranked.run.folder] = _with_rows(ranked, rows)
    return wanted


def _with_rows(ranked: RankedRun, rows: int) -> Counts:
    """The cells of a run with so many rows more, at most."""
    wanted = dict(planned(ranked.run))
    for condition, estimate in ranked.estimates.items():
        lines = [line for at, line in wanted if at == condition]
        if estimate is not None:
            more = around_crossing(estimate.fit, lines, rows // len(ranked.estimates))
            for line, count in more.items():
                has = wanted[condition, line]
                wanted[condition, line] = max(has, min(has + count, MOST_SAMPLES))
    return wanted
