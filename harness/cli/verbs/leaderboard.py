"""Rank runs in a table and on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.completion import complete_runs
from eyechart.harness.cli.parsing.options import (
    AllFindingsOption,
    AtOption,
    JsonOption,
    TableFormOption,
    examples,
    judging_of,
    matching,
    settings_of,
    takes,
)
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.settings.judging import JUDGED

app = typer.Typer(rich_markup_mode=None)


@app.command(
    cls=Verb,
    epilog=examples(
        "bench run --task counting/ones --model tiny,oracle:50",
        "bench leaderboard",
        "bench leaderboard results/runs/tiny/*/* -o results/leaderboard.csv --readme README.md",
        "bench leaderboard --format latex > table.tex",
    ),
)
@takes("out", *JUDGED)
def leaderboard(
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN…]",
            help="Folders of runs, or patterns as of bench compare; default: all under --out.",
            autocompletion=complete_runs,
            callback=matching,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="CSV file to add to; default: in --out, if it "
            "has no rows of other models or tasks than the named runs.",
        ),
    ] = None,
    readme: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Markdown file whose table is renewed.")
    ] = None,
    at: AtOption = None,
    ranks_only: Annotated[
        bool,
        typer.Option(
            "--ranks-only",
            help="The page has all rows of the file, and no charts or samples: it opens quickly.",
        ),
    ] = False,
    all_findings: AllFindingsOption = False,
    form: TableFormOption = None,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Merge runs into one table, a row for each model, task and condition, and into a page.

    Prints the models of each task, sorted by effective length, each with the ranks that it can have
    by the tests. The accuracies at the lengths of --at are in the file, in the
    table and on the page. Rows of the file stay where their runs are not among these. Runs that
    cannot be compared with the others are left out, with the reason. --format without -o prints
    its tables, of these runs alone, and writes nothing.
    """
    from eyechart.harness.cli.tables import paper_tables
    from eyechart.harness.cli.work import leaderboard as board

    if form is not None:
        paper_tables.check_form(form, {"--json": as_json, "--all-findings": all_findings})
    raise typer.Exit(
        board.leaderboard(
            runs or [],
            out=settings_of(given).out,
            output=output,
            readme=readme,
            judging=judging_of(given),
            at=at or (),
            ranks_only=ranks_only,
            all_findings=all_findings,
            form=form,
            as_json=as_json,
        )
    )
