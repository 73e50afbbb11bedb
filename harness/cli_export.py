"""`bench export`: the tasks for other engines, the runs for the places where results are published.

Parses first and imports later, as `harness.cli` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli_options import (
    ApiOption,
    AxisOption,
    LengthsOption,
    LogprobsOption,
    MaxTokensOption,
    ModelOption,
    OutOption,
    SamplesOption,
    SeedOption,
    SystemOption,
    TaskOption,
    TemperatureOption,
    examples,
)

export_app = typer.Typer(
    help="Write tasks for other engines, and runs for where results are published.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@export_app.command(
    epilog=examples(
        "bench export batch --task counting --model gpt-4o -o requests.jsonl",
        "bench export batch --task counting --model vllm/tiny -o requests.jsonl",
        "vllm run-batch -i requests.jsonl -o replies.jsonl --model DIR --served-model-name tiny",
        "bench import replies.jsonl",
    )
)
def batch(
    *,
    task: TaskOption,
    model: ModelOption,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Several, numbered, if it is large."),
    ],
    lengths: LengthsOption = None,
    samples: SamplesOption = None,
    axis: AxisOption = None,
    seed: SeedOption = 0,
    temperature: TemperatureOption = 0.0,
    max_tokens: MaxTokensOption = "auto",
    api: ApiOption = "chat",
    system: SystemOption = None,
    logprobs: LogprobsOption = False,
    out: OutOption = Path("results"),
) -> None:
    """Write what a run would ask as a file for OpenAI's Batch API or 'vllm run-batch'.

    Only what has no answer yet is written. 'bench import' takes the replies into the same run that
    'bench run' would fill, and either goes on where the other stopped.
    """
    from harness import batch_verbs, launch, verbs

    plans = verbs.plans(task, lengths=lengths, samples=samples, axes=axis or [], seed=seed)
    options = launch.Options(
        model=model,
        out=out,
        seed=seed,
        temperature=temperature,
        max_tokens=verbs.max_tokens(max_tokens),
        api=api,
        system=system,
        logprobs=logprobs,
    )
    raise typer.Exit(batch_verbs.export(plans, options, output))
