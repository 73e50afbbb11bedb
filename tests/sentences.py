"""The sentences of findings, by their kinds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eyechart.harness.analysis.comparison.family import Ranking
from eyechart.harness.analysis.findings.finding import Finding
from eyechart.harness.analysis.findings.moved import moved
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.ranks import of_ranking
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.settings.judging import MARGIN
from eyechart.harness.spec import Condition


def said(found: Sequence[Finding], *kinds: str) -> str:
    """The sentences of the findings of these kinds, in their order."""
    return " ".join(one.sentence for one in found if one.kind in kinds)


def headline(
    run: JudgedRun,
    conditions: Collection[Condition] | None = None,
) -> str:
    """How far a model sees, and where this is not known."""
    return said(findings(run, conditions), "effective length", "not known")


def moved_text(run: JudgedRun, name: str = "") -> str:
    """What moved the effective length of a model, and what did not."""
    return " ".join(map(str, moved(run, name or run.manifest.model)))


def ranks(ranking: Ranking) -> str:
    """Which of several runs are right furthest."""
    return said(of_ranking(ranking, MARGIN), "ranks")
