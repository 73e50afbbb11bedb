"""`bench run`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import typer

from eyechart.harness.cli.options import (
    JsonOption,
    command_of,
    examples,
    settings_of,
    takes,
    warner_for_default_axes,
)
from eyechart.harness.cli.settings import AskingVerb
from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.providers.naming import named

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
@takes(*SETTINGS)
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
    """Run tasks on models, one after another, and write accuracy-vs-length tables.

    The same command again continues where it stopped; more lengths or samples grow the same run.
    """
    if ask_server and not dry_run:
        raise UsageError("--ask-server needs --dry-run; a run asks the server anyway")
    debug = bool(context.find_root().params["debug"])
    if study is not None:
        from eyechart.harness.cli import study as studies
        from eyechart.harness.study.spec import KEYS

        settings = settings_of(_beside_study(context, given, KEYS, study))
        runs = studies.read(study, settings, trusts=settings.trust)
        if dry_run:
            raise typer.Exit(studies.dry_run(runs, asks_server=ask_server, as_json=as_json))
        raise typer.Exit(studies.run(runs, out=settings.out, as_json=as_json, debug=debug))
    for name in ("task", "model"):
        if not given[name]:
            raise UsageError(
                f"--{name} is missing; 'bench run STUDY' takes tasks and models from a file"
            )
    from eyechart.harness.cli.dry_run import dry_run as show_plan
    from eyechart.harness.cli.models import run_models, warn_of_unknown
    from eyechart.harness.face.run_options import models_of
    from eyechart.harness.plan import selection

    settings = settings_of(given)
    _refuse_swapped(settings.task, settings.model)
    plans = selection.plans(settings, leave_out=warner_for_default_axes(context))
    models = models_of(settings, plans, notify=warn, command=command_of(context))
    warn_of_unknown(models)
    chooser = None
    if settings.adaptive:
        from eyechart.harness.face.adaptive import adaptive_chooser

        chooser = adaptive_chooser(settings, further=not settings.chooses_lines)
    for planned in plans:
        for warning in selection.warnings_of(planned):
            warn(warning)
    if dry_run:
        raise typer.Exit(show_plan(plans, models, chooser, asks_server=ask_server, as_json=as_json))
    raise typer.Exit(run_models(plans, models, chooser, debug=debug, as_json=as_json))


def _refuse_swapped(tasks: Sequence[str], models: Sequence[str]) -> None:
    """Raises `UsageError` where a built-in task stands for a model."""
    from eyechart.harness.task.catalogue import built_in_files
    from eyechart.providers.registry import owner_of

    swapped = [model for model in models if model in built_in_files()]
    if swapped and all(map(owner_of, tasks)):
        task, model = ",".join(swapped), ",".join(tasks)
        raise UsageError(
            f"{model!r} is a model and {task!r} a task; write --task {task} --model {model}"
        )


_BESIDE_STUDY = ("out", "model", "budget", "fresh", "keep_going", "trust", "log_to")
"""Settings that a command may give together with a study."""


def _beside_study(
    context: typer.Context, given: Mapping[str, Any], keys: Collection[str], study: str
) -> dict[str, Any]:
    """The settings that the command line gives together with a study; its others are in its file,
    so that it is the same study everywhere.
    """
    from eyechart.harness.study.reading import find_study

    find_study(study)
    kept = {"out": given["out"]}
    for name, value in given.items():
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if name not in _BESIDE_STUDY:
            key = "tasks" if name == "task" else SETTINGS[name].key
            remedy = f"write {key!r} into its file" if key in keys else "leave it out"
            raise UsageError(f"{named(name)} does not go together with a study; {remedy}")
        kept[name] = value
    return kept
