"""`bench gate` after its options are parsed: saves a baseline, or compares runs with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eyechart.harness.analysis.curve import is_at_floor
from eyechart.harness.analysis.judged_run import JudgedRun, read_run
from eyechart.harness.cli.asked_dry_run import show_asking
from eyechart.harness.cli.comparing import ask_until_decided
from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.failures import FAILURES, Failure, lines_of
from eyechart.harness.cli.terminal import echo, one_line, say, tell, warn
from eyechart.harness.cli.verbs import check_output
from eyechart.harness.errors import COMPLETE, UsageError
from eyechart.harness.face.asked_pair import AskedAgainstBaseline, Asking
from eyechart.harness.face.asked_run import AskedRun, Limits
from eyechart.harness.journal.files import make_folder_of, replace_file
from eyechart.harness.journal.record import MANIFEST, Warn, journal_size
from eyechart.harness.satellites.gate import outputs
from eyechart.harness.satellites.gate.baseline import read_baseline, save_baseline
from eyechart.harness.satellites.gate.gate import Gated, exit_code, partner_of
from eyechart.harness.satellites.gate.gate import gate as verdicts_of
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.providers.naming import named
from eyechart.providers.secrets import redact

FAIL_IF = "undecided"
_MARKDOWN = ("", ".md", ".markdown", ".txt")
"""Endings of files to which a summary is appended."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The options of `bench gate`, see its help."""

    save: bool
    judging: JudgeSettings
    fail_if: str | None
    junit: Path | None
    summary: Path | None
    as_json: bool
    asking: Limits | None
    """What asking the runs more may cost; `None`: they are not asked."""
    is_dry: bool = False
    """Whether it is only shown what would be asked."""


def gate(baseline: Path, folders: Sequence[Path], wanted: Wanted) -> int:
    """Saves a baseline, or compares runs with one; returns the exit code."""
    judging = wanted.judging
    threshold = judging.threshold
    _check(baseline, wanted)
    if wanted.save:
        return _save(baseline, _read(folders, wanted, warn), threshold, wanted.judging.margin)
    before = read_baseline(baseline)
    if wanted.is_dry and wanted.asking is not None:
        runs = _read(folders, wanted, warn)
        verdicts_of(before, runs, threshold, wanted.judging.margin)  # raises where none is possible
        several = _askings(before, runs, wanted.asking, judging)
        return show_asking(several, as_json=wanted.as_json)
    try:
        gated, runs = _gated(before, folders, wanted, threshold)
    except (KeyboardInterrupt, *FAILURES) as error:
        tasks = [run.manifest.task for run in before]
        _write(outputs.ended(tasks, _why(error)), wanted)
        raise
    code = exit_code(gated, fails_undecided=wanted.fail_if is not None)
    _show(gated, wanted, code)
    tasks_of_baseline = {run.manifest.task for run in before}
    for run in runs:
        if run.manifest.task not in tasks_of_baseline:
            warn(f"left out: {run.folder}, whose task the baseline does not have")
    return code


def _why(error: KeyboardInterrupt | Failure) -> str:
    """Why a gate ended before its verdicts."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return "; ".join(one_line(redact(line)) for line in lines_of(error))


def _gated(
    before: Sequence[JudgedRun], folders: Sequence[Path], wanted: Wanted, threshold: float
) -> tuple[list[Gated], list[JudgedRun]]:
    """The verdicts, and the runs; these are asked first where that is wanted."""
    runs = _read(folders, wanted, warn)
    decided: set[Path] = set()
    if wanted.asking is not None:
        verdicts_of(
            before, runs, threshold, wanted.judging.margin
        )  # raises before anything is asked
        decided = _ask(before, runs, wanted.asking, wanted.judging)
        runs = _read(folders, wanted, None)  # its warnings were shown
    was_asked = wanted.asking is not None
    return verdicts_of(
        before, runs, threshold, wanted.judging.margin, decided, was_asked=was_asked
    ), runs


def _read(folders: Sequence[Path], wanted: Wanted, said: Warn | None) -> list[JudgedRun]:
    return [read_run(folder, said, wanted.judging) for folder in folders]


def _askings(
    before: Sequence[JudgedRun],
    runs: Sequence[JudgedRun],
    limits: Limits,
    judging: JudgeSettings,
) -> list[Asking]:
    """How the run of each task is asked, each as if no other were."""
    return [
        AskedAgainstBaseline(one, run, limits, judging)
        for one, run in _partners(before, runs, limits, judging)
    ]


def _partners(
    before: Sequence[JudgedRun], runs: Sequence[JudgedRun], limits: Limits, judging: JudgeSettings
) -> list[tuple[JudgedRun, AskedRun]]:
    """Each run of the baseline with the run of its task, which can be asked."""
    return [(one, AskedRun(partner_of(one, runs).folder, limits, judging, warn)) for one in before]


def _ask(
    before: Sequence[JudgedRun],
    runs: Sequence[JudgedRun],
    limits: Limits,
    judging: JudgeSettings,
) -> set[Path]:
    """Asks the run of each task until it is decided; returns the folders of those that are."""
    decided = set()
    spent = f"{named('max_requests')} or {named('budget')}"
    for one, run in _partners(before, runs, limits, judging):
        if limits.is_spent:
            say(f"{one.manifest.task}: not asked, because {spent} is used up")
            continue
        asking = AskedAgainstBaseline(one, run, limits, judging)
        say(f"{one.manifest.task}:")
        ask_until_decided(asking)
        limits = asking.left()
        if asking.is_decided:
            decided.add(run.folder)
    return decided


def _check(baseline: Path, wanted: Wanted) -> None:
    """Raises an `EyechartError` for arguments and options that cannot be used."""
    if baseline.is_dir():
        raise UsageError(
            f"{baseline} is a folder and no baseline; the baseline comes first: bench gate "
            f"{'--save ' * wanted.save}BASELINE RUN…"
        )
    if wanted.save and wanted.asking is not None:
        raise UsageError("--save compares no runs, which --ask is for; leave out one of them")
    if wanted.fail_if not in (None, FAIL_IF):
        raise UsageError(f"--fail-if is {FAIL_IF}, not {wanted.fail_if!r}")
    if not wanted.is_dry:
        check_output("--junit", wanted.junit, outputs.JUNIT_MARK)
        check_output("--summary", wanted.summary)
        if wanted.summary is not None and wanted.summary.suffix.lower() not in _MARKDOWN:
            raise UsageError(
                f"--summary {str(wanted.summary)!r} is Markdown, which is appended: its name must "
                "end in .md or .txt, or have no ending"
            )
        files = [path for path in (wanted.junit, wanted.summary) if path is not None]
        if baseline.resolve() in [path.resolve() for path in files]:
            raise UsageError(
                f"{str(baseline)!r} is the baseline, and would be lost; name another file for "
                "--junit and --summary"
            )
        if wanted.summary is not None and not _takes_text(wanted.summary):
            raise UsageError(
                f"--summary {str(wanted.summary)!r} is a link, or data and no text, which would be "
                "damaged; name another file"
            )
        for path in files:
            if any(map(_is_run, path.resolve().parents)):
                raise UsageError(f"{str(path)!r} is in the folder of a run; name a file elsewhere")
            make_folder_of(path)


def _is_run(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and journal_size(folder) > 0


def _takes_text(path: Path) -> bool:
    """Whether Markdown can be appended to a file: it has no second name, and is no JSON."""
    if not path.is_file():
        return not path.is_symlink()
    with path.open("rb") as file:
        is_data = file.read(64).lstrip()[:1] in (b"{", b"[")
    return not path.is_symlink() and path.stat().st_nlink == 1 and not is_data


def _show(gated: Sequence[Gated], wanted: Wanted, code: int) -> None:
    """Prints the verdicts and writes the files."""
    _write(outputs.shown(gated), wanted)
    if wanted.as_json:
        print_document(outputs.document(gated, code))
        return
    for one in gated:
        echo(f"{one.comparison.task}  {one.comparison.second}  {one.verdict}")
        tell(" ".join(one.sentences))
        echo("")


def _write(tasks: Sequence[outputs.Shown], wanted: Wanted) -> None:
    """Writes the files for pipelines."""
    if wanted.junit is not None:
        content = outputs.junit(tasks, fails_undecided=wanted.fail_if is not None)
        replace_file(wanted.junit, content)
    if wanted.summary is not None:
        with wanted.summary.open("a", encoding="utf-8") as file:
            # a table that follows text without a blank line is no table
            file.write(f"\n{outputs.summary(tasks)}" if file.tell() else outputs.summary(tasks))


def _save(baseline: Path, runs: Sequence[JudgedRun], threshold: float, margin: float) -> int:
    """Raises `UsageError`, before anything is written, for a threshold that guesses reach. Warns of
    a run with which none can be compared.
    """
    check_output("BASELINE", baseline)
    make_folder_of(baseline)
    limits = [
        {
            estimate.limit.said
            for one in run.conditions.values()
            if (estimate := one.effective_length(threshold)) and not estimate.limit.is_ranked
        }
        for run in runs
    ]
    save_baseline(baseline, runs)
    if any(run.manifest.settings["system"] for run in runs):
        warn(f"{baseline} has the text of the system prompt; keep it where others may read that")
    for run, by in zip(runs, limits, strict=True):
        if run.missing:
            warn(f"{run.folder}: {run.missing:,} samples have no reply, and are not compared")
        if by:
            why = " and ".join(sorted(by))
            warn(f"{run.folder} is limited by {why}, so no run can be compared with it")
        curves = [one.curve for one in run.conditions.values() if one.curve is not None]
        if curves and is_at_floor(curves, margin):
            warn(
                f"{run.folder}: its area cannot fall by more than the margin, so no run can be "
                "found worse; ask shorter rows or an easier task, or give a smaller --margin"
            )
    kilobytes = max(1, round(baseline.stat().st_size / 1000))
    echo(f"{baseline}: {len(runs)} run{'s' * (len(runs) > 1)}, {kilobytes:,} kB")
    return COMPLETE
