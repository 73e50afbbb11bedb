"""`bench export batch` and `bench import`: requests into files, replies from files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.samples.task_of_run import NoTaskError, task_of
from eyechart.harness.cli.documents import print_files
from eyechart.harness.cli.outputs import check_output
from eyechart.harness.cli.terminal import say, warn
from eyechart.harness.cli.work.next_command import for_a_person
from eyechart.harness.cli.work.score import missing_text, show_run
from eyechart.harness.errors import COMPLETE, INCOMPLETE, UsageError
from eyechart.harness.face.options.run_options import RunOptions
from eyechart.harness.journal.files import writing
from eyechart.harness.journal.manifest import Manifest, find_runs
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.selection import refuse_turns
from eyechart.harness.run.batch.files import FileLimits, SplitFile, request_line, run_tag
from eyechart.harness.run.batch.importer import USED, ReplyImporters, read_replies
from eyechart.harness.run.batch.pending import refuse_if_under_way
from eyechart.harness.run.room import Room
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.writer import PlannedRun, RunWriter
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.task.catalogue import Task
from eyechart.providers.batches import BatchForm
from eyechart.providers.registry.registry import open_batch_form


def export(
    plans: Sequence[Plan],
    options: RunOptions,
    output: Path,
    limits: FileLimits = FileLimits(),  # noqa: B008  frozen
    *,
    as_json: bool = False,
) -> int:
    """Writes a request in OpenAI's Batch form for each sample without an answer."""
    refuse_turns(plans, "a batch")
    form = open_batch_form(options.name, options.model_settings())
    check_output("-o", output, b'{"custom_id":')
    if form.caution is not None:
        warn(form.caution)
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    with SplitFile(output, limits) as files:
        requests = sum(_export_run(request, form, files) for request in options.requests(plans))
        size = sum(plan.size for plan in plans)
        if not requests:
            say(f"nothing to ask: all {size:,} samples have an answer or can have none")
            _warn_of_old_files(output, [])
            print_files([], as_json=as_json)
            return COMPLETE
        written = files.keep()
    print_files(written, as_json=as_json)
    rest = f"; {size - requests:,} samples need none" if size > requests else ""
    own = not all(plan.task.is_installed for plan in plans)
    named = ", with the same --task" if own else ""
    say(f"{requests:,} requests{rest}; 'bench import' takes the replies{named}")
    _warn_of_old_files(output, written)
    return COMPLETE


def _warn_of_old_files(output: Path, written: Sequence[Path]) -> None:
    """Warns of files of an earlier export, since samples in them would be paid for twice."""
    numbered = output.parent.glob(f"{output.stem}-*{output.suffix}")
    for path in sorted({output, *numbered} - set(written)):
        if path.exists():
            overlap = "its samples may be among these" if written else "its samples need no request"
            warn(f"{path} comes from an earlier export: {overlap}")


def _export_run(request: RunRequest, form: BatchForm, files: SplitFile) -> int:
    """Writes the samples of one run that have no answer; returns the number of requests."""
    tag = run_tag(request.out, request.folder)
    requests = 0
    with Journal(request.folder, warn, request.journal) as run_journal:
        run = PlannedRun(request, run_journal, warn)
        if run.pending:
            refuse_if_under_way(request.folder)
        run.save()
        asyncio.run(run.find_overflows(None))
        writer = RunWriter(run_journal, run.manifest, warn)
        room = Room.of(request.model, request.settings)
        room.window = request.model.window(run.manifest.server)
        for sample, answer in run.samples(writer):
            max_tokens = room.tokens(sample.prompt, answer)
            files.write(request_line(tag, sample, max_tokens, form, request.settings))
            requests += 1
        run.save()
    return requests


def check_files(files: Sequence[Path]) -> None:
    """Raises `UsageError` for what is no file that can be imported."""
    for path in files:
        if path.is_dir():
            raise UsageError(f"{str(path)!r} is a folder; name the files in it")
        if path.exists() and not path.is_file():
            raise UsageError(f"{str(path)!r} is a pipe or a device; name a file")
        if not path.exists():
            is_word = len(files) > 1 and not path.suffix and path.name == str(path)
            more = "; the form of a file is known by its content: name files alone" * is_word
            raise UsageError(f"no file {str(path)!r}{more}")


def import_replies(
    files: Sequence[Path],
    out: Path,
    judging: JudgeSettings = JudgeSettings(),
    show: Callable[[JudgedRun], object] = show_run,
) -> int:
    """Writes the replies into the journals of the runs they belong to, judges and shows those runs.
    Returns the exit code, which says whether a reply is missing.

    A run may come from a stranger. Samples are made again by built-in tasks, by the user's
    files, and only with `judging.run_kept_code` by code that the run kept.
    """

    def opened(folder: Path, manifest: Manifest) -> Task:
        try:
            return task_of(folder, manifest, judging)
        except NoTaskError as error:
            raise UsageError(
                "; ".join(filter(None, (f"{folder}: {error}", error.remedy)))
            ) from None

    check_files(files)
    with ExitStack() as stack:
        folders = {run_tag(out, folder): folder for folder in find_runs(out)}
        importers = ReplyImporters(folders, opened, stack, warn)
        summary = read_replies(files, importers.of)
    for complaint in summary.complaints():
        warn(complaint)
    if not importers.opened:
        warn(f"no reply to a run under {out / 'runs'}")
        return INCOMPLETE
    new, failed, known = (summary.fates[fate] for fate in USED)
    say(f"{new:,} new answers, {failed:,} without a reply, {known:,} known before")
    missing = 0
    for folder, importer in importers.opened.items():
        run = read_run(folder, warn, judging)
        show(run)
        missing += _tell_missing(run, importer.last_failure)
    return INCOMPLETE if missing else COMPLETE


def _tell_missing(judged_run: JudgedRun, last_failure: str) -> int:
    """Tells what is missing; returns the number of missing samples."""
    missing = judged_run.missing
    if missing:
        failed = int(judged_run.cells["error"].sum())
        last = f" (the last: {last_failure})" if last_failure else ""
        parts = [f"{failed:,} failed{last}"] if failed else []
        parts += [f"{missing - failed:,} never came"] if missing > failed else []
        warn(f"{missing_text(judged_run)}: {', '.join(parts)}; {_remedy(judged_run.manifest)}")
    return missing


def _remedy(manifest: Manifest) -> str:
    command = for_a_person((manifest.commands or ["bench export batch"])[-1])
    effect = "writes only those" if command.startswith("bench export") else "asks only those"
    return f"the same command again {effect}: {command}"
