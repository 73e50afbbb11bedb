"""List, show and check studies."""

from __future__ import annotations

from typing import Annotated

import typer

from eyechart.harness.cli.parsing.options import JsonOption, TrustOption, examples
from eyechart.harness.errors import UsageError

app = typer.Typer(
    help="List the built-in studies; show one; check a study's file.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
StudyArgument = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study's file, or the name of a built-in one.")
]


@app.callback()
def _study(context: typer.Context, *, as_json: JsonOption = False) -> None:
    if context.invoked_subcommand is None:
        from eyechart.harness.cli.work import study

        study.list_studies(as_json=as_json)
    elif as_json:
        raise UsageError("--json goes after the verb: bench study check FILE --json")


@app.command(epilog=examples("bench study show standard"))
def show(name: StudyArgument, *, trust: TrustOption = False) -> None:
    """Print a study's file, and the name under which it is cited."""
    from eyechart.harness.cli.work import study

    study.show_study(name, trusts=trust)


@app.command(epilog=examples("bench study check study.yaml", "bench study check standard"))
def check(
    files: Annotated[
        list[str], typer.Argument(metavar="STUDY…", help="Studies' files, or built-in names.")
    ],
    *,
    trust: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check studies: the file, its tasks and axes, its models.

    No model is asked. The tasks' generators are executed.
    """
    from eyechart.harness.cli.work import study

    raise typer.Exit(study.check_studies(files, trusts=trust, as_json=as_json))
