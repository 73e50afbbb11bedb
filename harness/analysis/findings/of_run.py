"""The findings of one run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from eyechart.harness.analysis.findings.confidence import confidence
from eyechart.harness.analysis.findings.finding import Finding, in_order, of_several
from eyechart.harness.analysis.findings.level import level
from eyechart.harness.analysis.findings.moved import moved
from eyechart.harness.analysis.findings.not_known import not_known
from eyechart.harness.analysis.findings.patterns import patterns
from eyechart.harness.analysis.findings.right_to import right_to
from eyechart.harness.analysis.findings.same_mistake import SAME_ANSWER, same_mistake
from eyechart.harness.analysis.findings.served import cuts, doubts, lost, origins, repeated, steps
from eyechart.harness.analysis.findings.unread import right_in_wrong, unread
from eyechart.harness.analysis.order.order import CONSTANT
from eyechart.harness.analysis.samples.doing import doing
from eyechart.harness.analysis.samples.judged_run import JudgedRun, without_controls
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
    return in_order(_found(run, conditions, name or run.manifest.model, is_beside=is_beside))


def beside(
    runs: Iterable[tuple[str, JudgedRun]],
    conditions: Collection[Condition] | None = None,
) -> list[Finding]:
    """What stands beside a comparison of named runs: all that each of them shows, without how far
    it is right and what moved that, which the comparison says.
    """
    return of_several(
        (name, findings(run, conditions, name=name, is_beside=True)) for name, run in runs
    )


def _found(
    run: JudgedRun,
    conditions: Collection[Condition] | None,
    model: str,
    *,
    is_beside: bool,
) -> Iterator[Finding]:
    shown = run.shown(conditions)
    judged = without_controls(shown)
    varied = [one.condition for one in judged]
    labels = {varied_label(one.condition, varied): one for one in judged}
    estimates = {label: one.effective_length() for label, one in labels.items()}
    scored = {label: one for label, one in estimates.items() if one is not None}
    task = run.manifest.task
    about = {"model": model, "task": task, "unit": run.spec.unit}
    if not is_beside:
        is_part = len(judged) < len(shown)
        yield from filter(None, [right_to(labels, scored, **about, controls_left_out=is_part)])
    mistake = same_mistake(run)
    is_constant = mistake is not None and mistake.kind == SAME_ANSWER.name
    found = (
        not_known(estimates, verb=str(doing(judged, task)), **about),
        *cuts(run),
        unread(run),
        right_in_wrong(run),
        patterns(labels, run.spec.unit, without=CONSTANT if is_constant else ""),
        mistake,
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
    if not is_beside:
        yield from moved(run, model, conditions)
