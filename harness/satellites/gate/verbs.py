"""The verb `gate`: runs against a saved baseline, with exit codes for pipelines.

Options are parsed before slow modules are imported, as in `harness.cli.app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    ASKING,
    JUDGED,
    DryAskOption,
    JsonOption,
    MostAskedOption,
    RunsArgument,
    examples,
    judging_of,
    limits_of,
    takes,
)
from eyechart.harness.cli.parsing.settings import Verb

gate_app = typer.Typer(rich_markup_mode=None)


@gate_app.command(
    cls=Verb,
    short_help="Compare runs with a saved baseline, for pipelines.",
    epilog=examples(
        "bench run --task counting --model tiny --draws 4",
        "bench gate --save baseline.json results/runs/tiny/*/*",
        "bench gate baseline.json results/runs/tiny/*/* --junit gate.xml",
        "bench gate baseline.json RUN --margin 1.2x --fail-if undecided",
        "bench gate baseline.json RUN --ask --max-requests 500",
    ),
)
@takes(*JUDGED, "margin", "fail_if", *ASKING, max_connections=None)
def gate(
    baseline: Annotated[
        Path, typer.Argument(metavar="BASELINE", help="A file that --save has written.")
    ],
    runs: RunsArgument,
    *,
    save: Annotated[
        bool, typer.Option("--save", help="Write the verdicts of the runs to BASELINE.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JUnit XML to write, a test for each task.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to which a summary in Markdown is appended."),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Ask the runs more samples of the baseline, until each is decided."
        ),
    ] = False,
    max_requests: MostAskedOption = None,
    dry_run: DryAskOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Compare runs with a saved baseline, as bench compare does, and end with an exit code.

    Exit codes, also of bench compare --fail-if: 3, a run is what --fail-if names (of a gate, unless
    it says otherwise: worse); 4, a run cannot be judged, because it lacks samples of the other one,
    something else than sight limits it, or no area can fall by more than the margin; or it is open
    what became of it, where --fail-if names that (undecided, not-equivalent); 0, neither; 1, a run
    or the baseline cannot be read; 2, they cannot be compared, or the command line is wrong.

    --save writes the file: the verdict on each sample, without replies. It replaces a baseline of
    the same models and tasks, and no other. It says how likely such a baseline calls an unchanged
    model worse too often; more --draws in the run that is saved make that rarer. Each task of the
    baseline needs one run, which has the same rows: ask it with the same lengths, conditions and
    samples.

    --ask asks each run more samples of the baseline, as many on each line, in up to four waves,
    with a look after each; it says before what that may cost, and with --dry-run only that. So a
    run of few samples is enough to begin with. Models at a server need --base-url,
    and --header again where they were asked with it.
    """
    from eyechart.harness.satellites.gate import command
    from eyechart.harness.satellites.gate.outputs import Files

    asking = limits_of(given, ask=ask, requests=max_requests, dry_run=dry_run)
    judging = judging_of(given)
    if save:
        raise typer.Exit(command.save(baseline, runs, judging, asks=ask))
    files = Files(junit, summary)
    raise typer.Exit(
        command.gate(
            baseline, runs, judging, files=files, asking=asking, is_dry=dry_run, as_json=as_json
        )
    )
