"""`bench export batch` and `bench import`: requests into files, replies from files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from harness.analysis.judged_run import read_run
from harness.analysis.leaderboard import find_runs
from harness.cli.launch import Options, wanted_runs
from harness.cli.results import show_run
from harness.cli.terminal import echo, say, warn
from harness.cli.verbs import check_output
from harness.errors import COMPLETE, INCOMPLETE, JournalError, UsageError
from harness.journal.manifest import Manifest
from harness.journal.writer import Journal
from harness.plan.plan import Plan
from harness.run.batch.files import FileLimits, SplitFile, request_line, run_tag
from harness.run.batch.importer import USED, Intake, Intakes, read_replies
from harness.run.batch.pending import refuse_if_under_way
from harness.run.open_run import OpenRun, Recorder, Wanted
from providers.base import BatchForm
from providers.registry import open_batch_form


def export(
    plans: Sequence[Plan],
    options: Options,
    output: Path,
    limits: FileLimits = FileLimits(),  # noqa: B008  frozen
) -> int:
    """Writes what has no answer yet as requests of OpenAI's Batch form; the exit code."""
    name, runs = wanted_runs(plans, options)
    form = open_batch_form(name, options.asked(name))
    check_output("-o", output)
    if form.caution is not None:
        warn(form.caution)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot write {output}: {error.strerror}") from error
    with SplitFile(output, limits) as files:
        requests = sum(_export_run(one, form, files) for one in runs)
        size = sum(one.plan.size for one in runs)
        if not requests:
            say(f"nothing to ask: all {size:,} samples have an answer or can have none")
            _warn_of_others(output, [])
            return COMPLETE
        written = files.keep()
    for path in written:
        echo(str(path))
    before = f"; {size - requests:,} samples need none" if size > requests else ""
    say(f"{requests:,} requests{before}; 'bench import' takes the replies")
    _warn_of_others(output, written)
    return COMPLETE


def _warn_of_others(output: Path, written: Sequence[Path]) -> None:
    """Says which files of an earlier export are still there, so that nobody pays for them again."""
    numbered = output.parent.glob(f"{output.stem}-*{output.suffix}")
    for path in sorted({output, *numbered} - set(written)):
        if path.exists():
            what = "its samples may be among these" if written else "its samples need no asking"
            warn(f"{path} is of an earlier export: {what}")


def _export_run(wanted: Wanted, form: BatchForm, files: SplitFile) -> int:
    """Writes what one run has no answer to; how many requests that are."""
    tag = run_tag(wanted.out, wanted.folder)
    requests = 0
    with Journal(wanted.folder, warn) as book:
        run = OpenRun(wanted, book, warn)
        if run.pending:
            refuse_if_under_way(wanted.folder)
        run.save()
        asyncio.run(run.measure(None))
        keep = Recorder(book, run.manifest, warn)
        for sample, budget in run.samples(keep):
            files.write(request_line(tag, sample, budget, form, wanted.settings))
            requests += 1
        run.seen()
        run.save()
    return requests


def import_replies(files: Sequence[Path], out: Path, tasks: str) -> int:
    """Fills the journals of the runs that asked, judges them and prints their tables; the exit
    code says whether anything is missing.
    """
    for path in files:
        if not path.is_file():
            raise UsageError(f"no file {str(path)!r}")
    with ExitStack() as stack:
        folders = {run_tag(out, folder): folder for folder in find_runs(out)}
        intakes = Intakes(folders, tasks, stack, warn)
        tally = read_replies(files, intakes.of)
    for complaint in tally.complaints():
        warn(complaint)
    if not intakes.opened:
        warn(f"no reply to a run under {out / 'runs'}")
        return INCOMPLETE
    new, failed, known = (tally.fates[fate] for fate in USED)
    say(f"{new:,} new answers, {failed:,} without a reply, {known:,} known before")
    missing = [_shown(folder, intake) for folder, intake in intakes.opened.items()]
    return INCOMPLETE if any(missing) else COMPLETE


def _shown(folder: Path, intake: Intake) -> int:
    """Judges a run, prints its table, and says what is missing; how many samples are."""
    judged = read_run(folder, warn)
    show_run(judged)
    missing = judged.missing
    if missing:
        size = sum(cell.samples for cell in judged.manifest.cells)
        failed = int(judged.cells["error"].sum())
        last = f" (the last: {intake.last_failure})" if intake.last_failure else ""
        parts = [f"{failed:,} failed{last}"] if failed else []
        parts += [f"{missing - failed:,} never came"] if missing > failed else []
        warn(
            f"{judged.manifest.task}: {missing:,} of {size:,} samples have no reply: "
            f"{', '.join(parts)}; {_again(judged.manifest)}"
        )
    return missing


def _again(manifest: Manifest) -> str:
    """How to get what is missing."""
    command = manifest.commands[-1] if manifest.commands else "bench export batch"
    what = "writes only those" if command.startswith("bench export") else "asks only those"
    return f"the same command again {what}: {command}"
