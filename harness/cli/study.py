"""Studies on the command line: asked, priced, checked and listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from eyechart.harness.analysis.leaderboard_file import only_writer
from eyechart.harness.cli import leaderboard as ranks
from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.dry_run import cost_text, dry_run_document, may_think
from eyechart.harness.cli.failures import FAILURES, explain, lines_of
from eyechart.harness.cli.layout import Column, show_blocks
from eyechart.harness.cli.models import ModelResult, incomplete, judged, warn_of_unknown
from eyechart.harness.cli.preview import (
    Cap,
    Forecasts,
    Preview,
    all_waves,
    dollars_of,
    not_known,
    previews_of,
)
from eyechart.harness.cli.progress import TogetherDisplay
from eyechart.harness.cli.run import RunsOfModel
from eyechart.harness.cli.standing_tables import print_chart, print_standings, tell_of_alone
from eyechart.harness.cli.terminal import echo, say, take_logs, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED, USAGE, EyechartError
from eyechart.harness.face.engine import Asked, Job, Talk, ask_together
from eyechart.harness.face.run_options import RunOptions
from eyechart.harness.face.study import StudyRuns, study_runs
from eyechart.harness.journal.files import replace_file
from eyechart.harness.journal.manifest import MANIFEST as RUN
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.selection import precision_text
from eyechart.harness.run.event_loop import run_in_loop
from eyechart.harness.run.first_replies import FirstRepliesError
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.settings.spelling import as_key
from eyechart.harness.spec.dollars import at_most_text, dollars_text
from eyechart.harness.study.reading import built_in, find_study, read_study
from eyechart.providers.base import ProviderError
from eyechart.providers.naming import spelled
from eyechart.providers.secrets import redact

if TYPE_CHECKING:
    from eyechart.harness.face.adaptive import AdaptiveChooser
    from eyechart.harness.report.section import Section

STUDY, MANIFEST, LEADERBOARD = "study.yaml", "study.json", "leaderboard.csv"
"""Files in a study's folder: the study as it was last asked, its results, and the ranks."""


def read(name: str, command: RunSettings, *, trusts: bool) -> StudyRuns:
    """The runs of a study; raises what `study_runs` does."""
    return study_runs(read_study(find_study(name)), command, notify=warn, trusts=trusts)


def _chooser(runs: StudyRuns) -> AdaptiveChooser | None:
    if not runs.models[0].given.adaptive:
        return None
    from eyechart.harness.face.adaptive import adaptive_chooser

    return adaptive_chooser(runs.models[0].given, further=runs.finds_longer)


def dry_run(runs: StudyRuns, *, asks_server: bool, as_json: bool) -> int:
    """Prints what the study would ask and its cost, one row for each model. Sends nothing, unless
    `asks_server`. The failure of one model does not stop the others.
    """
    take_logs()
    chooser = _chooser(runs)
    failed: list[ModelResult] = []
    made: Forecasts = {}

    def found() -> Iterator[tuple[RunOptions, Sequence[Preview]]]:
        for options in runs.models:
            try:
                cap = Cap.of(options.given.max_requests)
                previews = previews_of(
                    runs.plans, options, chooser, made, cap, asks_server=asks_server
                )
            except FAILURES as error:
                failed.append(_failed(options, error))
            else:
                yield options, previews

    if as_json:
        document = {"study": runs.label, **dry_run_document(found())}
        print_document(document | {"failed": [asdict(result) for result in failed]})
        return _code(failed, len(runs.models))
    totals = [_Total(options, previews) for options, previews in found()]
    echo(f"{runs.label}: {runs.study.spec.title}")
    echo(*(f"  {plan.task.name}: {_conditions(plan)}" for plan in runs.plans), "")
    columns = [
        Column(["model"], [total.options.model.label for total in totals], "left"),
        Column(["requests"], [f"{total.requests:,}" for total in totals]),
        Column(["answered"], [f"{total.answered:,}" for total in totals]),
        Column(["prompts", "tokens"], [f"{total.prompt_tokens:,}" for total in totals]),
        Column(["replies", "tokens"], [f"{total.output_tokens:,}" for total in totals]),
        Column(["about"], [total.about for total in totals]),
        Column(["at most"], [total.most for total in totals]),
    ]
    if totals:
        show_blocks(columns[:1], columns[1:])
    priced = [total.dollars for total in totals if total.dollars is not None]
    if len(priced) > 1:
        about, most = map(sum, zip(*priced, strict=True))
        echo(f"together {cost_text(about, most)}")
    echo(
        *(
            f"{one.options.model.label} would be asked at {one.options.destination}"
            for one in totals
            if one.options.given.base_url
        )
    )
    if may := [one.options.model.label for one in totals if one.may_turn_out_to_think]:
        echo(f"thinking is not counted, should they think: {', '.join(may)}")
    unknown = (not_known(one.options, asks_server=asks_server) for one in totals)
    echo(*dict.fromkeys(filter(None, unknown)))
    if chooser is not None:
        echo(
            "The requests and tokens are those of all waves up to the next one. Each later wave "
            "follows from the replies, until each length is known to "
            f"{precision_text(runs.models[0].given.precision)}. The cost is that of all waves: "
            "expected of a model right to the middle of the lines, and at most; - is not known."
        )
    return _code(failed, len(runs.models))


class _Total:
    """The sum of what all plans would ask of a model."""

    def __init__(self, options: RunOptions, previews: Sequence[Preview]) -> None:
        self.options = options
        self.requests = sum(preview.request.plan.size for preview in previews)
        self.answered = sum(preview.answered for preview in previews)
        self.prompt_tokens = sum(preview.forecast.prompt_tokens for preview in previews)
        self.output_tokens = sum(preview.forecast.output_tokens for preview in previews)
        is_counted = any(preview.thinking.is_known for preview in previews)
        self.may_turn_out_to_think = not is_counted and may_think(options)
        about, most = (
            all_waves(previews)
            if options.given.adaptive
            else dollars_of(options.model.prices, previews) or (None, None)
        )
        self.dollars = None if about is None or most is None else (about, most)
        self.about = "-" if about is None else dollars_text(about)
        self.most = "-" if most is None else at_most_text(most)


def _conditions(plan: Any) -> str:
    """How many conditions a plan has, and on which lines."""
    number = len(plan.conditions)
    lengths = sorted(line.length for line in plan.lines)
    return f"{number} condition{'s' * (number > 1)}, lengths {lengths[0]:,} to {lengths[-1]:,}"


def run(runs: StudyRuns, *, out: Path, as_json: bool, debug: bool) -> int:
    """Asks all models of a study at the same time; writes its page and its leaderboard. The failure
    of one model does not stop the others, unless `debug` is set: then it is raised.
    """
    chooser = _chooser(runs)
    warn_of_unknown(runs.models)
    take_logs()
    results: dict[str, ModelResult] = {}
    jobs = []
    limit = runs.models[0].given.budget
    for options in runs.models:
        budget = Budget(
            limit=limit, requests=options.given.max_requests, prices=options.model.prices
        )
        try:
            jobs.append(Job(options.requests(runs.plans), options, budget, chooser))
        except (EyechartError, ProviderError) as error:
            results[options.model.label] = _failed(options, error)
    for job in jobs:
        job.budget.shared_with += [one.budget for one in jobs if one is not job]
    display = TogetherDisplay()
    try:
        talk = Talk(display, _in_study(say), _in_study(warn), announce=say)
        found = ask_together(jobs, talk, run_in_loop)
    finally:
        display.close()
    shown: list[RunsOfModel] = []
    for job, asked in zip(jobs, found, strict=True):
        results[job.options.model.label] = _judged(job, asked, shown, debug=debug)
    folder = runs.folder(out)
    folders = [one.followed.folder for of_model in shown for one in of_model.runs]
    ordered = [results[options.model.label] for options in runs.models]
    ranked = _rank(folder, _keep(runs, folder, folders, out), runs) if folders else []
    if as_json:
        documents = [one.document for of_model in shown for one in of_model.runs]
        board = ranks.document(folder / LEADERBOARD, ranked)
        print_document(
            {
                "study": runs.label,
                "folder": folder,
                "models": [asdict(result) for result in ordered],
                "runs": documents,
                "leaderboard": board,
            }
        )
    elif folders:
        echo(f"{runs.label}: {runs.study.spec.title}", "")
        if ranked:
            print_chart(ranked)
        print_standings([one for one in ranked if len(one.standing.places) > 1])
        tell_of_alone([one for one in ranked if len(one.standing.places) == 1])
        ranks.print_files(folder / LEADERBOARD, has_page=bool(ranked))
    if failed := [result for result in ordered if result.exit_code != COMPLETE]:
        say(
            *(spelled(line, as_key) for line in incomplete(failed, len(ordered))),
            "the same command asks what is missing" + ("; " + _AFTER_STOPS) * _has_stops(shown),
        )
    return _code(failed, len(ordered))


def _in_study(tell: Warn) -> Warn:
    """Says settings as the study's file has them: its command takes few options."""
    return lambda text: tell(spelled(text, as_key))


_AFTER_STOPS = (
    "of tasks that their first replies stopped --keep-going asks the rest, and --fresh starts over"
)


def _has_stops(shown: Sequence[RunsOfModel]) -> bool:
    """Whether first replies stopped a run for good."""
    errors = [one.error for one in shown]
    return any(isinstance(one, FirstRepliesError) and not one.asks_again for one in errors)


def _code(failed: Sequence[ModelResult], models: int) -> int:
    """The exit code; that of a usage error only if no model could be asked."""
    codes = {result.exit_code for result in failed}
    if not codes or INTERRUPTED in codes:
        return max(codes, default=COMPLETE)
    return USAGE if codes == {USAGE} and len(failed) == models else INCOMPLETE


def _failed(options: RunOptions, error: Any) -> ModelResult:
    label = options.model.label
    return ModelResult(label, explain(error, label), lines_of(error)[0])


def _judged(job: Job, asked: Asked, shown: list[RunsOfModel], *, debug: bool) -> ModelResult:
    try:
        return judged(job, asked, shown, is_quiet=True)
    except FAILURES as error:
        if debug:
            raise
        return _failed(job.options, error)


def _keep(runs: StudyRuns, folder: Path, folders: Sequence[Path], out: Path) -> list[Path]:
    """Writes the study's file as it was asked, and the results of this and earlier commands;
    returns the folders of all runs.
    """
    with only_writer(folder / MANIFEST, warn):
        models, known = _before(folder / MANIFEST)
        here = [path.relative_to(out).as_posix() for path in folders]
        kept = [path for path in known if path not in here and (out / path / RUN).exists()]
        document = {
            "study": runs.label,
            "digest": runs.digest,
            "tasks": {
                plan.task.name: {
                    "version": plan.task.spec.version,
                    "digest": plan.task.spec.digest(),
                }
                for plan in runs.plans
            },
            "models": list(
                dict.fromkeys([*models, *(options.model.label for options in runs.models)])
            ),
            "runs": [*kept, *here],
        }
        replace_file(folder / STUDY, redact(runs.study.text).encode())
        replace_file(folder / MANIFEST, orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    return [out / path for path in [*kept, *here]]


def _before(path: Path) -> tuple[list[str], list[str]]:
    """The models and the runs of earlier commands, from `study.json`."""
    if not path.exists():
        return [], []
    try:
        document = orjson.loads(path.read_bytes())
        return list(map(str, document["models"])), list(map(str, document["runs"]))
    except (ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split())
        warn(f"{path} cannot be read and is written anew, without earlier models: {why}")
        return [], []


def _rank(folder: Path, folders: Sequence[Path], runs: StudyRuns) -> list[Section]:
    """Writes the leaderboard and its page; returns its sections."""
    tasks = ",".join(str(plan.task.path) for plan in runs.plans if not plan.task.is_installed)
    judging = JudgeSettings(tasks=tasks)
    sections, _ = ranks.write(folders, folder / LEADERBOARD, None, judging, study=runs)
    return sections


def list_studies(*, as_json: bool) -> None:
    studies = [read_study(path).spec for path in built_in()]
    if as_json:
        fields = {"name", "version", "title"}
        print_document({"studies": [one.model_dump(include=fields) for one in studies]})
        return
    echo(*(f"{one.name}@{one.version}  {one.title}" for one in studies))


def show_study(name: str, *, trusts: bool) -> None:
    """Prints a study's file and how it is cited."""
    study = read_study(find_study(name))
    spec = study.spec
    echo(*study.text.rstrip("\n").split("\n"), "")
    runs = study_runs(study, RunSettings(model=("tiny",)), notify=warn, trusts=trusts)
    echo(f"cited as: Eyechart study {spec.name}, version {spec.version} ({runs.label})")


def check_studies(names: Sequence[str], *, trusts: bool, as_json: bool) -> int:
    """Checks studies; prints what each would ask, or its mistakes. Executes the code of the tasks
    that they name, and with `trusts` also that of the user's own files.
    """
    code = COMPLETE
    documents: list[dict[str, Any]] = []
    for name in names:
        try:
            study = read_study(find_study(name))
            models = () if study.spec.models else ("tiny",)
            runs = study_runs(study, RunSettings(model=models), notify=warn, trusts=trusts)
        except (EyechartError, ProviderError) as error:
            code = max(code, error.exit_code)
            if as_json:
                documents.append({"study": name, "problems": lines_of(error)})
            else:
                explain(error)
            continue
        warn_of_unknown(runs.models)
        if as_json:
            documents.append({"study": runs.label, "problems": []})
            continue
        labels = [] if models else [options.model.label for options in runs.models]
        parts = _counted(len(runs.plans), "task"), _counted(len(labels), "model")
        echo(f"{runs.label}: {', '.join(parts)}; no mistakes")
        echo(*(f"  {plan.task.name}: {_conditions(plan)}" for plan in runs.plans))
        echo(*(f"  {label}" for label in labels))
    if as_json:
        print_document({"studies": documents})
    return code


def _counted(number: int, noun: str) -> str:
    """`2 tasks`, `no models`."""
    return f"{number or 'no'} {noun}{'s' * (number != 1)}"
