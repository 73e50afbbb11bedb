"""Train variants of a model, and ask them.

Options are parsed before slow modules are imported, as in `harness.cli.app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    JsonOption,
    TrustOption,
    examples,
    settings_of,
    takes,
    whole,
)
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.errors import UsageError
from eyechart.providers.close_match import closest

app = typer.Typer(rich_markup_mode=None)
_MOST_JOBS = 256


@app.command(
    epilog=examples(
        "bench lab study.yaml --dry-run",
        "bench lab study.yaml --jobs 2",
        "bench lab study.yaml --device cuda --jobs 4",
        "bench lab embedded",
    ),
    cls=Verb,
)
@takes("out")
def lab(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY",
            help="The file of the study, or 'embedded': the recipe of the embedded model.",
        ),
    ],
    *,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole(1, _MOST_JOBS),
            help="Models that are trained, asked and probed at a time; default: 1, or 16 a GPU.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where models are trained: cpu, cuda for all GPUs, cuda:1; default: the GPUs, if "
            "there are any.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print what would be trained and asked, and how long that takes."
        ),
    ] = False,
    trust: TrustOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Train the variants of a study with several seeds, ask every model the same rows, and compare
    the variants over seeds.

    The same command again trains and asks what is missing: a training that was stopped goes on
    from its last checkpoint.
    """
    from eyechart_lab.variants import lab_command
    from eyechart_lab.variants.embedded import command

    if not study.exists() and closest(str(study), [command.NAME]) not in (None, str(study)):
        raise UsageError(f"no file {str(study)!r}; did you mean {command.NAME!r}?")
    wanted = lab_command.LabOptions(
        out=settings_of(given).out,
        jobs=jobs,
        device=device,
        dry_run=dry_run,
        trusts=trust,
        as_json=as_json,
    )
    is_embedded = str(study) == command.NAME
    raise typer.Exit(command.embedded(wanted) if is_embedded else lab_command.lab(study, wanted))
