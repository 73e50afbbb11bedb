"""The command `bench`. Options are parsed before slow modules are imported, so that `bench --help`
is quick.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from harness.cli.export import export_app
from harness.cli.interrupts import raise_in_work
from harness.cli.looking import (
    RUNS_EXAMPLES,
    SAMPLES_EXAMPLES,
    TASK_SAMPLE_EXAMPLES,
    runs,
    sample,
    samples,
)
from harness.cli.options import (
    AdaptiveOption,
    ApiOption,
    AxisOption,
    LengthsOption,
    LogprobsOption,
    MaxRequestsOption,
    MaxTokensOption,
    ModelOption,
    OutOption,
    OwnTasksOption,
    PrecisionOption,
    RelativeOption,
    RunKeptCodeOption,
    RunsArgument,
    SamplesOption,
    SeedOption,
    SpreadOption,
    SystemOption,
    TaskArgument,
    TaskOption,
    TemperatureOption,
    ThresholdOption,
    examples,
)
from harness.cli.terminal import drop_output, echo, is_output_lost, open_streams, say, warn
from harness.errors import INCOMPLETE, INTERRUPTED, USAGE, EyechartError
from providers.base import ProviderError


class _Verbs(TyperGroup):
    """The verbs. An error that is meant for the user is printed as its lines and sets the exit
    code; with `--debug` it is a traceback.
    """

    def invoke(self, ctx: Any) -> Any:  # a context of typer's own click
        raise_in_work()
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # typer would print nothing
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except (EyechartError, ProviderError, OSError, MemoryError) as error:
            if ctx.params["debug"]:
                raise
            raise typer.Exit(_explain(error)) from None


def _explain(error: EyechartError | ProviderError | OSError | MemoryError) -> int:
    """Prints what went wrong; returns the exit code."""
    if isinstance(error, OSError):
        drop_output(sys.stdout)  # it cannot be flushed any more
        warn(f"{error.strerror or error}: {error.filename or 'output'}")
        return INCOMPLETE
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        warn(f"out of memory{detail}; ask for less at a time")
        return INCOMPLETE
    first, *more = error.lines if isinstance(error, EyechartError) else [str(error)]
    warn(first)
    say(*more)
    return error.exit_code


app = typer.Typer(
    name="bench",
    cls=_Verbs,
    help="An eye chart for language models: how far does a model see, and what moves that point?",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
tasks_app = typer.Typer(
    help="List the tasks; show one; check a task file; make a sample again.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
app.add_typer(tasks_app, name="tasks")
app.add_typer(export_app, name="export")
tasks_app.command(epilog=TASK_SAMPLE_EXAMPLES)(sample)
app.command(epilog=SAMPLES_EXAMPLES)(samples)
app.command(epilog=RUNS_EXAMPLES)(runs)


@app.callback(invoke_without_command=True)
def _root(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
    debug: Annotated[  # noqa: ARG001  `_Verbs` reads it
        bool, typer.Option("--debug", help="Show tracebacks.")
    ] = False,
) -> None:
    if show_version:
        from importlib.metadata import version

        echo(f"eyechart {version('eyechart')}")
        raise typer.Exit


@app.command(
    epilog=examples(
        "bench run --task counting --model tiny",
        "bench run --task copying/first_last --model tiny --axis hint=all --lengths 10,20,50",
        "bench run --task counting --model gpt-4o --dry-run",
        "bench run --task counting --model gpt-4o --budget 5",
        "bench run --task counting --model gpt-4o --adaptive --max-requests 500",
        "bench run --task counting --model gpt-4o --batch",
        "bench run --task counting --model gpt-4o --repeat",
        "bench run --task counting --model my-model --base-url http://127.0.0.1:8000/v1",
        "bench run --task counting --model vllm/Qwen/Qwen3-4B --vllm-arg --tensor-parallel-size=2",
        "bench run --task counting --model lm-eval/hf --model-arg pretrained=Qwen/Qwen3-4B",
        "bench run --task my_task.yaml --model tiny --samples 10 --dry-run",
    )
)
def run(
    *,
    task: TaskOption,
    model: ModelOption,
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
    logprobs: LogprobsOption = False,
    base_url: Annotated[
        list[str] | None,
        typer.Option("--base-url", metavar="URL", help="Server to ask; several are replicas."),
    ] = None,
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
        int, typer.Option(min=1, max=10_000, help="Requests in flight, at most.")
    ] = 64,
    rpm: Annotated[
        float | None, typer.Option(metavar="N", help="Requests a minute, at most.")
    ] = None,
    tpm: Annotated[
        float | None, typer.Option(metavar="N", help="Tokens a minute, at most.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="USD", help="Dollars after which nothing more is sent.")
    ] = None,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch", help="Use the vendor's Batch API: cheaper, but replies may take a day."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, send nothing.")
    ] = False,
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
) -> None:
    """Run tasks on a model and write accuracy-vs-length tables.

    The same command again continues where it stopped; more lengths or samples grow the same run.
    """
    from harness.cli.dry_run import dry_run as show_plan
    from harness.cli.run import run as run_plans
    from harness.face.run_options import RunOptions, read_settings
    from harness.plan import selection

    plans = selection.plans(
        task,
        lengths=lengths,
        spread=spread,
        samples=samples or (selection.MOST_SAMPLES if adaptive else None),
        axes=axis or [],
        seed=seed,
        in_bands=adaptive,
    )
    system_text = selection.system_prompt(plans, system)
    options = RunOptions.from_command(
        model=model,
        out=out,
        settings=read_settings(
            seed=seed, temperature=temperature, max_tokens=max_tokens, api=api, system=system_text
        ),
        notify=warn,
        logprobs=logprobs,
        base_urls=base_url or (),
        server_args=vllm_arg or (),
        model_args=model_arg or (),
        max_connections=max_connections,
        rpm=rpm,
        tpm=tpm,
        budget=budget,
        fresh=fresh,
        batch=batch,
        adaptive=adaptive,
        precision=precision,
        max_requests=max_requests,
        repeat=repeat,
    )
    chooser = None
    if adaptive:
        from harness.cli.adaptive import adaptive_chooser

        chooser = adaptive_chooser(options, further=lengths is None)
    for planned in plans:
        if warning := selection.repeats(planned):
            warn(warning)
    show = show_plan if dry_run else run_plans
    raise typer.Exit(show(plans, options, chooser))


@tasks_app.callback()
def _tasks(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        from harness.cli import verbs

        verbs.list_tasks()


@tasks_app.command(
    epilog=examples("bench tasks show counting/ones", "bench tasks show my_task.yaml")
)
def show(name: TaskArgument) -> None:
    """Print a task's file and one prompt for each default condition."""
    from harness.cli import verbs

    verbs.show_tasks(name)


@tasks_app.command(epilog=examples("bench tasks check my_task.yaml", "bench tasks check counting"))
def check(name: TaskArgument) -> None:
    """Check a task file, then prove that right replies are judged correct and wrong ones not.

    Warns of what is unusual. Where one task is named, shows a prompt of each default condition.
    """
    from harness.cli import verbs

    raise typer.Exit(verbs.check_tasks(name))


@app.command(
    epilog=examples(
        "bench score results/runs/tiny/counting/ones@1-*",
        "bench score --threshold 0.5 results/runs/tiny/counting/*",
        "bench score --by topic results/runs/gpt-4o/mine/questions@1-*",
    )
)
def score(
    runs: RunsArgument,
    *,
    threshold: ThresholdOption = 0.85,
    relative: RelativeOption = False,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Also accuracy by this name of the items' metadata."),
    ] = None,
    tasks: OwnTasksOption = "",
    run_kept_code: RunKeptCodeOption = False,
) -> None:
    """Judge runs again from their journals, without a model, and rewrite their tables.

    Prints which samples are now judged differently, and why.
    """
    from harness.cli import results

    raise typer.Exit(
        results.score(
            runs,
            results.read_threshold(threshold, relative=relative),
            tasks=tasks,
            by=by,
            run_kept_code=run_kept_code,
        )
    )


@app.command(
    name="import",
    epilog=examples(
        "bench import replies.jsonl",
        "bench import batch_123_output.jsonl batch_123_error.jsonl --out results",
    ),
)
def import_(
    replies: Annotated[
        list[Path], typer.Argument(metavar="REPLIES…", help="Files of replies and of errors.")
    ],
    *,
    out: OutOption = Path("results"),
    tasks: OwnTasksOption = "",
) -> None:
    """Take replies to what 'bench export batch' wrote into the journals of their runs, and judge.

    Prints what is missing. Importing the same file again changes nothing.
    """
    from harness.cli import batch

    raise typer.Exit(batch.import_replies(replies, out, tasks))


@app.command(
    epilog=examples(
        "bench compare results/runs/gpt-4o/counting/ones@1-* results/runs/tiny/counting/ones@1-*",
        "bench compare results/runs/tiny/counting/ones@1-* --axis separator=none,comma",
        "bench compare BASE NEW --fail-if worse --margin 0.05",
    )
)
def compare(
    runs: RunsArgument,
    *,
    axis: Annotated[
        str | None,
        typer.Option(metavar="AXIS=VALUE,VALUE", help="Compare two conditions of each run."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="CSV file to write.")
    ] = Path("compare.csv"),
    threshold: ThresholdOption = 0.85,
    relative: RelativeOption = False,
    margin: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Difference of areas up to which both are equivalent."),
    ] = 0.05,
    fail_if: Annotated[
        str | None,
        typer.Option(
            metavar="worse|different|not-equivalent",
            help="Exit with 1 where the second is that, compared with the first.",
        ),
    ] = None,
) -> None:
    """Compare two runs, or two conditions of one, on the same samples.

    Shows, for each line, both accuracies, the difference (first minus second) with its interval,
    and the p-value of McNemar's exact test with Holm's correction; then both effective lengths and
    areas. One sentence says who sees further, a second one whether the second is worse, better or
    equivalent.
    """
    from harness.cli import results

    raise typer.Exit(
        results.compare(
            runs,
            axis,
            output,
            results.read_threshold(threshold, relative=relative),
            margin=margin,
            fail_if=fail_if,
        )
    )


@app.command(
    epilog=examples(
        "bench leaderboard",
        "bench leaderboard results/runs/gpt-4o/*/* -o results/leaderboard.csv --readme README.md",
    )
)
def leaderboard(
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN…]", help="Folders of runs; default: all under --out."),
    ] = None,
    out: OutOption = Path("results"),
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="CSV file to add to; default: in --out."
        ),
    ] = None,
    readme: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown file whose table is renewed."),
    ] = None,
    tasks: OwnTasksOption = "",
    run_kept_code: RunKeptCodeOption = False,
    threshold: ThresholdOption = 0.85,
    relative: RelativeOption = False,
) -> None:
    """Merge runs into one table, a row for each model, task and condition, and into a page.

    Rows of the file whose runs are not among these stay. Runs that cannot be compared with the rest
    are left out, with the reason.
    """
    from harness.cli import results

    raise typer.Exit(
        results.leaderboard(
            runs or [],
            out=out,
            output=output,
            readme=readme,
            tasks=tasks,
            run_kept_code=run_kept_code,
            threshold=results.read_threshold(threshold, relative=relative),
        )
    )


@app.command(
    epilog=examples(
        "bench report results/runs/tiny/*/* -o report.html",
        "bench report results/runs/tiny/counting/ones@1-* -o ones.html --format html,svg",
    )
)
def report(
    runs: RunsArgument,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")
    ] = Path("report.html"),
    formats: Annotated[
        list[str],
        typer.Option(
            "--format", metavar="html,png,svg", help="Pictures go to a folder beside the page."
        ),
    ] = ["html"],  # noqa: B006  typer copies it
    tasks: OwnTasksOption = "",
    run_kept_code: RunKeptCodeOption = False,
    threshold: ThresholdOption = 0.85,
    relative: RelativeOption = False,
) -> None:
    """Write a page about runs that works offline: curves, outcomes, answers, effects, samples.

    Prompts are made again: from built-in tasks, from task files that --task names, and from what
    the runs kept.
    """
    from harness.cli import results

    raise typer.Exit(
        results.report(
            runs,
            output,
            formats,
            results.read_threshold(threshold, relative=relative),
            tasks=tasks,
            run_kept_code=run_kept_code,
        )
    )


@app.command(epilog=examples("bench models"))
def models() -> None:
    """List the providers and what each needs."""
    from harness.cli import verbs

    verbs.list_models()


def _show_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Prints a traceback without the keys that messages of servers and SDKs repeat."""
    import traceback

    text = "".join(traceback.format_exception(kind, error, trace))
    say(*text.removesuffix("\n").split("\n"))


def _call() -> int | None:
    try:
        code: int | None = app(standalone_mode=False)
    finally:
        sys.excepthook = _show_traceback  # typer replaces it
    return code


def main() -> None:
    """The entry point: an error that the user can mend is one line, with `--debug` a traceback."""
    # the embedded model keeps the cores busy itself; OpenBLAS reads this when numpy is imported
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    open_streams()
    try:
        code = _call()
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted")
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        # errors of the parser, from whichever click typer uses; others are a traceback
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if message.startswith("Usage:"):
            say(*message.split("\n"))
        else:
            warn(message)
        raise SystemExit(USAGE) from None
    raise SystemExit(code or (1 if is_output_lost() else 0))
