"""The options of the verbs that show what is there: `samples`, `runs`, `tasks sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.options import (
    JsonOption,
    OutOption,
    RunArgument,
    examples,
    judging_of,
    takes,
    whole,
)
from eyechart.harness.score.outcomes import RECORDED

TASK_SAMPLE_EXAMPLES = examples(
    "bench tasks sample 'separators/ones_314@1|separator=none|length=314|seed=0|index=0'"
)
SAMPLES_EXAMPLES = examples(
    "bench run --task counting/ones --model tiny",
    "bench samples results/runs/tiny/counting/ones@1-*",
    "bench samples RUN --outcome incorrect --length 50 --condition separator=none",
    "bench samples RUN --outcome unparsed,refused --limit 0 --json",
)
RUNS_EXAMPLES = examples(
    "bench run --task counting/ones --model tiny",
    "bench runs",
    "bench runs --out results --json",
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
    """Make one sample again from its id; print its prompt and its target."""
    from eyechart.harness.cli import samples as sample_verbs

    sample_verbs.task_sample(identifier, judging_of(given).tasks, as_json=as_json)


@takes("tasks", "run_kept_code")
def samples(
    run: RunArgument,
    *,
    outcome: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[,NAME]", help=f"Only these outcomes: {', '.join(RECORDED)}."),
    ] = None,
    length: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N", parser=whole(0), help="Only this nominal length of a line, or true length."
        ),
    ] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=VALUE[,AXIS=VALUE]", help="Only conditions with all of these values."
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(metavar="N", parser=whole(0), help="Samples to print, at most; 0 for all."),
    ] = 10,
    full: Annotated[
        bool, typer.Option("--full", help="Print long texts without leaving out their middle.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line, with all texts in full.")
    ] = False,
    **given: Any,
) -> None:
    """Print samples of a run: prompt, reply with the answer read in it marked, target, outcome.

    Each of --outcome, --length and --condition may be given several times.
    """
    from eyechart.harness.cli import samples as sample_verbs

    raise typer.Exit(
        sample_verbs.samples(
            run,
            outcomes=outcome or [],
            lengths=length or [],
            conditions=condition or [],
            limit=limit,
            full=full,
            as_json=as_json,
            judging=judging_of(given),
        )
    )


def runs(*, out: OutOption = Path("results"), as_json: JsonOption = False) -> None:
    """List the runs under a folder: model, task, samples answered of planned, last change."""
    from eyechart.harness.cli import samples as sample_verbs

    raise typer.Exit(sample_verbs.runs(out, as_json=as_json))
