"""Draw a figure for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.completion import one_of
from eyechart.harness.cli.parsing.options import (
    JsonOption,
    RunsArgument,
    examples,
    judging_of,
    number,
    takes,
)
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.settings.figure import FONT, FONT_SIZE, KINDS, WIDTH, FigureStyle
from eyechart.harness.settings.judging import JUDGED

app = typer.Typer(rich_markup_mode=None)


@app.command(
    cls=Verb,
    epilog=examples(
        "bench run --task counting/ones --model tiny,oracle:50",
        "bench figure accuracy results/runs/tiny/counting/ones@1-* -o accuracy.pdf",
        "bench figure lengths 'results/runs/**/counting/ones@1-*' -o lengths --format pdf,svg",
        "bench figure table 'results/runs/**/counting/ones@1-*' -o table.tex",
    ),
)
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
            "--output",
            "-o",
            metavar="FILE",
            help="File to write; default: KIND.pdf or table.tex.",
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="pdf,png,svg|tex,md",
            help="Formats to write; default: the ending of -o.",
        ),
    ] = None,
    width: Annotated[
        float,
        typer.Option(
            metavar="INCHES",
            parser=number,
            help="Width with all labels: a column of a paper. A wider table has near and apart.",
        ),
    ] = WIDTH,
    height: Annotated[
        float | None,
        typer.Option(
            metavar="INCHES",
            parser=number,
            help="Height, of each where there are several; default: what it needs.",
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
    """Draw a figure for a paper, without a title and readable in grey, or write its table, and
    print the files' names. Figures need the extra charts.

    KINDS

    Packages may add kinds: eyechart-lab adds probe and first, of probes, whose folders are named
    beside those of their runs. Several figures of a kind stand below each other in the file. Lines
    on stderr say what a caption must say. Tables of tests are those of bench compare --format, and
    those of ranks of bench leaderboard --format.
    """
    from eyechart.harness.cli.work import figure as paper

    style = FigureStyle(width, height, font, font_size)
    judging = judging_of(given)
    code = paper.figure(
        kind, runs, output, formats or [], style=style, judging=judging, as_json=as_json
    )
    raise typer.Exit(code)


figure.__doc__ = str(figure.__doc__).replace(
    "KINDS", " ".join(f"{kind}: {what}." for kind, what in KINDS.items())
)
