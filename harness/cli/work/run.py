"""Asks all models of a command, and shows their runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.failures import FAILURES, Failure, explain, lines_of
from eyechart.harness.cli.progress import LiveDisplay, new_bar
from eyechart.harness.cli.terminal import echo, prints_elsewhere, say, take_logs, warn
from eyechart.harness.cli.work import leaderboard as ranks
from eyechart.harness.cli.work.models_asked import (
    ModelResult,
    chooser_of,
    exit_code,
    warn_of_unknown,
)
from eyechart.harness.cli.work.run_results import RunsOfModel, same_command_as, show_asked
from eyechart.harness.errors import COMPLETE
from eyechart.harness.face.asking.engine import AskResult, ModelRuns, RunNotices, ask
from eyechart.harness.face.options.run_options import RunOptions
from eyechart.harness.face.options.study import RunMatrix, StudyRuns
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.event_loop import run_in_loop
from eyechart.harness.settings.judging import JudgeSettings

if TYPE_CHECKING:
    from eyechart.harness.report.page.section import Section


def run_models(runs: RunMatrix, judging: JudgeSettings, *, as_json: bool, debug: bool) -> int:
    """Asks all models at the same time under one budget, and shows one table of their runs, of
    one its own; of a study writes the leaderboard. Returns the exit code. The
    failure of one model does not stop the others; with `debug` it is raised afterwards.
    """
    warn_of_unknown(runs.models)
    take_logs()
    chooser = chooser_of(runs, judging)
    several = len(runs.models) > 1
    results: dict[str, ModelResult] = {}

    def failed(options: RunOptions, error: Failure) -> ModelResult:
        if debug:
            raise error
        label = options.model.label
        return ModelResult(label, explain(error, label if several else ""), lines_of(error)[0])

    jobs = []
    for options in runs.models:
        budget = Budget(options.model.prices, options.given.budget, options.given.max_requests)
        try:
            jobs.append(ModelRuns(options.requests(runs.plans), options, budget, chooser))
        except FAILURES as error:
            results[options.model.label] = failed(options, error)
    begun: list[RunsOfModel] = []
    for job, asked in zip(jobs, _ask(jobs), strict=True):
        options = job.options
        try:
            of_model = show_asked(
                *(job, asked, judging),
                tables=not (as_json or runs.has_several),
                as_json=as_json,
                name=options.model.label if several else "",
            )
            begun.append(of_model)
            if of_model.error is not None:
                raise of_model.error
        except FAILURES as error:
            results[options.model.label] = failed(options, error)
        else:
            label = options.model.label
            results[label] = ModelResult(label, of_model.exit_code, of_model.why)
    ordered = [results[options.model.label] for options in runs.models]
    _show(runs, begun, ordered, judging, as_json=as_json)
    lacking = [result for result in ordered if result.exit_code != COMPLETE]
    if lacking and several:
        say(
            f"{len(ordered) - len(lacking)} of {len(ordered)} models are complete; these are not:",
            *(f"  {result.model}: {result.why}" for result in lacking),
        )
    return exit_code(lacking, len(ordered))


def _ask(jobs: Sequence[ModelRuns]) -> Sequence[AskResult]:
    """Asks the models; says once that an interrupt ended them."""
    bar = new_bar() if len(jobs) > 1 else None
    try:
        with prints_elsewhere():
            found = ask(jobs, RunNotices(LiveDisplay(bar), say, warn, announce=say), run_in_loop)
    finally:
        if bar is not None:
            bar.stop()
    interrupted = [one for one in found if isinstance(one.ended_by, KeyboardInterrupt)]
    if interrupted:
        is_batch = any(job.options.given.is_batch for job in jobs)
        saved = "batches go on" if is_batch else "what was answered is saved"
        say(f"interrupted; {saved}, and {max(map(same_command_as, found), key=len)} continues")
    return found


def _show(
    runs: RunMatrix,
    begun: Iterable[RunsOfModel],
    results: Sequence[ModelResult],
    judging: JudgeSettings,
    *,
    as_json: bool,
) -> None:
    """Prints the table of all runs and what follows, or one document; of a study writes the
    leaderboard of its runs.
    """
    shown = [run for of_model in begun for run in of_model.runs]
    document: dict[str, Any] = {
        "models": [asdict(result) for result in results],
        "runs": [run.document for run in shown],
    }
    ranked: Sequence[Section] = ()
    file = Path()
    if isinstance(runs, StudyRuns):
        from eyechart.harness.cli.work.study_folder import keep

        folders = [run.followed.folder for run in shown]
        file, ranked = keep(runs, runs.models[0].given.out, folders, judging)
        document = {"study": runs.label, "folder": file.parent, **document}
        document |= {"leaderboard": ranks.document(file, ranked)}
    if as_json:
        print_document(document)
        return
    if not shown:
        return
    from eyechart.harness.cli.work.headlines import print_headlines
    from eyechart.harness.cli.work.next_command import after_runs

    print_headlines([run.headline for run in shown if run.headline is not None], judging)
    if isinstance(runs, StudyRuns):
        ranks.print_files(file, has_page=bool(ranked))
    elif all(result.exit_code == COMPLETE for result in results):
        echo(after_runs([run.followed for run in shown], asked=True))
