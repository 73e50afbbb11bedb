"""Answer questions about rotary positions.

Options are parsed before slow modules are imported, as in `harness.cli.app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eyechart.harness.cli.parsing.options import (
    JsonOption,
    examples,
    listed,
    whole,
)
from eyechart.harness.cli.parsing.settings import Verb

ROPE_EXAMPLES = examples(
    "bench rope --base 500000 --head-dim 128",
    "bench rope --base 10000,500000,1000000 --context 8192,131072",
    "bench rope --base 10000 --head-dim 32 --to 4096 -o rope.csv -o rope.svg",
)
_MOST_DISTANCE = 1 << 20


app = typer.Typer(rich_markup_mode=None)


@app.command(epilog=ROPE_EXAMPLES, cls=Verb)
def rope(
    *,
    base: Annotated[
        list[str] | None,
        typer.Option("--base", metavar="N[,N]", help="Base of the rotary frequencies."),
    ] = None,
    head_dim: Annotated[
        int, typer.Option(metavar="N", parser=whole(2, 4096), help="Width of a head.")
    ] = 128,
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context", metavar="N[,N]", help="Tokens for which the least base is searched."
        ),
    ] = None,
    to: Annotated[
        int,
        typer.Option(
            metavar="N", parser=whole(1, _MOST_DISTANCE), help="Longest distance of the curves."
        ),
    ] = 65_536,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File of the curves, .csv or .svg; several may."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer questions about rotary positions without a model.

    How similar a query and an equal key are at each distance, the first distance at which that is
    negative, and the least base with which it never is in a context.
    """
    from eyechart_lab.probe.rope_command import rope as show_rope

    raise typer.Exit(
        show_rope(
            listed(base or ["10000"]),
            head_dim,
            listed(context or ["1024,4096,16384"]),
            to,
            output or [],
            as_json=as_json,
        )
    )
