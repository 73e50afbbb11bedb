"""Run tasks on models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    JsonOption,
    command_of,
    examples,
    judging_of,
    settings_of,
    takes,
    warner_for_default_axes,
)
from eyechart.harness.cli.parsing.settings import AskingVerb
from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.judging import OF_RUNS
from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.providers.naming import named

if TYPE_CHECKING:
    from eyechart.harness.face.options.study import RunMatrix

app = typer.Typer(rich_markup_mode=None)


@app.command(
    cls=AskingVerb,
    epilog=examples(
        "bench run --task counting --model tiny",
        "bench run --task copying/first_last --model tiny --axis hint=all --lengths 10,20,50",
        "bench run --task my_task.yaml --model oracle:50",
        "bench run --task counting --model gpt-4o,gpt-4.1-mini --dry-run",
        "bench run standard --model gpt-4o --dry-run",
        "bench run barbero --model tiny --dry-run",
        "bench run study.yaml",
        "bench run --task counting --model gpt-4o --budget 5",
        "bench run --task counting --model gpt-4o --adaptive --max-requests 500",
        "bench run --task counting --model gpt-4o --tier batch",
        "bench run --task counting --model gpt-4o --temperature 0.7 --draws 5",
        "bench run --task counting --model gpt-4o --shard 3/16",
        "bench run --task counting --model vllm/Qwen/Qwen3-4B --engine ray:auto",
        "bench run --task counting --model gpt-5 --thinking low,medium,high",
        "bench run --task counting --model Qwen/Qwen3-4B --base-url http://127.0.0.1:8000/v1",
        "bench run --task counting --model m8 --base-url http://127.0.0.1:8000/v1 --name lab/m8",
        "bench run --task counting --model vllm/Qwen/Qwen3-4B --model-arg tensor-parallel-size=2",
        "bench run --task counting --model lm-eval/hf --model-arg pretrained=Qwen/Qwen3-4B",
    ),
)
@takes(*SETTINGS, hidden=OF_RUNS)
def run(
    context: typer.Context,
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY]",
            help="Models, tasks and settings in one file, or the name of a built-in study.",
        ),
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, send nothing.")
    ] = False,
    ask_server: Annotated[
        bool,
        typer.Option(
            "--ask-server",
            help="With --dry-run: ask a vLLM or llama.cpp server at --base-url for its window and "
            "token counts.",
        ),
    ] = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Run tasks on models, and write accuracy-vs-length tables.

    The same command again continues where it stopped; more lengths or samples grow the same run.
    """
    if ask_server and not dry_run:
        raise UsageError("--ask-server needs --dry-run; a run asks the server anyway")
    from eyechart.harness.cli.work.dry_run.dry_run import dry_run as show_plan
    from eyechart.harness.cli.work.run import run_models

    runs = _named(context, given) if study is None else _of_study(context, given, study)
    judging = judging_of(given)
    if dry_run:
        raise typer.Exit(show_plan(runs, judging, asks_server=ask_server, as_json=as_json))
    debug = bool(context.find_root().params["debug"])
    raise typer.Exit(run_models(runs, judging, as_json=as_json, debug=debug))


def _named(context: typer.Context, given: Mapping[str, Any]) -> RunMatrix:
    """What a command asks that names tasks and models."""
    for name in ("task", "model"):
        if not given[name]:
            raise UsageError(
                f"--{name} is missing; 'bench run STUDY' takes tasks and models from a file"
            )
    from eyechart.harness.face.options.study import command_runs

    settings = settings_of(given)
    _refuse_swapped(settings.task, settings.model)
    return command_runs(
        settings,
        notify=warn,
        leave_out=warner_for_default_axes(context),
        command=command_of(context),
    )


def _refuse_swapped(tasks: Sequence[str], models: Sequence[str]) -> None:
    """Raises `UsageError` where a built-in task stands for a model."""
    from eyechart.harness.task.catalogue import built_in_files
    from eyechart.providers.registry.model_name import owner_of

    swapped = [model for model in models if model in built_in_files()]
    if swapped and all(map(owner_of, tasks)):
        task, model = ",".join(swapped), ",".join(tasks)
        raise UsageError(
            f"{model!r} is a model and {task!r} a task; write --task {task} --model {model}"
        )


def _of_study(context: typer.Context, given: Mapping[str, Any], name: str) -> RunMatrix:
    """What a study asks, with the settings that the command line gives in place of those of its
    file. What is asked is in the file alone, so that a study is the same everywhere.
    """
    from eyechart.harness.face.options.study import study_runs
    from eyechart.harness.study.reading import BUILT_IN, find_study, read_study
    from eyechart.harness.study.spec import FIXED

    path = find_study(name)
    kept = {"out": given["out"]}
    for setting, value in given.items():
        if setting not in SETTINGS:
            continue  # how it is judged is no part of a study
        source = context.get_parameter_source(setting)
        if source is None or source.name != "COMMANDLINE":
            continue
        if setting in FIXED:
            key = "tasks" if setting == "task" else SETTINGS[setting].key
            copy = f", which 'bench study show {name} > {name}.yaml' copies"
            raise UsageError(
                f"{named(setting)} does not go together with a study; write {key!r} into its file"
                + copy * (path.parent == BUILT_IN)
            )
        SETTINGS[setting].read(value)  # a mistake is no mistake of the file
        kept[setting] = value
    return study_runs(read_study(path), kept, notify=warn, trusts=bool(kept.get("trust")))
