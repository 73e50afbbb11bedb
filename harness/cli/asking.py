"""The options of the verbs that collect replies: `run` and `import`.

Options are parsed before slow modules are imported, as in `harness.cli.app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eyechart.harness.cli.numbers import number, whole_of
from eyechart.harness.cli.options import (
    AdaptiveOption,
    ApiOption,
    AxisOption,
    EffortOption,
    EngineOption,
    InterveneOption,
    JsonOption,
    LabelOption,
    LengthsOption,
    LogprobsOption,
    MaxRequestsOption,
    MaxTokensOption,
    ModelUnlessStudyOption,
    NameOption,
    OutOption,
    PrecisionOption,
    PresetOption,
    RayAddressOption,
    RayWorkersOption,
    SamplesOption,
    SeedOption,
    ShardOption,
    SpreadOption,
    SystemOption,
    TaskUnlessStudyOption,
    TemperatureOption,
    TrustOption,
    command_of,
    examples,
    listed,
    warner_for_default_axes,
)
from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import UsageError

RUN_EXAMPLES = examples(
    "bench run --task counting --model tiny",
    "bench run --task copying/first_last --model tiny --axis hint=all --lengths 10,20,50",
    "bench run --task copying/first_last --model tiny --preset barbero",
    "bench run --task my_task.yaml --model oracle:50",
    "bench run --task counting --model gpt-4o,gpt-4.1-mini --dry-run",
    "bench run standard --model gpt-4o --dry-run",
    "bench run study.yaml",
    "bench run --task counting --model gpt-4o --budget 5",
    "bench run --task counting --model gpt-4o --adaptive --max-requests 500",
    "bench run --task counting --model gpt-4o --batch",
    "bench run --task counting --model gpt-4o --repeat",
    "bench run --task counting --model gpt-4o --shard 3/16",
    "bench run --task counting --model vllm/Qwen/Qwen3-4B --engine ray --ray-address auto",
    "bench run --task counting --model gpt-5 --effort low,medium,high",
    "bench run --task counting --model Qwen/Qwen3-4B --base-url http://127.0.0.1:8000/v1",
    "bench run --task counting --model m8 --base-url http://127.0.0.1:8000/v1 --name lab/m8",
    "bench run --task counting --model vllm/Qwen/Qwen3-4B --vllm-arg --tensor-parallel-size=2",
    "bench run --task counting --model lm-eval/hf --model-arg pretrained=Qwen/Qwen3-4B",
)


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
    task: TaskUnlessStudyOption = None,
    model: ModelUnlessStudyOption = None,
    name: NameOption = None,
    preset: PresetOption = None,
    lengths: LengthsOption = None,
    spread: SpreadOption = None,
    samples: SamplesOption = None,
    axis: AxisOption = None,
    adaptive: AdaptiveOption = False,
    precision: PrecisionOption = None,
    max_requests: MaxRequestsOption = None,
    seed: SeedOption = 0,
    temperature: TemperatureOption = 0.0,
    max_tokens: MaxTokensOption = "auto",
    api: ApiOption = "chat",
    system: SystemOption = None,
    effort: EffortOption = None,
    label: LabelOption = None,
    intervene: InterveneOption = None,
    logprobs: LogprobsOption = False,
    base_url: Annotated[
        list[str] | None,
        typer.Option("--base-url", metavar="URL", help="Server to ask; several are replicas."),
    ] = None,
    accept_server: Annotated[
        bool,
        typer.Option(
            "--accept-server",
            help="Go on with a run at a server that does not say whether it has the same model.",
        ),
    ] = False,
    vllm_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--vllm-arg", metavar="ARG", help="Argument for the server that vllm/ starts."
        ),
    ] = None,
    model_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--model-arg", metavar="KEY=VALUE", help="Argument for the model that lm-eval/ loads."
        ),
    ] = None,
    max_connections: Annotated[
        int,
        typer.Option(
            metavar="N", parser=whole_of("max_connections"), help="Requests in flight, at most."
        ),
    ] = 64,
    rpm: Annotated[
        float | None,
        typer.Option(metavar="N", parser=number(), help="Requests a minute, at most."),
    ] = None,
    tpm: Annotated[
        float | None,
        typer.Option(metavar="N", parser=number(), help="Tokens a minute, at most."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="USD", parser=number(), help="Dollars after which nothing more is sent."
        ),
    ] = None,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch", help="Use the vendor's Batch API: cheaper, but replies may take a day."
        ),
    ] = False,
    tier: Annotated[
        str | None,
        typer.Option(metavar="TIER", help="The vendor's tier: default, flex (cheap, slow), batch."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, send nothing.")
    ] = False,
    ask_server: Annotated[
        bool,
        typer.Option(
            "--ask-server",
            help="With --dry-run: ask a vLLM server at --base-url for its window and token counts.",
        ),
    ] = False,
    shard: ShardOption = None,
    engine: EngineOption = None,
    ray_address: RayAddressOption = None,
    ray_workers: RayWorkersOption = None,
    out: OutOption = Path("results"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over; the old run moves to OUT/replaced.")
    ] = False,
    repeat: Annotated[
        bool,
        typer.Option(
            "--repeat", help="Ask the samples of a complete run again; which verdicts change?"
        ),
    ] = False,
    trust: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run tasks on models, one after another, and write accuracy-vs-length tables.

    The same command again continues where it stopped; more lengths or samples grow the same run.
    """
    if ask_server and not dry_run:
        raise UsageError("--ask-server needs --dry-run; a run asks the server anyway")
    if study is not None:
        raise typer.Exit(
            _run_study(
                context,
                study,
                out=out,
                models=listed(model or ()),
                budget=budget,
                fresh=fresh,
                trusts=trust,
                accept_server=accept_server,
                is_dry=dry_run,
                asks_server=ask_server,
                as_json=as_json,
            )
        )
    for option, names in (("task", task), ("model", model)):
        if not names:
            raise UsageError(
                f"--{option} is missing; 'bench run STUDY' takes tasks and models from a file"
            )
    task, models_given = task or [], listed(model or ())
    if name is not None and len(models_given) > 1:
        raise UsageError(
            f"--name names one model, and --model has {len(models_given)}; give each a command"
        )
    from eyechart.harness.cli.dry_run import dry_run as show_plan
    from eyechart.harness.cli.models import run_models, warn_of_unknown
    from eyechart.harness.face.run_options import RunOptions, read_settings
    from eyechart.harness.plan import selection

    plans = selection.plans(
        ",".join(listed(task)),
        lengths=lengths,
        spread=spread,
        samples=samples,
        axes=axis or [],
        seed=seed,
        leave_out=warner_for_default_axes(context),
        adaptive=adaptive,
        preset=preset,
        notify=warn,
    )
    system_text = selection.system_prompt(plans, system)
    settings = [
        read_settings(
            seed=seed,
            temperature=temperature,
            max_tokens=max_tokens,
            api=api,
            system=system_text,
            effort=one_effort,
        )
        for one_effort in (listed([effort]) if effort is not None else [None])
    ]
    options = [
        RunOptions.from_command(
            model=one,
            called=name,
            out=out,
            settings=of_effort,
            notify=warn,
            logprobs=logprobs,
            base_urls=base_url or (),
            accept_server=accept_server,
            server_args=vllm_arg or (),
            model_args=model_arg or (),
            max_connections=max_connections,
            rpm=rpm,
            tpm=tpm,
            budget=budget,
            fresh=fresh,
            batch=batch,
            tier=tier,
            adaptive=adaptive,
            precision=precision,
            max_requests=max_requests,
            repeat=repeat,
            shard=shard,
            engine=engine,
            ray_address=ray_address,
            ray_workers=ray_workers,
            label=label,
            intervention=intervention,
            command=command_of(context),
        )
        for one in models_given
        for of_effort in settings
        for intervention in (listed(intervene) if intervene else [None])
    ]
    models = list({one.model.label: one for one in options}.values())
    warn_of_unknown(models)
    chooser = None
    if adaptive:
        from eyechart.harness.face.adaptive import adaptive_chooser

        chooser = adaptive_chooser(models[0], further=lengths is None and preset is None)
    for planned in plans:
        if warning := selection.repeats(planned):
            warn(warning)
    if dry_run:
        raise typer.Exit(show_plan(plans, models, chooser, asks_server=ask_server, as_json=as_json))
    debug = bool(context.find_root().params["debug"])
    raise typer.Exit(run_models(plans, models, chooser, debug=debug, as_json=as_json))


_KEYS = {"axis": "axes", "name": "called", "task": "tasks"}
"""Parameter of `run` -> its key in a study's file, where that is another word."""
_OF_STUDY = (
    *("study", "out", "model", "budget", "fresh", "accept_server", "dry_run", "ask_server"),
    *("trust", "as_json"),
)
"""Parameters of `run` that may be given together with a study."""


def _run_study(
    context: typer.Context,
    name: str,
    *,
    out: Path,
    models: list[str],
    budget: float | None,
    fresh: bool,
    trusts: bool,
    accept_server: bool,
    is_dry: bool,
    asks_server: bool,
    as_json: bool,
) -> int:
    """Runs or prices a study. Its settings are in its file, so it is the same study everywhere."""
    from eyechart.harness.cli import study
    from eyechart.harness.study.reading import find_study

    find_study(name)
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        if given and parameter.name not in _OF_STUDY:
            name = _KEYS.get(parameter.name or "", parameter.name)
            remedy = f"write {name!r} into its file" if name in study.FIELDS else "leave it out"
            raise UsageError(f"{parameter.opts[0]} does not go together with a study; {remedy}")
    source = context.get_parameter_source("model")
    asked = models if source is not None and source.name == "COMMANDLINE" else []
    source = context.get_parameter_source("budget")
    limit = budget if source is not None and source.name == "COMMANDLINE" else None
    runs = study.read(
        name,
        out=out,
        models=asked,
        budget=limit,
        fresh=fresh,
        trusts=trusts,
        accept_server=accept_server,
    )
    if is_dry:
        return study.dry_run(runs, asks_server=asks_server, as_json=as_json)
    debug = bool(context.find_root().params["debug"])
    return study.run(runs, out=out, as_json=as_json, debug=debug)
