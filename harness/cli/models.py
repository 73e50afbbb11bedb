"""The models of one `bench run`, one after another, under one budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.cli.failures import FAILURES, explain, lines_of
from harness.cli.run import run
from harness.cli.terminal import say, warn
from harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED
from harness.face.run_options import RunOptions
from harness.plan.cost import Budget
from harness.plan.plan import Plan

if TYPE_CHECKING:
    from harness.cli.adaptive import AdaptiveChooser


@dataclass(frozen=True, slots=True)
class ModelResult:
    """What came of one model."""

    model: str
    """Its label."""
    code: int
    """The exit code that it would have set alone."""
    why: str
    """Why it is not complete; empty where it is."""


def run_models(
    plans: Sequence[Plan],
    models: Sequence[RunOptions],
    chooser: AdaptiveChooser | None = None,
    *,
    debug: bool = False,
) -> int:
    """Runs the plans on each model; returns the highest exit code. The failure of one model does
    not stop the others, unless `debug`: then it is raised.
    """
    results = list(_results(plans, models, chooser, debug=debug))
    failed = [result for result in results if result.code != COMPLETE]
    if failed and len(models) > 1:
        say(
            f"{len(results) - len(failed)} of {len(models)} models are complete; not:",
            *(f"  {result.model}: {result.why}" for result in failed),
        )
    return max(result.code for result in results)


def _results(
    plans: Sequence[Plan],
    models: Sequence[RunOptions],
    chooser: AdaptiveChooser | None,
    *,
    debug: bool,
) -> Iterator[ModelResult]:
    budget = Budget(limit=models[0].budget, requests=models[0].max_requests)
    interrupted = False
    for options in models:
        label = options.name.label
        if interrupted:
            yield ModelResult(label, INTERRUPTED, "not asked")
            continue
        budget = replace(budget, prices=options.model.prices, full=False)
        if budget.exhausted or not budget.has_requests:
            limit = "the budget is spent" if budget.exhausted else "--max-requests is reached"
            warn(f"{label}: not asked, because {limit}")
            yield ModelResult(label, INCOMPLETE, f"not asked: {limit}")
            continue
        try:
            code = run(plans, options, budget, chooser)
        except FAILURES as error:
            if debug:
                raise
            yield ModelResult(label, explain(error), lines_of(error)[0])
            continue
        interrupted = code == INTERRUPTED
        yield ModelResult(label, code, "interrupted" if interrupted else "incomplete")
