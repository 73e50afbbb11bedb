"""What `bench run` shows and writes of the runs that were asked, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyechart.harness.cli.terminal import say, tell_apart, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED
from eyechart.harness.face.asking.engine import AskResult, ModelRuns, reached_limit
from eyechart.harness.face.options.run_options import RunOptions
from eyechart.harness.face.tracking import log_run
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.progress import RunOutcome
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Cell
from eyechart.harness.spec.dollars import dollars_text

if TYPE_CHECKING:
    from eyechart.harness.analysis.samples.judged_run import JudgedRun
    from eyechart.harness.cli.work.headlines import Headline
    from eyechart.harness.cli.work.next_command import NextCommandFacts
    from eyechart.harness.face.asking.adaptive import AdaptiveChooser, UnknownLength


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run of the command after its tables were shown."""

    missing: int
    """Samples of the plan without a reply."""
    followed: NextCommandFacts
    document: dict[str, Any] | None
    """What `--json` prints about the run; `None` without `--json`."""
    headline: Headline | None
    """Its row in the table of all runs; `None` where it has no reply."""


@dataclass(frozen=True, slots=True)
class RunsOfModel:
    """What a command asked one model."""

    exit_code: int
    runs: Sequence[ShownRun]
    error: BaseException | None = None
    """The error that ended the runs; `None` for an interrupt."""
    why: str = ""
    """Why they are not complete, unless an error says it; "" where they are."""


def show_asked(
    job: ModelRuns,
    asked: AskResult,
    judging: JudgeSettings,
    *,
    tables: bool,
    as_json: bool,
    name: str,
) -> RunsOfModel:
    """Judges the runs of a model, writes their files, and says what is missing; prints their
    `tables`. `name` is the model in messages, empty for the only one.
    """
    options, budget = job.options, job.budget
    interrupted = isinstance(asked.ended_by, KeyboardInterrupt)
    same_command = same_command_as(asked)
    begun = asked.begun
    try:
        _share_log([request.server_log for request in begun.values()])
        runs = [
            _show(request, options, judging, tables=tables, as_json=as_json)
            for request in begun.values()
        ]
        _say_how_it_went(asked.outcomes)
        if budget.spent:
            _say_cost(budget, name)
    except Exception:
        if asked.ended_by is not None and not interrupted:
            raise asked.ended_by from None  # this came first
        raise
    if interrupted:
        return RunsOfModel(INTERRUPTED, runs, why="interrupted" if begun else "not asked")
    if asked.ended_by is not None:
        return RunsOfModel(INCOMPLETE, runs, asked.ended_by)
    missing = sum(shown.missing for shown in runs)
    why: list[str] = []
    if job.choose is None:
        missing += sum(request.plan.size for request in job.requests if request.folder not in begun)
    else:  # what adaptive runs that were not begun would ask is not known
        limit = reached_limit(budget, same_command) or ("", f"{same_command} goes on")
        why += _report_ends(job.requests, begun, job.choose, limit, is_quiet=not tables)
        for line in () if name else why:
            warn(f"{options.model.label}: {line}")
    if missing:
        why.append(_missing_text(missing, asked.outcomes, budget, same_command))
        if not name:  # of several models the last lines say it
            warn(why[-1])
    return RunsOfModel(INCOMPLETE if why else COMPLETE, runs, why="; ".join(why))


def same_command_as(asked: AskResult) -> str:
    """The command that goes on, in words."""
    return "the same command without --fresh" if asked.has_moved else "the same command"


def _say_cost(budget: Budget, name: str) -> None:
    line = f"cost about {dollars_text(budget.spent)} at {budget.prices}"
    if budget.estimated:
        replies = "1 reply" if budget.estimated == 1 else f"{budget.estimated:,} replies"
        line += (
            f"; for {replies} this is an estimate, which the table leaves out: the server gives no "
            "token counts that can be true"
        )
    say(f"{name}: {line}" if name else line)


def _say_how_it_went(outcomes: Sequence[RunOutcome]) -> None:
    """Prints how many samples were tried again."""
    tried = [outcome.progress for outcome in outcomes if outcome.progress.answered]
    if retried := sum(progress.retried for progress in tried):
        waited_s = sum(progress.waited_s for progress in tried)
        samples = "1 sample was" if retried == 1 else f"{retried:,} samples were"
        waited = f", and {waited_s:.0f} s passed with nothing but waiting" if waited_s >= 1 else ""
        last = next(progress.last_failure for progress in tried if progress.retried)
        say(f"{samples} tried again{waited} (a reason: {last})")


def _report_ends(
    requests: Sequence[RunRequest],
    begun: Mapping[Path, RunRequest],
    chooser: AdaptiveChooser,
    limit: tuple[str, str],
    *,
    is_quiet: bool,
) -> Iterator[str]:
    """Prints the result for each condition of adaptive runs, unless `is_quiet`. Returns lines that
    say how many are not known well enough, because of `limit`.
    """
    unfinished: list[UnknownLength] = []
    for request in requests:
        for condition, end in chooser.ends(request, begun.get(request.folder)).items():
            if not isinstance(end, str):
                unfinished.append(end)
            if is_quiet:
                continue
            found = end if isinstance(end, str) else end.text
            in_words = condition.label.replace(",", ", ")
            tell_apart(f"{request.name} {in_words}: {found}")
    return chooser.unknown(unfinished, *limit)


def _share_log(logs: Sequence[Path]) -> None:
    """Copies the log of the server, which answers all runs of a command, into each run's folder."""
    for log in logs[1:]:
        if logs[0].exists() and not log.exists():
            with suppress(OSError):
                log.hardlink_to(logs[0])


def _show(
    request: RunRequest,
    options: RunOptions,
    judging: JudgeSettings,
    *,
    tables: bool,
    as_json: bool,
) -> ShownRun:
    """Judges a run; writes its result files, shows its `tables`, and logs it to trackers."""
    from eyechart.harness.analysis.samples.judged_run import read_run
    from eyechart.harness.analysis.tables.results import write_results
    from eyechart.harness.cli.work.headlines import headline
    from eyechart.harness.cli.work.next_command import followed
    from eyechart.harness.cli.work.score import run_document, show_run

    run, document = read_run(request.folder, settings=judging), None
    is_empty = set(run.samples["outcome"]) <= {Outcome.ERROR.place}
    if more := _more_than_asked(request.plan, run):
        warn(more)
    if tables and not is_empty:  # of an empty one the cause is said afterwards
        show_run(run, conditions=request.plan.conditions)
    else:
        write_results(run)
    if as_json:
        document = run_document(run)
    log_run(options.trackers, run, warn, say)
    missing = run.lacking(request.plan)
    row = None if is_empty else headline(run, request.plan.conditions)
    return ShownRun(missing, followed(run), document, row)


def _more_than_asked(plan: Plan, run: JudgedRun) -> str | None:
    """The note that a run has more samples than a full plan of its conditions; or `None`."""
    asked = {cell.key: cell for cell in plan.cells}
    present = [cell for cell in run.manifest.cells if cell.condition in plan.conditions]
    if plan.counts is not None or all(
        (own := asked.get(cell.key)) and cell.samples <= own.samples and cell.draws <= own.draws
        for cell in present
    ):
        return None
    return (
        f"{run.manifest.task}: the run has {_extent(present)}, and this command asks "
        f"{_extent(plan.cells)}; all of the run is shown"
    )


def _extent(cells: Sequence[Cell]) -> str:
    """`4 lines of 20 to 30 samples`, and how often each is asked."""
    lines = len({cell.line for cell in cells})
    sizes, draws = ({getattr(cell, name) for cell in cells} for name in ("samples", "draws"))
    samples = f"{max(sizes):,} sample{'s' * (max(sizes) > 1)}"
    span = samples if len(sizes) == 1 else f"{min(sizes):,} to {samples}"
    drawn = f", each asked {max(draws):,} times" if max(draws) > 1 else ""
    return f"{lines} line{'s' * (lines > 1)} of {span}{drawn}"


def _missing_text(
    missing: int, outcomes: Sequence[RunOutcome], budget: Budget, same_command: str
) -> str:
    """How many samples have no reply, why, and what to do."""
    if limit := reached_limit(budget, same_command):
        why, remedy = limit
    else:
        failed = [outcome.progress for outcome in outcomes if outcome.progress.failed]
        why = f" (the last: {failed[-1].last_failure})" if failed else ""
        remedy = f"{same_command} asks them again"
    samples = "1 sample has" if missing == 1 else f"{missing} samples have"
    return f"{samples} no reply{why}; {remedy}"
