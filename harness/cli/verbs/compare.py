"""Compare runs, or two conditions of each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.completion import one_of
from eyechart.harness.cli.parsing.options import (
    ASKING,
    AllFindingsOption,
    DryAskOption,
    MostAskedOption,
    RunsArgument,
    TableFormOption,
    examples,
    judging_of,
    limits_of,
    takes,
)
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.settings.judging import JUDGING

app = typer.Typer(rich_markup_mode=None)


@app.command(
    cls=Verb,
    epilog=examples(
        "bench run --task counting/ones --model tiny,oracle:50",
        "bench compare results/runs/tiny/counting/ones@1-* "
        "results/runs/oracle/50/counting/ones@1-*",
        "bench compare results/runs/tiny/counting/ones@1-* --axis separator=none,comma",
        "bench compare 'results/runs/**/counting/ones@1-*' -o compare.csv",
        "bench compare RUN RUN --ask --max-requests 200",
        "bench compare RUN RUN RUN --ask --settle best",
        "bench compare BASE NEW --fail-if worse --margin 0.05",
    ),
)
@takes(*JUDGING, *ASKING, max_connections=None)
def compare(
    runs: RunsArgument,
    *,
    axis: Annotated[
        str | None,
        typer.Option(metavar="AXIS=VALUE,VALUE", help="Compare two conditions of each run."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="CSV file to write, of all pairs."),
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask the runs more, until their comparison is decided.")
    ] = False,
    settle: Annotated[
        str | None,
        typer.Option(
            metavar="ranks|best",
            autocompletion=one_of("ranks", "best"),
            help="With --ask of three runs or more: what to find out, the order of all (ranks, "
            "the default) or which is right furthest.",
        ),
    ] = None,
    max_requests: MostAskedOption = None,
    dry_run: DryAskOption = False,
    all_findings: AllFindingsOption = False,
    form: TableFormOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, of all pairs.")
    ] = False,
    **given: Any,
) -> None:
    """Compare runs, or two conditions of each run, on the same samples.

    Of two: for each line both accuracies, the difference (first minus second) with its interval,
    and the p-value of McNemar's exact test with Holm's correction (Fisher's, of recorded replies to
    different rows); then both effective lengths with the median of their ratio, and areas. One
    sentence is the verdict: who is right further, that the two differ, that they are equivalent, or
    that this is open.

    Of three or more: the runs by effective length; each pair of them, Holm's correction for all
    pairs; and whether each run is worse, better or equivalent, compared with the first one named.

    --ask asks in up to four waves: of two first what one lacks of the other, then rows where they
    differ most likely; of three or more those whose order is open. It says before what that may
    cost. Replies are added to the folders of the runs, and the same command goes on after an
    interrupt. Models at a server need --base-url, one for all runs.
    """
    from eyechart.harness.cli.work import compare as comparing

    asking = limits_of(
        given,
        ask=ask,
        requests=max_requests,
        settle=settle,
        dry_run=dry_run,
    )
    raise typer.Exit(
        comparing.compare(
            runs,
            axis,
            output,
            judging_of(given),
            as_json=as_json,
            asking=asking,
            settle=settle,
            is_dry=dry_run,
            all_findings=all_findings,
            form=form,
        )
    )
