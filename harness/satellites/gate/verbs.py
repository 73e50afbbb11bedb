"""Compare runs with a saved baseline, for pipelines.

Options are parsed before slow modules are imported, as in `harness.cli.app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    ASKING,
    AllFindingsOption,
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
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.judging import JUDGING

gate_app = typer.Typer(rich_markup_mode=None)
_JUDGING = [name for name in JUDGING if name != "near"]
"""All but how near an answer is: a baseline has verdicts, and no answers."""


@gate_app.command(
    cls=Verb,
    epilog=examples(
        "bench run --task counting --model tiny --draws 4",
        "bench gate --save baseline.json results/runs/tiny/*/*",
        "bench gate baseline.json results/runs/tiny/*/* --junit gate.xml",
        "bench gate baseline.json RUN --margin 1.2x --fail-if undecided",
        "bench gate baseline.json RUN --ask --max-requests 500",
    ),
)
@takes(*_JUDGING, *ASKING, max_connections=None)
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
    all_findings: AllFindingsOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Compare runs with a saved baseline, as bench compare does, and end with an exit code.

    Exit codes: 0, passed; 1, a run or the baseline cannot be read; 2, they cannot be compared, or
    the command line is wrong; 3 or 4, the verdict on a run fails. The end of --help lists, for each
    value of --fail-if, which verdicts give 3 and which give 4. Without --fail-if a gate takes
    worse. bench compare --fail-if has the same codes. A run is incomplete if it lacks samples of
    the other one. It is not comparable if something else than sight limits it, or if no area can
    fall by more than the margin.

    --save writes the file: the verdict on each sample, without replies. It replaces a baseline of
    the same models and tasks, and no other, and says how likely it calls an unchanged model worse
    too often. Each task needs one run, of the lengths, conditions and samples of the baseline.

    --ask asks each run more samples of the baseline, in up to four waves, so that a run of few is
    enough to begin with. It says before what that may cost. Models at a server need --base-url, and
    --header again where they were asked with it.
    """
    from eyechart.harness.satellites.gate import command
    from eyechart.harness.satellites.gate.outputs import Files

    asking = limits_of(given, ask=ask, requests=max_requests, dry_run=dry_run)
    judging = judging_of(given)
    if save:
        of_comparing = {
            "--ask": ask,
            "--junit": junit,
            "--summary": summary,
            "--fail-if": judging.fail_if,
            "--json": as_json,
        }
        if vain := next((option for option, value in of_comparing.items() if value), None):
            raise UsageError(f"--save compares no runs, which {vain} is for; leave out one of them")
        raise typer.Exit(command.save(baseline, runs, judging, all_findings=all_findings))
    files = Files(junit, summary)
    raise typer.Exit(
        command.gate(
            baseline,
            runs,
            judging,
            files=files,
            asking=asking,
            is_dry=dry_run,
            all_findings=all_findings,
            as_json=as_json,
        )
    )
