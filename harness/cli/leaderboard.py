"""The verb `leaderboard`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyechart.harness.analysis.at_length import at_length, probability_text
from eyechart.harness.analysis.cost_at import cost_of_reply_at, cost_texts
from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.drift import drift_notes
from eyechart.harness.analysis.in_tokens import token_columns
from eyechart.harness.analysis.interval import span_text
from eyechart.harness.analysis.judged_run import JudgedRun, part_of
from eyechart.harness.analysis.leaderboard import enter_standings, merge, run_rows
from eyechart.harness.analysis.leaderboard_file import (
    LeftOut,
    Row,
    left_out_lines,
    only_writer,
    read_rows,
    right_at_length,
    write_leaderboard,
)
from eyechart.harness.analysis.paper_text import at_texts
from eyechart.harness.analysis.run_text import reading_note, recorded_note, several_models_notes
from eyechart.harness.analysis.standing import Place, Standing
from eyechart.harness.analysis.tables import estimate_columns
from eyechart.harness.analysis.tokens_of_row import TokensASymbol
from eyechart.harness.analysis.tokens_text import unit_note
from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.layout import Column, fits, show_blocks, show_title, table
from eyechart.harness.cli.readable import Reading
from eyechart.harness.cli.tables import INTERVAL, STAR, chart_title, length_text, sees_text
from eyechart.harness.cli.terminal import echo, show, tell, warn
from eyechart.harness.cli.verbs import check_output
from eyechart.harness.errors import COMPLETE, INCOMPLETE, JournalError, UsageError
from eyechart.harness.face.trust import is_outside
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.report.readme import around, markdown, put_into
from eyechart.harness.report.section import Section, sections
from eyechart.harness.report.standings import (
    FURTHEST,
    TESTED_HEADS,
    standing_finding,
    standing_notes,
    suited_at,
    tested_counts,
)
from eyechart.harness.spec import Condition
from eyechart.harness.spec.columns import (
    ACCURACY_AT,
    ASKED,
    BY_TEST,
    COST,
    COST_A_REPLY,
    COST_AT,
    ESTIMATE,
    ESTIMATE_TEXTS,
    P_FURTHEST,
    RECORDED,
    TOKEN_TEXTS,
    TOKENS,
)

if TYPE_CHECKING:
    from eyechart.harness.face.study import StudyRuns

_NUMBERS = {"task_version", "n", "not_scored", "threshold", "parameters_billion", "capacity"}
_NUMBERS |= {*ESTIMATE, *TOKENS, *BY_TEST, P_FURTHEST, *COST[:1], COST_A_REPLY, COST_AT}
_NUMBERS -= {*ESTIMATE_TEXTS, *TOKEN_TEXTS}


def leaderboard(
    folders: Sequence[Path],
    *,
    out: Path,
    output: Path | None,
    readme: Path | None,
    reading: Reading,
    in_tokens: bool,
    at: Sequence[int],
    ranks_only: bool,
    form: str | None,
    as_json: bool,
) -> int:
    """Merges runs into a leaderboard's file, table and page, and prints their ranks; in a `form` of
    `TABLE_FORMS` as tables for papers.
    """
    is_named = output is not None
    output = output or _default_file(out)
    if output.suffix != ".csv":
        raise UsageError(f"-o {str(output)!r} is no .csv file; the page goes beside it")
    check_output("-o", output)
    check_output("--readme", readme)
    run_folders = list(folders) or find_runs(out)
    if not run_folders:
        raise UsageError(f"no run under {out / 'runs'}; name folders of runs, or give --out")
    rows = read_rows(output)  # a faulty file is reported before runs are judged
    if not is_named:
        _check_others(rows, folders, output)
    if readme is not None:
        around(readme)
    ranked, used = write(run_folders, output, readme, reading, at=at, ranks_only=ranks_only)
    if as_json:
        print_document(document(output, ranked, at, in_tokens=in_tokens))
    elif form is not None:
        from eyechart.harness.cli.paper import print_tables
        from eyechart.harness.report.paper.tables import standing_tables

        print_tables([standing_tables(ranked, at, in_tokens=in_tokens)], form)
    elif used or not folders:
        print_standings(ranked, at, in_tokens=in_tokens)
        print_files(output, has_page=bool(ranked))
        if readme is not None:
            echo(str(readme))
    return INCOMPLETE if set(folders) - used else COMPLETE


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
    reading: Reading,
    *,
    at: Sequence[int] = (),
    ranks_only: bool = False,
    study: StudyRuns | None = None,
) -> tuple[list[Section], set[Path]]:
    """Adds runs to a leaderboard's file and writes its page; says what is left out and why.
    Returns the sections of the page, and the folders whose runs could be read. Nothing is written
    where none could. Of a study the file is written anew, from the cells that the study asks.
    """
    new, left_out = _rows(folders, reading, at, study)
    for line in left_out:
        warn(f"left out: {line}")
    if not new and folders:
        return [], set()
    with only_writer(output, warn):
        before = read_rows(output) if study is None else []
        ranked = _write_leaderboard(
            output, new, before, readme, reading.threshold, ranks_only=ranks_only
        )
        title = "" if study is None else f"{study.study.spec.title} · {study.label}"
        if ranks_only:
            from eyechart.harness.report.ranks_page import write_ranks

            units = {section.task: section.unit for section in ranked}
            write_ranks(read_rows(output), output.with_suffix(".html"), units)
        elif ranked:
            from eyechart.harness.report.page import write_report

            write_report(
                ranked,
                output.with_suffix(".html"),
                tasks=reading.tasks,
                run_kept_code=reading.run_kept_code,
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


def _rows(
    folders: Iterable[Path], reading: Reading, at: Sequence[int], study: StudyRuns | None
) -> tuple[list[tuple[JudgedRun, list[Row]]], list[str]]:
    """The readable runs, each with its rows, and the reasons for what is left out."""
    runs: list[tuple[JudgedRun, list[Row]]] = []
    left_out: list[str] = []
    incomplete: list[LeftOut] = []
    for folder in folders:
        try:
            run = reading.run(folder)
        except JournalError as error:
            left_out += error.lines
            continue
        if study is not None:
            run = part_of(run, partial(study.asks, run.manifest.task))
        rows, reasons = run_rows(run, reading.threshold, at)
        runs.append((run, rows))
        incomplete += reasons
    return runs, [*left_out, *left_out_lines(incomplete)]


def _write_leaderboard(
    output: Path,
    new: Sequence[tuple[JudgedRun, Sequence[Row]]],
    before: Sequence[Row],
    readme: Path | None,
    threshold: Threshold,
    *,
    ranks_only: bool,
) -> list[Section]:
    """Merges new rows with those `before` into the file and its table; returns the sections of the
    runs whose rows are in it.
    """
    merged = merge([row for _, rows in new for row in rows], before)
    for line in merged.ahead:
        warn(line)
    for line in left_out_lines(merged.left_out):
        warn(f"left out: {line}")
    chosen = set(map(id, merged.rows))
    here = [(run, rows) for run, rows in new if any(id(row) in chosen for row in rows)]
    if not here and any(rows for _, rows in new):
        raise UsageError(f"no row is added to {output}, so it stays as it is; name another with -o")
    ranked = sections([run for run, _ in here], threshold)
    enter_standings(
        merged.rows,
        {run.folder: rows for run, rows in here},
        [section.standing for section in ranked],
    )
    write_leaderboard(output, merged)
    if readme is not None:
        put_into(readme, markdown(merged))
    absent = len(chosen) - sum(id(row) in chosen for _, rows in here for row in rows)
    if absent:
        have, runs = ("have", "their runs are") if absent > 1 else ("has", "its run is")
        part = "" if ranks_only else " and no part of the page"
        warn(f"{absent:,} of the rows {have} no rank{part}: {runs} not here")
    return ranked


def print_standings(
    of_tasks: Sequence[Section], at: Sequence[int] = (), *, in_tokens: bool = False
) -> None:
    """Prints the models of each task, sorted by effective length, with the ranks that each can have
    by the tests and its accuracy at each length in `at`. Tasks with a single model share one table.
    With `in_tokens` effective lengths are in tokens of the row; those in `at` are not.
    """
    standings = {id(one): one.standing_in(in_tokens=in_tokens) for one in of_tasks}
    alone = [section for section in of_tasks if len(section.standing.places) == 1]
    for section in of_tasks:
        standing = standings[id(section)]
        places = standing.places
        if section in alone:
            continue
        show_title([section.name, *_condition(section)])
        tested = _by_test(places, ranked=standing.has_ranks)
        keys = [*tested, _models(places)] if standing.has_ranks else [_models(places)]
        more = [] if standing.has_ranks else tested
        _show_places(section.threshold, places, keys, at, more, in_tokens=in_tokens)
        for sentence in suited_at(standing, section.threshold, at):
            tell(sentence)
        if finding := standing_finding(standing):
            tell(finding)
        for note in standing_notes(standing):
            tell(note)
        _tell_of_origins(places)
        echo("")
    if alone:
        places = tuple(standings[id(section)].places[0] for section in alone)
        names = [
            section.name
            if section.standing.default
            else " ".join([section.name, *_condition(section)])
            for section in alone
        ]
        several = len({place.name for place in places}) > 1
        show_title(["tasks with one model" if several else places[0].name])
        models = [_models(places)] if several else []
        keys = [Column(["task"], names, "left"), *models]
        _show_places(alone[0].threshold, places, keys, at, in_tokens=in_tokens)
        print_notes(alone)
        if in_tokens:
            tell(unit_note([place.tokens for place in places], places[0].run.spec.unit))
        _tell_of_origins(places)
        echo("")


def _known(tokens: TokensASymbol | str) -> str:
    """Tokens a symbol, or a dash."""
    return "–" if isinstance(tokens, str) else str(tokens)


def print_notes(alone: Sequence[Section]) -> None:
    """Prints why the only model of each task is not ranked, and what helps."""
    for section in alone:
        for note in standing_notes(section.standing):
            tell(f"{section.name}: {note}" if len(alone) > 1 else note)


def print_chart(of_tasks: Sequence[Section]) -> None:
    """Prints the effective length of each model under each condition, with its interval: a column
    for each model where they fit beside each other, else a row.
    """
    models = list(dict.fromkeys(details.name for section in of_tasks for details in section.runs))
    rows = [
        (section, condition)
        for section in of_tasks
        for condition in dict.fromkeys(series.condition for series in section.series)
    ]

    def cell(section: Section, condition: Condition, model: str) -> str:
        return length_text(section.estimates.get((model, condition.label)))

    def keys(rows: Sequence[tuple[Section, Condition]]) -> list[Column]:
        return [
            Column(["task"], [section.name for section, _ in rows], "left"),
            Column(["condition"], [of.only(section.varied).label for section, of in rows], "left"),
        ]

    columns = [Column([model], [cell(*row, model) for row in rows], "left") for model in models]
    show_title([chart_title(of_tasks[0].threshold)])
    if fits([*keys(rows), *columns]):
        show(table([*keys(rows), *columns]))
    else:
        long = [(row, model) for row in rows for model in models]
        columns = [
            Column(["model"], [model for _, model in long], "left"),
            Column(["sees to"], [cell(*row, model) for row, model in long], "left"),
        ]
        parts = range(len(models), len(long), len(models))
        show(table([*keys([row for row, _ in long]), *columns], parts))
    if any(not one.one_threshold for section in of_tasks for one in section.estimates.values()):
        tell(STAR)
    echo("")


def _tell_of_origins(places: Sequence[Place]) -> None:
    runs = [(place.name, place.run) for place in places]
    notes = (*several_models_notes(runs), *drift_notes(runs))
    for note in filter(None, (recorded_note(runs), reading_note(runs), *notes)):
        tell(note)


def _condition(section: Section) -> list[str]:
    """The values of the condition of the standing, on the axes that vary."""
    values = section.standing.condition.only(section.varied)
    return [f"{axis}={value}" for axis, value in values.items()]


def _by_test(places: Sequence[Place], *, ranked: bool) -> list[Column]:
    """The ranks; or of many models how probably each sees furthest, and how many it is shown to see
    further than, cannot be told from, and is shown to see less far than.
    """
    if ranked:
        return [Column(["rank"], [place.ranks_text for place in places])]
    counts = [tested_counts(place.by_test) or ("–",) * len(TESTED_HEADS) for place in places]
    tested = [
        Column([head], [str(one[at]) for one in counts]) for at, head in enumerate(TESTED_HEADS)
    ]
    return [Column([FURTHEST], [probability_text(place.p_furthest) for place in places]), *tested]


def _models(places: Sequence[Place]) -> Column:
    names = [
        place.name
        + ", adaptive" * place.adaptive
        + ", recorded" * (place.run.manifest.recorded is not None)
        for place in places
    ]
    return Column(["model"], names, "left")


def _show_places(
    threshold: Threshold,
    places: Sequence[Place],
    keys: Sequence[Column],
    at: Sequence[int],
    more: Sequence[Column] = (),
    *,
    in_tokens: bool,
) -> None:
    """A table of effective lengths, with the accuracy at each length `at`, and the meaning of its
    star.
    """
    columns = [
        Column([sees_text(threshold, in_tokens=in_tokens)], [*map(_length, places)]),
        Column([INTERVAL], [*map(_interval, places)], "left"),
    ]
    if in_tokens:
        columns.append(Column(["tokens a symbol"], [_known(place.tokens) for place in places]))
    if any(place.estimate and not place.estimate.limit.is_ranked for place in places):
        limits = [place.estimate.limit.by if place.estimate else "" for place in places]
        columns.append(Column(["limited by"], limits, "left"))
    texts = [at_texts(place.estimate, at, threshold) for place in places]
    prices = cost_texts([place.run.conditions.get(place.condition) for place in places], at)
    for one in (texts, prices):
        columns += [Column([name], [of_place[name] for of_place in one]) for name in one[0]]
    columns += more
    show_blocks(keys, columns)
    if any(place.estimate and not place.estimate.one_threshold for place in places):
        tell(STAR)


def _length(place: Place) -> str:
    """The effective length, with a star if there is no single threshold."""
    if place.estimate is None:
        return "–"
    return f"{place.estimate.length_text}{'' if place.estimate.one_threshold else ' *'}"


def _interval(place: Place) -> str:
    """The interval, with a note if the replies are few."""
    if place.estimate is None:
        return "–"
    parts = span_text(place.estimate.length_ci), place.estimate.few
    return ", ".join(filter(None, parts))


def document(
    output: Path, ranked: Iterable[Section], at: Sequence[int] = (), *, in_tokens: bool = False
) -> dict[str, Any]:
    """The rows of a leaderboard's file, with numbers as numbers, and the ranks of each task, with
    the accuracy at each length `at`.
    """
    page = output.with_suffix(".html")
    rows = [{name: _value(name, text) for name, text in row.items()} for row in read_rows(output)]
    return {
        "file": output,
        "page": page if page.exists() else None,
        "ranks": [
            {
                "task": section.task,
                "condition": standing.condition.label,
                "unit": standing.ranking.unit,
                "tests": standing.tests,
                "models": [
                    _ranked(place, standing, section.threshold, at) for place in standing.places
                ],
            }
            for section in ranked
            for standing in [section.standing_in(in_tokens=in_tokens)]
        ],
        "rows": rows,
    }


def _ranked(
    place: Place, standing: Standing, threshold: Threshold, at: Sequence[int]
) -> dict[str, Any]:
    best, last = place.ranks or (None, None)
    judged = place.run.conditions.get(standing.condition)
    return {
        "rank_best": best,
        "rank_last": last,
        "model": place.run.manifest.model,
        "name": place.name,
        "folder": place.run.folder,
        "adaptive": place.adaptive,
        "kind": ASKED if place.run.manifest.recorded is None else RECORDED,
        **estimate_columns(place.estimate, adaptive=place.adaptive),
        **({} if judged is None else token_columns(judged, threshold)),
        "right_at": [
            at_length(place.estimate, one).columns
            | {COST_A_REPLY: None if judged is None else cost_of_reply_at(judged, one)}
            for one in at
        ]
        if place.estimate
        else [],
    }


def _value(name: str, text: str) -> float | str | None:
    is_right_at = right_at_length(name) != "" and not name.endswith("_bound")
    if name not in _NUMBERS and not name.startswith(ACCURACY_AT) and not is_right_at:
        return text
    number = float(text) if text else math.nan
    return int(number) if number.is_integer() else number
