"""Write tasks for other engines, and runs for platforms.

Options are parsed before slow modules are imported, as in `harness.cli.app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    PLANNED,
    JsonOption,
    RunsArgument,
    TrustOption,
    command_of,
    examples,
    folder,
    judging_of,
    settings_of,
    takes,
    warner_for_default_axes,
)
from eyechart.harness.cli.parsing.settings import AskingVerb, Verb
from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.judging import JUDGED

export_app = typer.Typer(
    help="Write tasks for other engines, and runs for where results are published.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


FolderOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", parser=folder, help="Folder to write.")
]
_SHAPING = ("temperature", "max_tokens", "api", "system", "logprobs", "out")


@export_app.command(
    cls=AskingVerb,
    epilog=examples(
        "bench export batch --task counting --model gpt-4o -o requests.jsonl",
        "bench export batch --task counting --model vllm/tiny -o requests.jsonl",
        "vllm run-batch -i requests.jsonl -o replies.jsonl --model DIR --served-model-name tiny",
        "bench import replies.jsonl",
    ),
)
@takes("task", "model", *PLANNED, "draws", *_SHAPING, task=..., model=...)
def batch(
    context: typer.Context,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write; numbered files if it is large."
        ),
    ],
    trust: TrustOption = False,  # noqa: ARG001  `Verb` reads it
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Write the requests of a run as a file for a Batch API.

    The API is OpenAI's, or 'vllm run-batch'. Only samples without an answer are written. 'bench
    import' puts the replies into the same run that 'bench run' would fill, and each command
    continues where the other stopped.
    """
    from eyechart.harness.cli.work import batch
    from eyechart.harness.face.options.run_options import models_of
    from eyechart.harness.plan import selection

    settings = settings_of(given)
    plans = selection.plans(settings, leave_out=warner_for_default_axes(context))
    if len(settings.model) > 1:
        raise UsageError("a batch file asks one model; export a file for each")
    (options,) = models_of(settings, plans, notify=warn, command=command_of(context))

    raise typer.Exit(batch.export(plans, options, output, as_json=as_json))


@export_app.command(
    "lm-eval",
    cls=AskingVerb,
    epilog=examples(
        "bench export lm-eval --task counting -o eyechart_tasks",
        "lm_eval run --include_path eyechart_tasks --tasks eyechart_counting --apply_chat_template",
    ),
)
@takes("task", *PLANNED, "api", "max_tokens", task=...)
def lm_eval(
    context: typer.Context,
    *,
    output: FolderOption,
    trust: TrustOption = False,  # noqa: ARG001  `Verb` reads it
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Write tasks and samples as a folder for lm-eval.

    It runs the folder as it is, with our scoring. Each cell is one lm-eval task, in groups;
    samples, ids and verdicts are those of `bench run`.
    """
    from eyechart.harness.cli.documents import print_document
    from eyechart.harness.plan import selection
    from eyechart.harness.satellites.export.lm_eval import writer

    settings = settings_of(given)
    plans = selection.plans(settings, leave_out=warner_for_default_axes(context))
    tops = writer.export(plans, output, api=settings.api, max_tokens=settings.max_tokens)
    if as_json:
        print_document({"files": [output], "tasks": tops})
    else:
        echo(str(output))
    size = sum(plan.size for plan in plans)
    cells = sum(len(plan.sizes) for plan in plans)
    chat = " --apply_chat_template" if settings.api == "chat" else ""
    say(
        f"{size:,} samples in {cells:,} tasks:",
        f"lm_eval run --include_path {output} --tasks {','.join(tops)}{chat} --model …",
    )


@export_app.command(
    cls=AskingVerb,
    epilog=examples(
        "bench export verifiers --task counting/ones -o environments/ones",
        "pip install -e environments/ones",
        "vf-validate eyechart-counting-ones --runtime.type subprocess",
    ),
)
@takes("task", *PLANNED, task=...)
def verifiers(
    context: typer.Context,
    *,
    output: FolderOption,
    trust: TrustOption = False,  # noqa: ARG001  `Verb` reads it
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Write tasks as an environment for verifiers.

    The library trains or evaluates a model in it. The environment is a folder that 'pip install'
    takes, with a row for each sample. The reward is 1 for a reply that 'bench score' judges
    correct, else 0; other outcomes are metrics.
    """
    from eyechart.harness.cli.documents import print_document
    from eyechart.harness.plan import selection
    from eyechart.harness.satellites.export.verifiers import writer

    settings = settings_of(given)
    plans = selection.plans(settings, leave_out=warner_for_default_axes(context))
    name = writer.export(plans, output)
    if as_json:
        print_document({"files": [output], "environment": name})
    else:
        echo(str(output))
    say(
        f"{sum(plan.size for plan in plans):,} rows: pip install -e {output}",
        f"vf-eval {name} --env.agent.harness.id null --env.agent.runtime.type subprocess --model …",
    )


@export_app.command(
    "every-eval-ever",
    cls=Verb,
    epilog=examples(
        "bench run --task counting/ones --model tiny",
        "bench export every-eval-ever results/runs/tiny/*/*",
        "bench export every-eval-ever RUN --model-id my-lab/my-model",
    ),
)
@takes(*JUDGED)
def every_eval_ever(
    runs: RunsArgument,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", parser=folder, help="Folder to write data/ into."
        ),
    ] = Path("every-eval-ever"),
    organization: Annotated[
        str, typer.Option(metavar="NAME", help="Who publishes the results.")
    ] = "unknown",
    relationship: Annotated[
        str,
        typer.Option(
            metavar="first_party|third_party|collaborative|other",
            help="Relationship of whoever ran the evaluation to the model's maker.",
        ),
    ] = "other",
    model_id: Annotated[
        str | None,
        typer.Option(
            metavar="ORG/NAME", help="The model on its hub, where the run does not name it."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="open|closed|unknown", help="Whether the model's weights are public."),
    ] = None,
    benchmark: Annotated[
        str, typer.Option(metavar="NAME", help="Folder in data/, and first word of all names.")
    ] = "eyechart",
    samples: Annotated[
        bool,
        typer.Option(
            "--samples/--no-samples", help="Also write prompts and replies, in a second file."
        ),
    ] = True,
    incomplete: Annotated[
        bool,
        typer.Option("--incomplete", help="Also write runs that have samples without a reply."),
    ] = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Write runs in the schema "Every Eval Ever".

    The schema is version 0.3.0, of the EvalEval coalition. A JSON file for each run, with a result
    for each cell and each condition's area and effective length, and a file of samples beside it:
    data/BENCHMARK/ORG/NAME/UUID.json and UUID_samples.jsonl. The same run gives the same files.
    They contain the commands and what the servers reported, addresses and folders included: read
    them before you publish them.
    """
    from eyechart.harness.satellites.export import publish

    publisher = publish.read_publisher(
        organization, relationship, benchmark=benchmark, model_id=model_id, weights=weights
    )

    code = publish.every_eval_ever(
        runs,
        output,
        publisher,
        samples=samples,
        incomplete=incomplete,
        judging=judging_of(given),
        as_json=as_json,
    )
    raise typer.Exit(code)
