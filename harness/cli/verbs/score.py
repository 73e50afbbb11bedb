"""Judge runs again, without a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    AllFindingsOption,
    AtOption,
    JsonOption,
    RunsArgument,
    examples,
    judging_of,
    takes,
)
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.settings.judging import JUDGED

app = typer.Typer(rich_markup_mode=None)


@app.command(
    cls=Verb,
    epilog=examples(
        "bench run --task counting/ones --model tiny",
        "bench score results/runs/tiny/counting/ones@1-*",
        "bench score --threshold 0.5 results/runs/tiny/counting/ones@1-*",
        "bench score --by topic RUN",
        "bench score --at 20,200 RUN",
    ),
)
@takes(*JUDGED)
def score(
    runs: RunsArgument,
    *,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Also accuracy by this name of the items' metadata."),
    ] = None,
    at: AtOption = None,
    all_findings: AllFindingsOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Judge runs again from their journals, without a model, and rewrite their tables.

    Prints which samples are now judged differently, and why.
    """
    from eyechart.harness.cli.work import score as results

    judging = judging_of(given)
    raise typer.Exit(
        results.score(runs, judging, by=by, at=at or (), all_findings=all_findings, as_json=as_json)
    )
