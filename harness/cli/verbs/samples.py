"""Print samples of a run, with their replies."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    RunArgument,
    examples,
    judging_of,
    takes,
    whole,
)
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.score.outcomes import RECORDED
from eyechart.harness.settings.judging import OF_SAMPLES

app = typer.Typer(rich_markup_mode=None)


@app.command(
    cls=Verb,
    epilog=examples(
        "bench run --task counting/ones --model tiny",
        "bench samples results/runs/tiny/counting/ones@1-*",
        "bench samples RUN --outcome incorrect --length 50 --condition separator=none",
        "bench samples RUN --outcome unparsed,refused --limit 0 --json",
    ),
)
@takes(*OF_SAMPLES)
def samples(
    run: RunArgument,
    *,
    outcome: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[,NAME]", help=f"Only these outcomes: {', '.join(RECORDED)}."),
    ] = None,
    length: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N", parser=whole(0), help="Only this nominal length of a line, or true length."
        ),
    ] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=VALUE[,AXIS=VALUE]", help="Only conditions with all of these values."
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(metavar="N", parser=whole(0), help="Samples to print, at most; 0 for all."),
    ] = 10,
    full: Annotated[
        bool, typer.Option("--full", help="Print long texts without leaving out their middle.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line, with all texts in full.")
    ] = False,
    **given: Any,
) -> None:
    """Print samples of a run: prompt, reply with the answer read in it marked, target, outcome.

    Each of --outcome, --length and --condition may be given several times.
    """
    from eyechart.harness.cli.work import samples as sample_verbs

    raise typer.Exit(
        sample_verbs.samples(
            run,
            outcomes=outcome or [],
            lengths=length or [],
            conditions=condition or [],
            limit=limit,
            full=full,
            as_json=as_json,
            judging=judging_of(given),
        )
    )
