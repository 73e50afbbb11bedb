"""`bench export`: the tasks for other engines, the runs for the places where results are published.

Parses first and imports later, as `harness.cli` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

export_app = typer.Typer(
    help="Write tasks for other engines, and runs for where results are published.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@export_app.command(
    "lm-eval",
    epilog="\b\nExamples:\n"
    "  bench export lm-eval --task counting -o eyechart_tasks\n"
    "  lm_eval run --include_path eyechart_tasks --tasks eyechart_counting --apply_chat_template",
)
def lm_eval(
    *,
    task: Annotated[
        str,
        typer.Option(
            "--task", "-t", metavar="NAME[,NAME]", help="Task, group, task file or folder of them."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")],
    lengths: Annotated[
        str | None, typer.Option(metavar="N[,N]", help="Symbols in a row; default: the task's.")
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Samples per cell.")] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option("--axis", metavar="AXIS=VALUE[,VALUE]", help="Values; 'all' for all."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides every row.")] = 0,
    api: Annotated[
        str, typer.Option(metavar="chat|completions", help="completions: for base models.")
    ] = "chat",
    max_tokens: Annotated[
        str, typer.Option(metavar="auto|N", help="Tokens a reply may have.")
    ] = "auto",
) -> None:
    """Write tasks, samples and scoring as a folder that lm-eval runs as it is.

    One lm-eval task a cell, groups above them; the same samples, ids and verdicts as `bench run`.
    """
    from harness import export_lm_eval, launch, verbs

    plans = verbs.plans(task, lengths=lengths, samples=samples, axes=axis or [], seed=seed)
    settings = launch.Options(model="", out=output, seed=seed, api=api).settings()
    most = verbs.max_tokens(max_tokens)
    raise typer.Exit(export_lm_eval.export(plans, output, api=settings.api, max_tokens=most))
