"""List, show, write and check tasks."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    JsonOption,
    TaskArgument,
    examples,
    judging_of,
    takes,
)
from eyechart.harness.errors import UsageError

app = typer.Typer(
    help="List the tasks; show one; write a new one; check a task file; make a sample again.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@app.callback()
def _tasks(context: typer.Context, *, as_json: JsonOption = False) -> None:
    if context.invoked_subcommand is None:
        from eyechart.harness.cli.work import tasks as task_list

        task_list.list_tasks(as_json=as_json)
    elif as_json:
        raise UsageError("--json goes after the verb: bench tasks show NAME --json")


@app.command(
    epilog=examples("bench tasks show counting/ones", "bench tasks show my_task.yaml --json")
)
def show(name: TaskArgument, *, as_json: JsonOption = False) -> None:
    """Print a task's file and one prompt for each default condition."""
    from eyechart.harness.cli.work import tasks as task_list

    task_list.show_tasks(name, as_json=as_json)


@app.command(epilog=examples("bench tasks check my_task.yaml", "bench tasks check counting"))
def check(name: TaskArgument, *, as_json: JsonOption = False) -> None:
    """Check a task file, and prove how replies are judged.

    Right replies must be judged correct, and wrong ones not. Warns of what is unusual. Where one
    task is named, shows a prompt of each default condition.
    """
    from eyechart.harness.cli.work import tasks as task_list

    raise typer.Exit(task_list.check_tasks(name, as_json=as_json))


@app.command(
    epilog=examples(
        "bench tasks new my_task",
        "bench tasks check my_task.yaml",
        "bench run --task my_task.yaml --model tiny",
    )
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the task.")],
    *,
    generator: Annotated[
        str,
        typer.Option(
            metavar="FILE.py:FUNCTION", help="A generator that you have already; none is written."
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Write a task of your own into this folder.

    Its files are NAME.yaml, and NAME.py with its generator. It can be checked and run as it is. No
    file is replaced.
    """
    from eyechart.harness.cli.work import tasks as task_list

    raise typer.Exit(task_list.new_task(name, generator, as_json=as_json))


@app.command(
    epilog=examples(
        "bench tasks sample 'separators/ones_314@1|separator=none|length=314|seed=0|index=0'"
    )
)
@takes("tasks")
def sample(
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="Id of a sample, as 'bench samples' prints it.")
    ],
    *,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Make a sample again from its id.

    Prints its prompt and its target.
    """
    from eyechart.harness.cli.work import samples as sample_verbs

    sample_verbs.task_sample(identifier, judging_of(given).tasks, as_json=as_json)
