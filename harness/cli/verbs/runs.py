"""List runs."""

from __future__ import annotations

from typing import Any

import typer

from eyechart.harness.cli.parsing.options import (
    JsonOption,
    examples,
    settings_of,
    takes,
)
from eyechart.harness.cli.parsing.settings import Verb

app = typer.Typer(rich_markup_mode=None)


@app.command(
    cls=Verb,
    epilog=examples(
        "bench run --task counting/ones --model tiny",
        "bench runs",
        "bench runs --out results --json",
    ),
)
@takes("out")
def runs(*, as_json: JsonOption = False, **given: Any) -> None:
    """List the runs under a folder: model, task, samples answered of planned, last change."""
    from eyechart.harness.cli.work import runs as run_list

    raise typer.Exit(run_list.runs(settings_of(given).out, as_json=as_json))
