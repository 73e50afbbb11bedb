"""Write a page about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
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
        "bench run --task counting/ones --model tiny,oracle:50",
        "bench report results/runs/tiny/*/* results/runs/oracle/50/*/* -o report.html",
        "bench report results/runs/tiny/counting/ones@1-* -o ones.html --format html,svg",
    ),
)
@takes(*JUDGED)
def report(
    runs: RunsArgument,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")
    ] = Path("report.html"),
    formats: Annotated[
        list[str],
        typer.Option(
            "--format", metavar="html,pdf,png,svg", help="Pictures go to a folder beside the page."
        ),
    ] = ["html"],  # noqa: B006  typer copies it
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Write a page about runs that works offline: curves, outcomes, answers, effects, samples.

    Prompts are made again: from built-in tasks, from task files that --task names, and from what
    the runs kept.
    """
    from eyechart.harness.cli.work import report as reporting

    raise typer.Exit(reporting.report(runs, output, formats, judging_of(given), as_json=as_json))
