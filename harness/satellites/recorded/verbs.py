"""Take replies of batches into their runs.

Options are parsed before slow modules are imported, as in `harness.cli.app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.completion import complete_tasks
from eyechart.harness.cli.parsing.options import (
    JsonOption,
    command_of,
    examples,
    judging_of,
    settings_of,
    takes,
)
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.judging import OF_RUNS

import_app = typer.Typer(rich_markup_mode=None)
IMPORT_EXAMPLES = examples(
    "bench import replies.jsonl",
    "bench import batch_123_output.jsonl batch_123_error.jsonl --out results",
    "bench import samples_words.jsonl --task my_task.yaml --model gpt-4o",
    "bench import log.csv --task my_task.yaml --model gpt-4o --field reply=answer,item=number",
)


def _names_model(given: str) -> bool:
    """Whether an option `--field` names the column of the models."""
    return any(part.strip().startswith("model=") for part in given.split(","))


@import_app.command(epilog=IMPORT_EXAMPLES, cls=Verb)
@takes("out", *OF_RUNS, "run_kept_code")
def import_(
    context: typer.Context,
    *,
    replies: Annotated[
        list[Path], typer.Argument(metavar="REPLIES…", help="Files of replies and of errors.")
    ],
    tasks: Annotated[
        str,
        typer.Option(
            "--task",
            "-t",
            metavar="NAME[,NAME]",
            help="Task files of your own, to make prompts again; with --model: the replies' task.",
            autocompletion=complete_tasks,
        ),
    ] = "",
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="Make a run of this model from replies that somebody else collected: JSON Lines, "
            "CSV, OpenAI's Batch form, lm-eval's samples, Inspect's .eval.",
        ),
    ] = "",
    field: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            metavar="FIELD=COLUMN[,…]",
            help="With --model: column of a field: reply, item, target, length, prompt, verdict, "
            "an axis, …; model=COLUMN without --model: a run of each model.",
        ),
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            "--axis",
            metavar="AXIS=VALUE",
            help="With --model: the value of an axis that no column has.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="COLUMN[!]=VALUE",
            help="With --model: take only rows with this value, or with != without it.",
        ),
    ] = None,
    recorded_by: Annotated[
        str, typer.Option(metavar="NAME", help="With --model: who collected the replies.")
    ] = "",
    recorded_at: Annotated[
        str, typer.Option(metavar="YEAR[-MONTH[-DAY]]", help="With --model: when.")
    ] = "",
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Write the replies to a batch into the journals of their runs, and judge these runs.

    The batch comes from 'bench export batch'. With --model, make a run from replies that somebody
    else collected; with --field model=COLUMN in its place, a run of each model.

    Prints what is missing. Importing the same file again changes nothing.
    """
    from eyechart.harness.analysis.samples.judged_run import JudgedRun
    from eyechart.harness.analysis.tables.results import write_results
    from eyechart.harness.cli.documents import print_document
    from eyechart.harness.cli.work.batch import import_replies
    from eyechart.harness.cli.work.score import run_document, show_run
    from eyechart.harness.satellites.recorded.command import import_files

    judging, out = judging_of({**given, "tasks": tasks}), settings_of(given).out
    runs: list[JudgedRun] = []

    def keep(run: JudgedRun) -> None:
        write_results(run)
        runs.append(run)

    if model or any(_names_model(given) for given in field or ()):
        code = import_files(
            replies,
            out,
            tasks,
            model,
            fields=field or (),
            axes=axis or (),
            where=where or (),
            by=recorded_by,
            at=recorded_at,
            command=command_of(context),
            judging=judging,
            show=keep if as_json else None,
        )
    elif field or axis or where or recorded_by or recorded_at:
        raise UsageError(
            "recorded replies need the name of their model: --model NAME, or --field "
            "model=COLUMN for a run of each model"
        )
    else:
        code = import_replies(replies, out, judging, keep if as_json else show_run)
    if as_json:
        print_document({"runs": [*map(run_document, runs)]})
    raise typer.Exit(code)
