"""Show the help of a verb."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import examples
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.cli.terminal import echo
from eyechart.harness.errors import UsageError
from eyechart.providers.close_match import did_you_mean

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=Verb, epilog=examples("bench help run", "bench help tasks check"))
def help_(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[VERB…]", help="A verb.")] = None,
) -> None:
    """Show the help of the program, or of a verb."""
    shown: Any = context.find_root()  # a context of typer's own click
    for name in names or ():
        group = shown.command
        known = group.list_commands(shown) if hasattr(group, "list_commands") else []
        if name not in known:
            raise UsageError(
                f"no verb {name!r} of {shown.command_path!r}; {did_you_mean(name, known)}"
            )
        shown = type(shown)(group.get_command(shown, name), info_name=name, parent=shown)
    echo(*shown.get_help().split("\n"))
