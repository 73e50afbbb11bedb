"""The verb `leaderboard`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyechart.harness.analysis.findings.ranks import of_standing
from eyechart.harness.analysis.length.at_length import at_length
from eyechart.harness.analysis.length.in_tokens import token_columns
from eyechart.harness.analysis.ranking.cost_at import costs_at
from eyechart.harness.analysis.ranking.leaderboard import enter_standings, merge, run_rows
from eyechart.harness.analysis.ranking.leaderboard_file import (
    Leaderboard,
    LeftOut,
    Row,
    is_number,
    left_out_lines,
    only_writer,
    read_rows,
    write_leaderboard,
)
from eyechart.harness.analysis.ranking.standing import Place, Standing
from eyechart.harness.analysis.samples.judged_run import JudgedRun, part_of, read_run
from eyechart.harness.analysis.tables.tables import (
    estimate_columns,
    finding_columns,
    near_apart_columns,
    reply_cost,
)
from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.outputs import PAGE, check_output
from eyechart.harness.cli.tables.standing_tables import print_standings
from eyechart.harness.cli.terminal import echo, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, JournalError, UsageError
from eyechart.harness.face.options.trust import is_outside
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.report.page.section import Section, sections
from eyechart.harness.report.ranking.rank_table import rank_tables
from eyechart.harness.report.ranking.readme import around, markdown, put_into
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec.columns import (
    ASKED,
    RECORDED,
)

if TYPE_CHECKING:
    from eyechart.harness.face.options.study import StudyRuns


def leaderboard(
    folders: Sequence[Path],
    *,
    out: Path,
    output: Path | None,
    readme: Path | None,
    judging: JudgeSettings,
    at: Sequence[int],
    ranks_only: bool,
    all_findings: bool,
    form: str | None,
    as_json: bool,
) -> int:
    """Merges runs into a leaderboard's file, table and page, and prints their ranks; in a `form` of
    `TABLE_FORMS` as tables for papers, and without `output` alone.
    """
    is_named = output is not None
    if form is not None and not is_named:
        _check_files({"--readme": readme, "--ranks-only": ranks_only})
        return _print_alone(folders, folders or _all_runs(out), judging, at, form)
    output = output or _default_file(out)
    if output.suffix != ".csv":
        raise UsageError(f"-o {str(output)!r} is no .csv file; the page goes beside it")
    check_output("-o", output)
    check_output("-o", output.with_suffix(".html"), PAGE)
    check_output("--readme", readme)
    run_folders = folders or _all_runs(out)
    rows = read_rows(output)  # a faulty file is reported before runs are judged
    if not is_named:
        _check_others(rows, folders, output)
    if readme is not None:
        around(readme)
    ranked, used = write(run_folders, output, readme, judging, at=at, ranks_only=ranks_only)
    if as_json:
        print_document(document(output, ranked, at))
    elif form is not None:
        _print_for_paper(ranked, at, form)
    elif used:
        print_standings(ranked, at, all_findings=all_findings)
        print_files(output, has_page=bool(ranked))
        if readme is not None:
            echo(str(readme))
    return _code(folders, used)


def _code(named: Sequence[Path], used: Collection[Path]) -> int:
    """The exit code where the runs in `used` could be read, of those named or else of all."""
    return COMPLETE if used and set(named) <= set(used) else INCOMPLETE


def _all_runs(out: Path) -> list[Path]:
    """The runs under `out`; raises `UsageError` if there are none."""
    found = find_runs(out)
    if not found:
        raise UsageError(f"no run under {out / 'runs'}; name folders of runs, or give --out")
    return found


def _check_files(options: Mapping[str, object]) -> None:
    """Raises `UsageError` if an option is given that changes files."""
    if wrong := next((option for option, value in options.items() if value), None):
        raise UsageError(f"--format without -o writes no file, and {wrong} is for files; add -o")


def _print_alone(
    named: Sequence[Path],
    folders: Sequence[Path],
    judging: JudgeSettings,
    at: Sequence[int],
    form: str,
) -> int:
    """Prints the tables for papers of the runs in `folders`, and writes nothing."""
    new = _readable(folders, judging, at)
    _, ranked = _entered(new, [])
    _print_for_paper(ranked, at, form)
    return _code(named, [run.folder for run, _ in new])


def _print_for_paper(ranked: Sequence[Section], at: Sequence[int], form: str) -> None:
    from eyechart.harness.cli.tables.paper_tables import print_tables
    from eyechart.harness.report.paper.tables import standing_tables

    print_tables([standing_tables(ranked, at)], form)


def _default_file(out: Path) -> Path:
    """The file in the folder that holds the runs; raises `UsageError` if it is a link."""
    output = out / "leaderboard.csv"
    if is_outside(out, str(output)):  # a folder may come with such a link
        raise UsageError(f"{output} is a link to a file elsewhere; name that file with -o")
    return output


def _check_others(rows: Sequence[Row], folders: Sequence[Path], output: Path) -> None:
    """Raises `UsageError` where runs are named, and the `rows` of a file that is not are of other
    models or tasks: the page would be made anew without them.
    """
    named = set()
    for folder in folders:
        with suppress(JournalError):  # a run that cannot be read is reported later
            manifest = read_manifest(folder)
            named.add((manifest.model, manifest.task))
    others = [row for row in rows if (row["model"], row["task"]) not in named]
    if named and others:
        count = f"{len(others):,} row{'s' * (len(others) > 1)}"
        raise UsageError(
            f"{output} has {count} of other models or tasks, which its page would lose; name "
            "another file with -o, or this one to add to it all the same"
        )


def write(
    folders: Sequence[Path],
    output: Path,
    readme: Path | None,
    judging: JudgeSettings,
    *,
    at: Sequence[int] = (),
    ranks_only: bool = False,
    study: StudyRuns | None = None,
) -> tuple[list[Section], set[Path]]:
    """Adds runs to a leaderboard's file and writes its page; says what is left out and why.
    Returns the sections of the page, and the folders whose runs could be read. Nothing is written
    where none could. Of a study the file is written anew, from the cells that the study asks.
    """
    new = _readable(folders, judging, at, study)
    if not new and folders:
        return [], set()
    with only_writer(output, warn):
        before = read_rows(output) if study is None else []
        ranked = _write_leaderboard(output, new, before, readme, ranks_only=ranks_only)
        title = "" if study is None else f"{study.study.spec.title} · {study.label}"
        if ranks_only:
            from eyechart.harness.report.ranking.ranks_page import write_ranks

            units = {section.task: section.unit for section in ranked}
            write_ranks(read_rows(output), output.with_suffix(".html"), units)
        elif ranked:
            from eyechart.harness.report.page.page import write_report

            write_report(
                ranked,
                output.with_suffix(".html"),
                title=title,
                at=at,
                warn=warn,
            )
    return ranked, {run.folder for run, _ in new}


def print_files(output: Path, *, has_page: bool = True) -> None:
    count = len(read_rows(output))
    echo(f"{output}: {count:,} row{'s' * (count != 1)}")
    if has_page:
        echo(str(output.with_suffix(".html")))


def _readable(
    folders: Iterable[Path],
    judging: JudgeSettings,
    at: Sequence[int],
    study: StudyRuns | None = None,
) -> list[tuple[JudgedRun, list[Row]]]:
    """The readable runs, each with its rows; says what is left out and why."""
    runs: list[tuple[JudgedRun, list[Row]]] = []
    left_out: list[str] = []
    incomplete: list[LeftOut] = []
    for folder in folders:
        try:
            run = read_run(folder, warn, judging)
        except JournalError as error:
            left_out += error.lines
            continue
        if study is not None:
            run = part_of(run, partial(study.asks, run.manifest.task))
        rows, reasons = run_rows(run, at)
        runs.append((run, rows))
        incomplete += reasons
    for line in (*left_out, *left_out_lines(incomplete)):
        warn(f"left out: {line}")
    return runs


def _write_leaderboard(
    output: Path,
    new: Sequence[tuple[JudgedRun, Sequence[Row]]],
    before: Sequence[Row],
    readme: Path | None,
    *,
    ranks_only: bool,
) -> list[Section]:
    """Merges new rows with those `before` into the file and its table; returns the sections of the
    runs whose rows are in it.
    """
    merged, ranked = _entered(new, before)
    if not ranked and any(rows for _, rows in new):
        raise UsageError(f"no row is added to {output}, so it stays as it is; name another with -o")
    write_leaderboard(output, merged)
    if readme is not None:
        put_into(readme, markdown(merged))
    chosen = set(map(id, merged.rows))
    absent = len(chosen) - sum(id(row) in chosen for _, rows in new for row in rows)
    if absent:
        have, runs = ("have", "their runs are") if absent > 1 else ("has", "its run is")
        part = "" if ranks_only else " and no part of the page"
        warn(f"{absent:,} of the rows {have} no rank{part}: {runs} not here")
    return ranked


def _entered(
    new: Sequence[tuple[JudgedRun, Sequence[Row]]], before: Sequence[Row]
) -> tuple[Leaderboard, list[Section]]:
    """New rows with those `before`, and the sections of the runs whose rows are among them, whose
    ranks are in their rows; says which rows are left out.
    """
    merged = merge([row for _, rows in new for row in rows], before)
    for line in merged.ahead:
        warn(line)
    for line in left_out_lines([*_replaced(merged, new), *merged.left_out]):
        warn(f"left out: {line}")
    chosen = set(map(id, merged.rows))
    here = [(run, rows) for run, rows in new if any(id(row) in chosen for row in rows)]
    ranked = sections([run for run, _ in here])
    enter_standings(
        merged.rows,
        {run.folder: rows for run, rows in here},
        [section.standing for section in ranked],
    )
    return merged, ranked


def _replaced(
    merged: Leaderboard, new: Sequence[tuple[JudgedRun, Sequence[Row]]]
) -> Iterator[LeftOut]:
    """Each run that has a row in place of which that of a later run is there."""
    folders = {id(row): run.folder for run, rows in new for row in rows}
    pairs = ((folders[id(row)], folders.get(id(later)), later) for row, later in merged.replaced)
    for (folder, other), later in {(one, other): later for one, other, later in pairs}.items():
        if folder != other:
            latest = f"the file has a row of {later['date']}" if other is None else str(other)
            reason = f"of runs with equal settings the latest is ranked: {latest}"
            yield LeftOut(str(folder), reason, "that a later run replaces")


def document(output: Path, ranked: Sequence[Section], at: Sequence[int] = ()) -> dict[str, Any]:
    """The rows of a leaderboard's file, with numbers as numbers, and the ranks of each task, with
    the accuracy at each length `at`.
    """
    page = output.with_suffix(".html")
    rows = [{name: _value(name, text) for name, text in row.items()} for row in read_rows(output)]
    return {
        "file": output if output.exists() else None,
        "page": page if page.exists() else None,
        "findings": [
            finding_columns(one) for table in rank_tables(ranked, at) for one in table.of_tasks
        ],
        "ranks": [
            {
                "task": section.task,
                "condition": standing.condition.label,
                "unit": standing.ranking.unit,
                "tests": standing.tests,
                "findings": [*map(finding_columns, of_standing(standing, at))],
                "models": [_ranked(place, standing, at) for place in standing.places],
            }
            for section in ranked
            for standing in [section.standing]
        ],
        "rows": rows,
    }


def _ranked(place: Place, standing: Standing, at: Sequence[int]) -> dict[str, Any]:
    best, last = place.ranks or (None, None)
    judged = place.run.conditions.get(standing.condition)
    costs = {} if judged is None else costs_at(judged, at)
    return {
        "rank_best": best,
        "rank_last": last,
        "model": place.run.manifest.model,
        "name": place.name,
        "folder": place.run.folder,
        "adaptive": place.adaptive,
        "kind": ASKED if place.run.manifest.recorded is None else RECORDED,
        **estimate_columns(place.estimate, adaptive=place.adaptive),
        **({} if judged is None else near_apart_columns(judged)),
        **({} if judged is None else token_columns(judged)),
        "right_at": [
            at_length(place.estimate, one).columns | reply_cost(costs.get(one)) for one in at
        ]
        if place.estimate
        else [],
    }


def _value(name: str, text: str) -> float | str | None:
    if not is_number(name):
        return text
    number = float(text) if text else math.nan
    return int(number) if number.is_integer() else number
