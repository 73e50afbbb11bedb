"""The options of the verbs that judge: `score`, `compare`, `leaderboard`, `report`, `figure`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.completion import complete_runs, one_of
from eyechart.harness.cli.options import (
    ASKING,
    JUDGED,
    AllFindingsOption,
    AtOption,
    DryAskOption,
    JsonOption,
    MostAskedOption,
    OutOption,
    RunsArgument,
    TableFormOption,
    examples,
    judging_of,
    limits_of,
    matching,
    number,
    takes,
)
from eyechart.harness.settings.figure import FONT, FONT_SIZE, KINDS, WIDTH, FigureStyle

SCORE_EXAMPLES = examples(
    "bench run --task counting/ones --model tiny",
    "bench score results/runs/tiny/counting/ones@1-*",
    "bench score --threshold 0.5 results/runs/tiny/counting/ones@1-*",
    "bench score --by topic RUN",
    "bench score --at 20,200 RUN",
    "bench score --format latex 'results/runs/**/counting/ones@1-*' > tables.tex",
)
COMPARE_EXAMPLES = examples(
    "bench run --task counting/ones --model tiny,oracle:50",
    "bench compare results/runs/tiny/counting/ones@1-* results/runs/oracle/50/counting/ones@1-*",
    "bench compare results/runs/tiny/counting/ones@1-* --axis separator=none,comma",
    "bench compare 'results/runs/**/counting/ones@1-*' -o compare.csv",
    "bench compare RUN RUN --ask --max-requests 200",
    "bench compare RUN RUN RUN --ask --settle best",
    "bench compare BASE NEW --fail-if worse --margin 0.05",
)
LEADERBOARD_EXAMPLES = examples(
    "bench run --task counting/ones --model tiny,oracle:50",
    "bench leaderboard",
    "bench leaderboard results/runs/tiny/*/* -o results/leaderboard.csv --readme README.md",
    "bench leaderboard --format latex > table.tex",
)
REPORT_EXAMPLES = examples(
    "bench run --task counting/ones --model tiny,oracle:50",
    "bench report results/runs/tiny/*/* results/runs/oracle/50/*/* -o report.html",
    "bench report results/runs/tiny/counting/ones@1-* -o ones.html --format html,svg",
)
FIGURE_EXAMPLES = examples(
    "bench run --task counting/ones --model tiny,oracle:50",
    "bench figure accuracy results/runs/tiny/counting/ones@1-* -o accuracy.pdf",
    "bench figure lengths 'results/runs/**/counting/ones@1-*' -o lengths --format pdf,svg",
    "bench figure probe results/runs/tiny/*/* results/probes/tiny/*/* --width 6.75",
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
    from eyechart.harness.cli import paper, results

    if form is not None:
        paper.check_form(
            form, {"--json": as_json, "--by": by, "--at": at, "--all-findings": all_findings}
        )
    judging = judging_of(given)
    if form is not None:
        raise typer.Exit(paper.tables(runs, form, judging))
    raise typer.Exit(
        results.score(runs, judging, by=by, at=at or (), all_findings=all_findings, as_json=as_json)
    )


@takes(*JUDGED, "margin", "fail_if", *ASKING, max_connections=None)
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
            "the default) or which sees furthest.",
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
    and the p-value of McNemar's exact test with Holm's correction; then both effective lengths and
    areas. One sentence is the verdict: who sees further, that the two differ, that they are
    equivalent, or that this is open. A factor between two lengths is the median of their ratio.
    Recorded replies to different rows are compared unpaired: by Fisher's exact test, and without
    areas.

    --ask asks first what one run lacks of the other, then rows where the two differ most likely, in
    up to four waves; of three or more, the runs whose order is open, on the lines where their
    lengths may be. It says before what that may cost; --dry-run says only that, with the price of
    the first wave. Replies are added to the folders of the runs, and the same command goes on after
    an interrupt. Models at a server need --base-url, one for all runs.

    Of three or more: the runs by effective length; each pair of them, Holm's correction for all
    pairs; and whether each run is worse, better or equivalent, compared with the first one named.
    """
    from eyechart.harness.cli import comparing

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


@takes(*JUDGED)
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
    out: OutOption = Path("results"),
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
    from eyechart.harness.cli import leaderboard as board
    from eyechart.harness.cli import paper

    if form is not None:
        paper.check_form(form, {"--json": as_json, "--all-findings": all_findings})
    raise typer.Exit(
        board.leaderboard(
            runs or [],
            out=out,
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
    from eyechart.harness.cli import documents, results

    work = partial(results.report, runs, output, formats, judging_of(given))
    raise typer.Exit(documents.files(work, as_json=as_json))


@takes(*JUDGED)
def figure(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="|".join(KINDS), help="What it shows.", autocompletion=one_of(*KINDS)
        ),
    ],
    runs: RunsArgument,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write; default: the kind, as a PDF."
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format", metavar="pdf,png,svg", help="Formats to write; default: the ending of -o."
        ),
    ] = None,
    width: Annotated[
        float,
        typer.Option(
            metavar="INCHES", parser=number, help="Width with all labels: a column of a paper."
        ),
    ] = WIDTH,
    height: Annotated[
        float | None,
        typer.Option(
            metavar="INCHES", parser=number, help="Height; default: what the figure needs."
        ),
    ] = None,
    font: Annotated[
        str, typer.Option(metavar="NAME[,NAME]", help="Fonts; the first that is there is used.")
    ] = FONT,
    font_size: Annotated[
        float, typer.Option(metavar="POINTS", parser=number, help="Size of all text.")
    ] = FONT_SIZE,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Draw a figure for a paper, without a title and readable in grey, and print the files' names.
    The extra charts is needed.

    KINDS

    Folders of probes stand beside those of their runs. Where there are several figures of a kind,
    each has a file. Lines on stderr say what a caption must say.
    """
    from eyechart.harness.cli import documents, paper

    style = FigureStyle(width, height, font, font_size)
    judging = judging_of(given)
    work = partial(paper.figure, kind, runs, output, formats or [], style=style, judging=judging)
    raise typer.Exit(documents.files(work, as_json=as_json))


figure.__doc__ = str(figure.__doc__).replace(
    "KINDS", " ".join(f"{kind}: {what}." for kind, what in KINDS.items())
)
