"""The models of one `bench run`, one after another, under one budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.failures import FAILURES, explain, lines_of
from eyechart.harness.cli.progress import LiveDisplay
from eyechart.harness.cli.run import RunsOfModel, show_asked
from eyechart.harness.cli.terminal import echo, say, take_logs, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED
from eyechart.harness.face.engine import Asked, Job, Talk, ask
from eyechart.harness.face.run_options import RunOptions
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.event_loop import run_in_loop
from eyechart.providers.catalog.model_facts import known_not_to_reason
from eyechart.providers.catalog.spelling import near
from eyechart.providers.naming import named

if TYPE_CHECKING:
    from eyechart.harness.face.adaptive import AdaptiveChooser


@dataclass(frozen=True, slots=True)
class ModelResult:
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
    given = models[0].given
    budget = Budget(limit=given.budget, requests=given.max_requests)
    results: list[ModelResult] = []
    begun: list[RunsOfModel] = []
    for options in models:
        budget = replace(budget, prices=options.model.prices, full=False)
        label = options.model.label
        if any(result.exit_code == INTERRUPTED for result in results):
            result = ModelResult(label, INTERRUPTED, "not asked")
        elif limit := _limit_of(budget):
            warn(f"{label}: not asked, because {limit}")
            result = ModelResult(label, INCOMPLETE, f"not asked: {limit}")
        else:
            result = _ask(
                *(plans, options, budget, chooser, begun),
                name=label if len(models) > 1 else "",
                debug=debug,
                as_json=as_json,
            )
        results.append(result)
    shown = [run for of_model in begun for run in of_model.runs]
    failed = [result for result in results if result.exit_code != COMPLETE]
    if as_json:
        documents = [run.document for run in shown]
        print_document({"models": [asdict(result) for result in results], "runs": documents})
    elif shown:
        from eyechart.harness.cli.ending import print_headlines
        from eyechart.harness.cli.following import after_runs

        print_headlines([run.headline for run in shown])
        if not failed:
            echo(after_runs([run.followed for run in shown], asked=True))
    if failed and len(models) > 1:
        say(*incomplete(failed, len(models)))
    return max(result.exit_code for result in results)


def _limit_of(budget: Budget) -> str:
    """Which limit of the command is reached; "" where none is."""
    if budget.exhausted:
        return "the budget is spent"
    return "" if budget.has_requests else f"{named('max_requests')} is reached"


def _ask(
    plans: Sequence[Plan],
    options: RunOptions,
    budget: Budget,
    chooser: AdaptiveChooser | None,
    begun: list[RunsOfModel],
    *,
    name: str,
    debug: bool,
    as_json: bool,
) -> ModelResult:
    """Asks one model the plans and shows its runs, which are added to `begun`. `name` is the model
    in messages, empty for the only one.
    """
    spent = budget.spent
    take_logs()
    try:
        job = Job(options.requests(plans), options, budget, chooser)
        asked = ask(job, Talk(LiveDisplay(), say, warn, announce=say), run_in_loop)
        return judged(job, asked, begun, spent_before=spent, is_quiet=as_json)
    except FAILURES as error:
        if debug:
            raise
        return ModelResult(options.model.label, explain(error, name), lines_of(error)[0])


def judged(
    job: Job, asked: Asked, begun: list[RunsOfModel], *, spent_before: float = 0.0, is_quiet: bool
) -> ModelResult:
    """Judges and shows the runs of a model, which are added to `begun`; raises the error that ended
    them.
    """
    of_model = show_asked(job, asked, spent_before=spent_before, is_quiet=is_quiet)
    begun.append(of_model)
    if of_model.error is not None:
        raise of_model.error
    return ModelResult(job.options.model.label, of_model.exit_code, of_model.why)


def incomplete(failed: Sequence[ModelResult], models: int) -> list[str]:
    """Lines that name the models which are not complete, of so many."""
    return [
        f"{models - len(failed)} of {models} models are complete; these are not:",
        *(f"  {result.model}: {result.why}" for result in failed),
    ]
