"""The work of `bench score`, and the tables of a run as all verbs show them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.samples.groups import grouped
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.analysis.tables.results import change_lines, changes, write_results
from eyechart.harness.analysis.tables.tables import (
    at_table,
    cells_table,
    effective_length_table,
    finding_columns,
    to_csv,
)
from eyechart.harness.cli.documents import print_document, rows_of
from eyechart.harness.cli.findings import tell_findings
from eyechart.harness.cli.readable import readable_runs
from eyechart.harness.cli.tables.run_tables import print_groups, print_table
from eyechart.harness.cli.terminal import echo, say, tell, warn
from eyechart.harness.cli.work.next_command import (
    NextCommandFacts,
    after_runs,
    followed,
    score_command,
)
from eyechart.harness.errors import COMPLETE, INCOMPLETE
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Condition


def score(
    folders: Sequence[Path],
    judging: JudgeSettings,
    *,
    by: str | None,
    at: Sequence[int],
    all_findings: bool,
    as_json: bool,
) -> int:
    """Judges runs again and rewrites their tables, with one more for the metadata `by`; shows the
    accuracy at each length `at`. Prints the tables, or one document.
    """
    missing = 0
    followed_runs: list[NextCommandFacts] = []
    documents: list[dict[str, Any]] = []
    unread: list[str] = []
    for run in readable_runs(folders, judging, unread):
        if as_json:
            documents.append(_score_document(run, by, at))
        else:
            say(*change_lines(run))
            followed_runs.append(show_run(run, at=at, all_findings=all_findings))
            if by is not None:
                _show_groups(run, by)
        missing += run.missing
    if as_json:
        print_document({"runs": documents})
    else:
        echo(after_runs(followed_runs))
    if missing:
        warn("some samples have no reply; the command that made their run asks them again")
    return INCOMPLETE if missing or unread else COMPLETE


def run_document(run: JudgedRun, at: Sequence[int] = ()) -> dict[str, Any]:
    """A judged run: who was asked what, the rows of its two tables, and the accuracy at each length
    `at`.
    """
    manifest = run.manifest
    return {
        "model": manifest.model,
        "task": manifest.task,
        "task_version": manifest.task_version,
        "draws": run.draws,
        "settings": manifest.settings.given(),
        "recorded": None if manifest.recorded is None else asdict(manifest.recorded),
        "folder": run.folder,
        "missing": run.missing,
        **run.settings.of_runs,
        "findings": [*map(finding_columns, findings(run))],
        "conditions": rows_of(effective_length_table(run)),
        "cells": rows_of(cells_table(run)),
        "right_at": rows_of(at_table(run, at)),
    }


def _score_document(run: JudgedRun, by: str | None, at: Sequence[int]) -> dict[str, Any]:
    _, changed = changes(run)
    write_results(run)
    document = run_document(run, at)
    document["changes"] = [
        {"id": one.id, "before": one.before, "now": one.now, "why": one.why} for one in changed
    ]
    if by is not None:
        groups = grouped(run, by)
        to_csv(groups.table, run.folder / f"by_{by}.csv")
        document["groups"] = rows_of(groups.table)
        document["without_group"] = groups.without
    return document


def show_run(
    judged_run: JudgedRun,
    conditions: Collection[Condition] | None = None,
    *,
    at: Sequence[int] = (),
    all_findings: bool = False,
) -> NextCommandFacts:
    """Writes the result files of a run and prints its tables, only of `conditions` if given, and
    its findings. Returns what the next command depends on.
    """
    path = write_results(judged_run)
    print_table(judged_run, conditions, at=at)
    everything = score_command([judged_run.folder], judged_run.settings)
    if hidden := len(judged_run.conditions) - len(judged_run.shown(conditions)):
        others = f"{hidden} other condition{'s' * (hidden > 1)}"
        tell(f"{others} of this run not shown; see: {everything}")
    tell_findings(
        findings(judged_run, conditions),
        is_all=all_findings,
        rest=everything,
    )
    echo(str(path), "")
    return followed(judged_run)


def missing_text(run: JudgedRun) -> str:
    """How many samples of a run have no reply, each draw counted, for a message."""
    size = sum(cell.samples * cell.draws for cell in run.manifest.cells)
    return f"{run.manifest.task}: {run.missing:,} of {size:,} samples have no reply"


def _show_groups(run: JudgedRun, name: str) -> None:
    """Writes and prints the accuracy of a run by the metadata `name` of its items."""
    groups = grouped(run, name)
    if groups.without:
        many = groups.without != 1
        where = (
            "samples are in no row: their items have"
            if many
            else "sample is in no row: its item has"
        )
        sent = "are not the ones that were sent" if many else "is not the one that was sent"
        warn(f"{run.folder}: {groups.without:,} {where} no {name!r}, or {sent}")
    print_groups(run, groups.table)
    echo(str(to_csv(groups.table, run.folder / f"by_{name}.csv")), "")
