"""The verbs that read runs: `score`, `leaderboard`, `report`; `compare` is in `comparing`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from harness.analysis.curve import Threshold, threshold_problem
from harness.analysis.grouped import grouped
from harness.analysis.judged_run import JudgedRun, read_run
from harness.analysis.leaderboard import (
    Row,
    merge,
    only_writer,
    read_rows,
    run_rows,
    write_leaderboard,
)
from harness.analysis.results import change_lines, write_results
from harness.analysis.run_text import run_finding
from harness.analysis.tables import to_csv
from harness.cli.following import Followed, after_runs, followed
from harness.cli.tables import print_groups, print_table
from harness.cli.terminal import echo, say, tell, warn
from harness.cli.verbs import check_output
from harness.errors import (
    COMPLETE,
    INCOMPLETE,
    JournalError,
    UsageError,
)
from harness.journal.manifest import find_runs, is_repeat
from harness.report.readme import around, markdown, put_into
from harness.spec import Condition

FORMATS = ("html", "png", "svg")


def read_threshold(share: float, *, relative: bool) -> Threshold:
    """The accuracy from which a length counts as seen.

    Raises:
        UsageError: `share` is none that an estimate can go by.
    """
    if problem := threshold_problem(share):
        raise UsageError(f"--threshold {problem}")
    return Threshold(share, relative=relative)


def score(
    folders: Sequence[Path],
    threshold: Threshold,
    *,
    tasks: str = "",
    by: str | None = None,
    run_kept_code: bool = False,
) -> int:
    """Judges runs again and rewrites their tables, with one more for the metadata `by`; returns the
    exit code.
    """
    missing = 0
    runs = []
    for folder in folders:
        judged_run = read_run(folder, warn, tasks=tasks, run_kept_code=run_kept_code)
        for line in change_lines(judged_run):
            say(line)
        runs.append(show_run(judged_run, threshold))
        if by is not None:
            _show_groups(judged_run, by, tasks, run_kept_code=run_kept_code)
        missing += judged_run.missing
    echo(after_runs(runs))
    return INCOMPLETE if missing else COMPLETE


def show_run(
    judged_run: JudgedRun,
    threshold: Threshold = Threshold(),
    conditions: Collection[Condition] | None = None,
) -> Followed:
    """Writes the result files of a run; prints its tables, of `conditions` only if given, and what
    was found; returns what the next command depends on.
    """
    path = write_results(judged_run, threshold)
    print_table(judged_run, threshold, conditions)
    tell(run_finding(judged_run, threshold, conditions))
    if (recorded := judged_run.manifest.recorded) is not None:
        tell(f"The replies were {recorded}, and not asked.")
    echo(str(path), "")
    return followed(judged_run)


def _show_groups(run: JudgedRun, name: str, tasks: str, *, run_kept_code: bool) -> None:
    """Writes and prints the accuracy of a run by the metadata `name` of its items."""
    groups = grouped(run, name, tasks, run_kept_code=run_kept_code)
    if groups.without:
        warn(
            f"{run.folder}: {groups.without} samples are in no row: their items have no {name!r}, "
            "or are not the ones that were sent"
        )
    print_groups(run, groups.table)
    echo(str(to_csv(groups.table, run.folder / f"by_{name}.csv")), "")


def without_repeats(folders: Sequence[Path]) -> list[Path]:
    """The folders without those of repeats, which are said, and each once.

    Raises:
        UsageError: all of them are repeats.
    """
    distinct = list(dict.fromkeys(folders))
    kept = [folder for folder in distinct if not is_repeat(folder.resolve())]
    if not kept:
        raise UsageError(f"{distinct[0]} is a repeat of a run; name the run itself")
    for folder in distinct:
        if folder not in kept:
            warn(f"left out: {folder} is a repeat of a run; 'bench compare' takes it")
    return kept


def leaderboard(
    folders: Sequence[Path],
    *,
    out: Path,
    output: Path | None,
    readme: Path | None,
    tasks: str,
    run_kept_code: bool,
    threshold: Threshold,
) -> int:
    """Merges runs into a leaderboard's file, table and page; prints what is left out and why."""
    output = output or out / "leaderboard.csv"
    if output.suffix != ".csv":
        raise UsageError(f"-o {str(output)!r} is no .csv file; the page goes beside it")
    check_output("-o", output)
    check_output("--readme", readme)
    run_folders = list(folders) or find_runs(out)
    if not run_folders:
        raise UsageError(f"no run under {out / 'runs'}; name folders of runs, or give --out")
    read_rows(output)  # a faulty file is reported before runs are judged
    if readme is not None:
        around(readme)
    new, left_out = _rows(run_folders, threshold, tasks, run_kept_code=run_kept_code)
    for line in left_out:
        warn(f"left out: {line}")
    if folders and not new:
        return INCOMPLETE
    with only_writer(output, warn):
        page_runs = _write_leaderboard(output, new, readme)
        _write_page(output, page_runs, threshold, tasks, run_kept_code=run_kept_code)
    return INCOMPLETE if set(folders) - {run.folder for run, _ in new} else COMPLETE


def _rows(
    folders: Iterable[Path], threshold: Threshold, tasks: str, *, run_kept_code: bool
) -> tuple[list[tuple[JudgedRun, list[Row]]], list[str]]:
    """The readable runs, each with its rows, and the reasons for what is left out."""
    runs, left_out = [], []
    for folder in folders:
        try:
            run = read_run(folder, warn, tasks=tasks, run_kept_code=run_kept_code)
        except JournalError as error:
            left_out.append(str(error))
            continue
        rows, reasons = run_rows(run, threshold)
        runs.append((run, rows))
        left_out += reasons
    return runs, left_out


def _write_leaderboard(
    output: Path, new: Sequence[tuple[JudgedRun, Sequence[Row]]], readme: Path | None
) -> list[JudgedRun]:
    """Merges new rows into the file and its table; returns the runs that have rows there."""
    merged = merge([row for _, rows in new for row in rows], read_rows(output))
    for line in merged.ahead:
        warn(line)
    for line in merged.left_out:
        warn(f"left out: {line}")
    write_leaderboard(output, merged)
    echo(f"{output}: {len(merged.rows)} rows")
    if readme is not None:
        put_into(readme, markdown(merged))
        echo(str(readme))
    chosen = set(map(id, merged.rows))
    absent = len(chosen) - sum(id(row) in chosen for _, rows in new for row in rows)
    if absent:
        warn(f"the page lacks {absent} of the rows: their runs are not here")
    return [run for run, rows in new if any(id(row) in chosen for row in rows)]


def _write_page(
    output: Path,
    runs: Sequence[JudgedRun],
    threshold: Threshold,
    tasks: str,
    *,
    run_kept_code: bool,
) -> None:
    from harness.report.page import write_report

    if runs:
        page = output.with_suffix(".html")
        written = write_report(
            runs, page, threshold=threshold, tasks=tasks, run_kept_code=run_kept_code, warn=warn
        )
        for path in written:
            echo(str(path))


def report(
    folders: Sequence[Path],
    output: Path,
    formats: Sequence[str],
    threshold: Threshold,
    *,
    tasks: str,
    run_kept_code: bool,
) -> int:
    """Writes the page of some runs, and its charts as pictures if `formats` asks for them."""
    from harness.report.page import write_report

    kinds = [kind.strip() for option in formats for kind in option.split(",")]
    for kind in kinds:
        if kind not in FORMATS:
            raise UsageError(f"--format is one of {', '.join(FORMATS)}, not {kind!r}")
    check_output("-o", output)
    runs = [
        read_run(folder, warn, tasks=tasks, run_kept_code=run_kept_code)
        for folder in without_repeats(folders)
    ]
    written = write_report(
        runs,
        output,
        formats=kinds,
        threshold=threshold,
        tasks=tasks,
        run_kept_code=run_kept_code,
        warn=warn,
    )
    for path in written:
        echo(str(path))
    return COMPLETE
