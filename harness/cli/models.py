"""The models of one `bench run`, one after another, under one budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.failures import FAILURES, explain, lines_of
from eyechart.harness.cli.run import RunsOfModel, run
from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED
from eyechart.harness.face.run_options import RunOptions
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.repeat import finish
from eyechart.providers.catalog.model_facts import known_not_to_reason
from eyechart.providers.catalog.spelling import near
from eyechart.providers.naming import named

if TYPE_CHECKING:
    from eyechart.harness.face.adaptive import AdaptiveChooser


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The result of one model."""

    model: str
    """The model's label."""
    exit_code: int
    """The exit code that the model would have set alone."""
    why: str
    """Why the model is not complete; empty if it is."""


def warn_of_unknown(models: Sequence[RunOptions]) -> None:
    """Warns of unknown models and names those that were probably meant. They are asked all the
    same, since a vendor may have a model that no list has yet.
    """
    for name in dict.fromkeys(options.name for options in models if not options.given.base_url):
        if (likely := near(name.provider, name.model)) is not None:
            warn(f"{name.label} is in no list of models; did you mean {likely!r}?")
    asked = [options.name.label for options in models if options.settings.effort is not None]
    for label in filter(known_not_to_reason, dict.fromkeys(asked)):
        warn(f"{label} does not reason, so its vendor will refuse a reasoning effort")


def run_models(
    plans: Sequence[Plan],
    models: Sequence[RunOptions],
    chooser: AdaptiveChooser | None = None,
    *,
    debug: bool = False,
    as_json: bool = False,
) -> int:
    """Runs the plans on each model; returns the highest exit code. The failure of one model does
    not stop the others, unless `debug` is set: then it is raised.
    """
    asked = list(_ask_each(plans, models, chooser, debug=debug, as_json=as_json))
    results = [result for result, _ in asked]
    begun = [of_model for _, of_model in asked if of_model is not None]
    shown = [run for of_model in begun for run in of_model.runs]
    failed = [result for result in results if result.exit_code != COMPLETE]
    if as_json:
        documents = [run.document for run in shown]
        print_document({"models": [asdict(result) for result in results], "runs": documents})
    elif shown and not failed:
        from eyechart.harness.cli.following import after_runs

        echo(after_runs([run.followed for run in shown], asked=True))
    if failed and len(models) > 1:
        say(
            f"{len(results) - len(failed)} of {len(models)} models are complete; not:",
            *(f"  {result.model}: {result.why}" for result in failed),
        )
    for of_run in [] if failed else shown:
        if of_run.followed.repeat:
            finish(of_run.followed.folder)
    return max(result.exit_code for result in results)


def _ask_each(
    plans: Sequence[Plan],
    models: Sequence[RunOptions],
    chooser: AdaptiveChooser | None,
    *,
    debug: bool,
    as_json: bool,
) -> Iterator[tuple[ModelResult, RunsOfModel | None]]:
    """The result of each model, with its runs where it was asked."""
    budget = Budget(limit=models[0].given.budget, requests=models[0].given.max_requests)
    interrupted = False
    for options in models:
        label = options.model.label
        if interrupted:
            yield ModelResult(label, INTERRUPTED, "not asked"), None
            continue
        budget = replace(budget, prices=options.model.prices, full=False)
        if budget.exhausted or not budget.has_requests:
            limit = (
                "the budget is spent" if budget.exhausted else f"{named('max_requests')} is reached"
            )
            warn(f"{label}: not asked, because {limit}")
            yield ModelResult(label, INCOMPLETE, f"not asked: {limit}"), None
            continue
        asked = None
        try:
            asked = run(plans, options, budget, chooser, as_json=as_json)
            if asked.error is not None:
                raise asked.error
        except FAILURES as error:
            if debug:
                raise
            yield ModelResult(label, explain(error), lines_of(error)[0]), asked
            continue
        interrupted = asked.exit_code == INTERRUPTED
        why = {COMPLETE: "", INTERRUPTED: "interrupted"}.get(asked.exit_code, "incomplete")
        yield ModelResult(label, asked.exit_code, why), asked
