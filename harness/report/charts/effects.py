"""The effects of axes and of models that a section shows."""

from __future__ import annotations

from dataclasses import dataclass

from eyechart.harness.analysis.comparison.comparison import Comparison, compare_runs
from eyechart.harness.analysis.comparison.effects import Effect, effects
from eyechart.harness.analysis.comparison.family import RankedRun, in_family
from eyechart.harness.analysis.ranking.standing import Standing
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.errors import CompareError
from eyechart.harness.report.page.section import Section


def effects_of(section: Section) -> list[Effect]:
    """The effects of all runs of a section."""
    return [effect for details in section.runs for effect in effects(details.run, details.name)]


@dataclass(frozen=True)
class Gap:
    """The model with the longest effective length against another one, on the same samples."""

    comparison: Comparison
    """The model with the longest effective length is the first."""
    effects: tuple[Effect, ...]
    """The comparison under each condition that both have."""


def gaps(section: Section, ranks: Standing) -> list[Gap]:
    """The best model of a standing against each other model that was asked the same samples, with
    Holm's correction: over all conditions that both have, or over the standing's condition if there
    are too many models.
    """
    if not ranks.complete:
        found = [
            comparison for (best, _), comparison in ranks.ranking.comparisons.items() if best == 0
        ]
    else:
        compared = [_against(ranks.ranking.runs[0], other) for other in ranks.ranking.runs[1:]]
        found = in_family([comparison for comparison in compared if comparison is not None])
    runs = {details.name: details.run for details in section.runs}
    return [Gap(one, _of_models(section, runs[one.first], one)) for one in found]


def _against(best: RankedRun, other: RankedRun) -> Comparison | None:
    """The comparison; `None` if the models share no scored sample."""
    try:
        return compare_runs(best.run, other.run, names=(best.name, other.name))
    except CompareError:
        return None


def _of_models(section: Section, run: JudgedRun, comparison: Comparison) -> tuple[Effect, ...]:
    return tuple(
        Effect(
            comparison.first,
            run,
            "model",
            comparison.second,
            comparison.first,
            compared.condition.only(section.varied),
            compared,
        )
        for compared in comparison.conditions
    )
