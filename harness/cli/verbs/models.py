"""List providers and their needs."""

from __future__ import annotations

from typing import Annotated

import typer

from eyechart.harness.cli.parsing.options import JsonOption, examples
from eyechart.harness.cli.parsing.settings import Verb

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=Verb, epilog=examples("bench models", "bench models --update-prices"))
def models(
    *,
    update_prices: Annotated[
        bool, typer.Option("--update-prices", help="Fetch the newest list of prices first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the providers and what each needs."""
    from eyechart.harness.cli.work import models as model_list

    if update_prices:
        model_list.update_prices()
    model_list.list_models(as_json=as_json)
