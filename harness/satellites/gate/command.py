"""`bench gate` after its options are parsed: saves a baseline, or compares runs with one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.gate import BASELINE, exit_code, gated
from eyechart.harness.analysis.findings.finding import of_several
from eyechart.harness.analysis.findings.gate import of_baseline, of_gate
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.failures import FAILURES, Failure, lines_of
from eyechart.harness.cli.findings import tell_findings
from eyechart.harness.cli.outputs import check_output
from eyechart.harness.cli.tables.comparison_tables import print_comparison
from eyechart.harness.cli.terminal import echo, one_line, warn
from eyechart.harness.cli.work.compare import ask_until_decided
from eyechart.harness.cli.work.dry_run.ask_dry_run import show_asking
from eyechart.harness.errors import COMPLETE, UNDECIDED, WORSE, CompareError, UsageError
from eyechart.harness.face.asking.ask_pair import BaselineAsking
from eyechart.harness.face.asking.ask_run import AskedRun, Limits
from eyechart.harness.journal.files import make_folder_of
from eyechart.harness.satellites.gate import outputs
from eyechart.harness.satellites.gate.baseline import read_baseline, save_baseline
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.providers.naming import named
from eyechart.providers.secrets import redact

_ENDS = {COMPLETE: "passed", WORSE: "failed", UNDECIDED: "not decided"}
"""Exit code -> what became of the gate."""


def gate(
    baseline: Path,
    folders: Sequence[Path],
    judging: JudgeSettings,
    *,
    files: outputs.Files,
    asking: Limits | None,
    is_dry: bool,
    all_findings: bool,
    as_json: bool,
) -> int:
    """Compares the run of each task with the baseline, after it was asked more if `asking` says
    what that may cost; returns the exit code.
    """
    _check_file(baseline)
    if not is_dry:
        files.check(baseline)
    before, fail_if = read_baseline(baseline, judging), judging.fail_if or "worse"
    try:
        runs = [read_run(folder, warn, judging) for folder in folders]
        now, decided = [_partner_of(one, runs) for one in before], set[Path]()
        if asking is not None:
            again = [AskedRun(one.folder, asking, judging, warn) for one in now]
            asked = BaselineAsking(before, again, asking, judging)
            if is_dry:
                return show_asking(asked, as_json=as_json)
            ask_until_decided(asked)
            now, decided = asked.runs, asked.decided
        found = [
            _judged(*pair, judging, decided, was_asked=asking is not None)
            for pair in zip(before, now, strict=True)
        ]
    except (KeyboardInterrupt, *FAILURES) as error:
        if not is_dry:
            tasks = [run.manifest.task for run in before]
            files.write(outputs.ended(tasks, _why(error)), fail_if)
        raise
    code = exit_code([one for one, _ in found], fail_if)
    files.write(outputs.shown(found), fail_if)
    if as_json:
        print_document(outputs.document(found, judging, code))
    else:
        _show(found, code, all_findings=all_findings)
    known = {run.manifest.task for run in before}
    for run in runs:
        if run.manifest.task not in known:
            warn(f"left out: {run.folder}, whose task the baseline does not have")
    return code


def _show(found: Sequence[outputs.Found], code: int, *, all_findings: bool) -> None:
    """Each comparison, and last a line such as `gate failed (exit code 3): worse on lab/ones`."""
    tasks: dict[str, list[str]] = {}
    for one, findings in found:
        echo(f"{one.comparison.task}  {one.comparison.second}  {one.verdict}")
        print_comparison(one.comparison)
        tell_findings(findings, is_all=all_findings)
        echo("")
        tasks.setdefault(one.verdict, []).append(one.comparison.task)
    verdicts = "; ".join(f"{verdict} on {', '.join(of)}" for verdict, of in tasks.items())
    echo(f"gate {_ENDS[code]} (exit code {code}): {verdicts}")


def _why(error: KeyboardInterrupt | Failure) -> str:
    """Why a gate ended before its verdicts."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return "; ".join(one_line(redact(line)) for line in lines_of(error))


def _judged(
    before: JudgedRun,
    now: JudgedRun,
    judging: JudgeSettings,
    decided: set[Path],
    *,
    was_asked: bool,
) -> outputs.Found:
    names = BASELINE, now.manifest.model
    comparison = compare_runs(before, now, names=names)
    found = gated(comparison, judging.margin, is_decided=now.folder in decided)
    # a baseline has no replies to show
    found = replace(found, comparison=replace(comparison, runs=(now,)))
    return found, of_gate(found, was_asked=was_asked)


def _partner_of(before: JudgedRun, runs: Sequence[JudgedRun]) -> JudgedRun:
    """The run of the same task; of several, the one with the same settings.

    Raises:
        UsageError: there is no such run, or there are several.
        CompareError: one has replies and the other forced choices: a difference would be one of
            the readings, and say nothing of a change of the model.
    """
    task = before.manifest.task
    found = [run for run in runs if run.manifest.task == task]
    if not found:
        raise UsageError(
            f"none of the runs is one of {task}, which the baseline has; name the runs of all its "
            "tasks, or save a baseline of fewer tasks"
        )
    if len(found) > 1:
        found = [run for run in found if run.manifest.settings == before.manifest.settings]
    if len(found) != 1:
        count = f"{len(found)} of the runs of {task} have" if found else f"no run of {task} has"
        raise UsageError(f"{count} the settings of the baseline; name just one that has them")
    (now,) = found
    if bool(before.options) != bool(now.options):
        names = "replies", f"forced choices ({named('reading', 'likelihood')})"
        had, has = names if now.options else names[::-1]
        raise CompareError(
            f"{before.folder} has {had} on {task}, and {now.folder} has {has}: a gate compares one "
            "kind only; ask the run as the baseline was asked, or save a baseline that was asked "
            "like the run"
        )
    return now


def _check_file(baseline: Path, option: str = "") -> None:
    if baseline.is_dir():
        raise UsageError(
            f"{baseline} is a folder and no baseline; the baseline comes first: bench gate "
            f"{option}BASELINE RUN…"
        )


def save(
    baseline: Path,
    folders: Sequence[Path],
    judging: JudgeSettings,
    *,
    all_findings: bool,
) -> int:
    """Saves a baseline of these runs, and prints what they are worth as one.

    Raises:
        UsageError: before anything is written, for a threshold that guesses reach, and for a file
            in place of a run.
    """
    _check_file(baseline, "--save ")
    if (
        file := next((one for one in folders if one == baseline or one.is_file()), None)
    ) is not None:
        raise UsageError(
            f"{file} is no folder of a run; --save takes no value, and the baseline is named once, "
            "before the runs: bench gate --save BASELINE RUN…"
        )
    runs = [read_run(folder, warn, judging) for folder in folders]
    check_output("BASELINE", baseline)
    make_folder_of(baseline)
    found = of_several((str(run.folder), [*of_baseline(run, judging)]) for run in runs)
    save_baseline(baseline, runs)
    if any(run.manifest.settings.system for run in runs):
        warn(f"{baseline} has the text of the system prompt; keep it where others may read that")
    kilobytes = max(1, round(baseline.stat().st_size / 1000))
    echo(f"{baseline}: {len(runs)} run{'s' * (len(runs) > 1)}, {kilobytes:,} kB")
    tell_findings(found, is_all=all_findings)
    return COMPLETE
