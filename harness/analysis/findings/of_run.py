"""The findings of one run."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from eyechart.harness.analysis.findings.confidence import confidence
from eyechart.harness.analysis.findings.finding import Finding, in_order
from eyechart.harness.analysis.findings.level import level
from eyechart.harness.analysis.findings.moved import moved
from eyechart.harness.analysis.findings.not_known import not_known
from eyechart.harness.analysis.findings.patterns import patterns
from eyechart.harness.analysis.findings.right_to import right_to
from eyechart.harness.analysis.findings.same_mistake import same_mistake
from eyechart.harness.analysis.findings.served import cuts, doubts, lost, origins, repeated, steps
from eyechart.harness.analysis.findings.unread import right_in_wrong, unread
from eyechart.harness.analysis.samples.doing import doing
from eyechart.harness.analysis.samples.judged_run import (
    JudgedCondition,
    JudgedRun,
    without_controls,
)
from eyechart.harness.analysis.tables.tokens_text import of_conditions
from eyechart.harness.spec import Condition, varied_label


def findings(
    run: JudgedRun,
    conditions: Collection[Condition] | None = None,
    *,
    name: str = "",
    is_beside: bool = False,
) -> list[Finding]:
    """All that a run shows, the most important first; of effective lengths only under `conditions`
    if given, and without controls, unless there is nothing else. The model is called `name`, or as
    the run has it. `is_beside`: a comparison says how far it is right.
    """
    model = name or run.manifest.model
    alone = [] if is_beside else _alone(run, conditions, model)
    changes = [] if is_beside else moved(run, model, conditions)
    return in_order([*alone, *_found(run, conditions, model), *changes])


def _alone(
    run: JudgedRun,
    conditions: Collection[Condition] | None,
    model: str,
) -> Iterator[Finding]:
    """How far a run is right."""
    shown = run.shown(conditions)
    labels = _labels(shown)
    scored = {
        label: estimate
        for label, one in labels.items()
        if (estimate := one.effective_length()) is not None
    }
    about = {"model": model, "task": run.manifest.task, "unit": run.spec.unit}
    is_part = len(labels) < len(shown)
    if found := right_to(labels, scored, **about, controls_left_out=is_part):
        yield found


def _labels(shown: list[JudgedCondition]) -> dict[str, JudgedCondition]:
    """The conditions that findings are about, by label."""
    judged = without_controls(shown)
    varied = [one.condition for one in judged]
    return {varied_label(one.condition, varied): one for one in judged}


def _found(
    run: JudgedRun,
    conditions: Collection[Condition] | None,
    model: str,
) -> Iterator[Finding]:
    shown = run.shown(conditions)
    labels = _labels(shown)
    judged = list(labels.values())
    estimates = {label: one.effective_length() for label, one in labels.items()}
    scored = {label: one for label, one in estimates.items() if one is not None}
    task = run.manifest.task
    about = {"model": model, "task": task, "unit": run.spec.unit}
    found = (
        not_known(estimates, verb=str(doing(judged, task)), **about),
        *cuts(run),
        unread(run),
        right_in_wrong(run),
        patterns(labels, run.spec.unit),
        same_mistake(run),
    )
    yield from filter(None, found)
    yield from doubts(run)
    yield from lost(labels, scored, run.spec.unit)
    yield from confidence(run, judged, model)
    yield from origins(run)
    yield from steps(run, labels)
    yield from filter(None, [level(scored, run.settings.threshold, run.spec.unit)])
    if run.spec.items is not None:  # short rows of a generator are equal by chance
        yield from repeated(labels, run.spec.unit)
    yield from of_conditions(shown)
