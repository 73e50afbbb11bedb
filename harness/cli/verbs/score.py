"""`bench score`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    JUDGED,
    AllFindingsOption,
    AtOption,
    JsonOption,
    RunsArgument,
    TableFormOption,
    examples,
    judging_of,
    takes,
)
from eyechart.harness.cli.parsing.settings import Verb

app = typer.Typer(rich_markup_mode=None)


@app.command(
    cls=Verb,
    epilog=examples(
        "bench run --task counting/ones --model tiny",
        "bench score results/runs/tiny/counting/ones@1-*",
        "bench score --threshold 0.5 results/runs/tiny/counting/ones@1-*",
        "bench score --by topic RUN",
        "bench score --at 20,200 RUN",
        "bench score --format latex 'results/runs/**/counting/ones@1-*' > tables.tex",
    ),
)
@takes(*JUDGED, "within")
def score(
    runs: RunsArgument,
    *,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Also accuracy by this name of the items' metadata."),
    ] = None,
    at: AtOption = None,
    all_findings: AllFindingsOption = False,
    form: TableFormOption = None,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Judge runs again from their journals, without a model, and rewrite their tables.

    Prints which samples are now judged differently, and why.
    """
    from eyechart.harness.cli.tables import paper_tables
    from eyechart.harness.cli.work import score as results

    if form is not None:
        paper_tables.check_form(
            form, {"--json": as_json, "--by": by, "--at": at, "--all-findings": all_findings}
        )
    judging = judging_of(given)
    if form is not None:
        raise typer.Exit(paper_tables.tables(runs, form, judging))
    raise typer.Exit(
        results.score(runs, judging, by=by, at=at or (), all_findings=all_findings, as_json=as_json)
    )
