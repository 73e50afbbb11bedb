"""The command `bench`. Options are parsed before slow modules are imported, here and in the modules
that have the options of a verb.
"""

from __future__ import annotations

import os
import sys
from functools import cache, partial
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from eyechart.harness.cli.asking import RUN_EXAMPLES, run
from eyechart.harness.cli.defaults import unknown_variables
from eyechart.harness.cli.failures import FAILURES, explain, said_of_parsing
from eyechart.harness.cli.interrupts import raise_in_work
from eyechart.harness.cli.judging import (
    COMPARE_EXAMPLES,
    FIGURE_EXAMPLES,
    LEADERBOARD_EXAMPLES,
    REPORT_EXAMPLES,
    SCORE_EXAMPLES,
    compare,
    figure,
    leaderboard,
    report,
    score,
)
from eyechart.harness.cli.looking import RUNS_EXAMPLES, SAMPLES_EXAMPLES, runs, samples
from eyechart.harness.cli.options import JsonOption, examples
from eyechart.harness.cli.satellites import verb, verbs
from eyechart.harness.cli.settings import AskingVerb, Verb
from eyechart.harness.cli.studying import study_app
from eyechart.harness.cli.tasks import tasks_app
from eyechart.harness.cli.terminal import echo, is_output_lost, open_streams, say, warn
from eyechart.harness.errors import INCOMPLETE, INTERRUPTED, USAGE, UsageError
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.contract import described

_OF_LABORATORY = ("lab", "probe", "rope")


class _Verbs(TyperGroup):
    """The verbs. An error for the user is printed as lines, or with `--debug` as a traceback."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._joined: dict[str, Any] = {}

    def list_commands(self, ctx: Any) -> list[str]:  # contexts of typer's own click
        """Our own verbs, then those that join by entry points."""
        built_in = super().list_commands(ctx)
        return [*built_in, *verbs(built_in, partial(self.get_command, ctx))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of this name, `None` if there is none."""
        found = super().get_command(ctx, cmd_name) or self._joined.get(cmd_name)
        if found is None and (found := verb(cmd_name)) is not None:
            self._joined[cmd_name] = found
        if found is None and cmd_name in _OF_LABORATORY:
            raise UsageError(
                f"'bench {cmd_name}' comes with eyechart-lab: pip install -e . -e lab in a clone "
                "of the repository"
            )
        return found

    def invoke(self, ctx: Any) -> Any:
        raise_in_work()
        for line in unknown_variables(os.environ):
            warn(line)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # typer would print nothing
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except FAILURES as error:
            if ctx.params["debug"]:
                raise
            raise typer.Exit(explain(error)) from None
        except Exception:  # a mistake of this program, or an end that typer knows
            raise
        except BaseException as error:  # noqa: BLE001  what ends a program, raised by others' code
            if ctx.params["debug"]:
                _show_traceback(type(error), error, error.__traceback__)
            warn(f"{_place(error)} raised {described(error)}, and no plugin may end the command")
            raise typer.Exit(INCOMPLETE) from None


def _place(error: BaseException) -> str:
    """The file and the line that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "code" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


app = typer.Typer(
    name="bench",
    cls=_Verbs,
    help="An eye chart for language models: how far does a model see, and what moves that point?",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


def help_(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[VERB…]", help="A verb.")] = None,
) -> None:
    """Show the help of the program, or of a verb."""
    shown: Any = context.find_root()  # a context of typer's own click
    for name in names or ():
        group = shown.command
        known = group.list_commands(shown) if hasattr(group, "list_commands") else []
        if name not in known:
            raise UsageError(
                f"no verb {name!r} of {shown.command_path!r}; {did_you_mean(name, known)}"
            )
        shown = type(shown)(group.get_command(shown, name), info_name=name, parent=shown)
    echo(*shown.get_help().split("\n"))


def models(
    *,
    update_prices: Annotated[
        bool, typer.Option("--update-prices", help="Fetch the newest list of prices first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the providers and what each needs."""
    from eyechart.harness.cli import verbs as listing

    if update_prices:
        listing.update_prices()
    listing.list_models(as_json=as_json)


MODELS_EXAMPLES = examples("bench models", "bench models --update-prices")
for _verb, _name, _short, _examples, _class in (
    (run, "run", "Run tasks on models.", RUN_EXAMPLES, AskingVerb),
    (samples, "samples", "Print samples of a run, with their replies.", SAMPLES_EXAMPLES, Verb),
    (runs, "runs", "List runs.", RUNS_EXAMPLES, Verb),
    (score, "score", "Judge runs again, without a model.", SCORE_EXAMPLES, Verb),
    (compare, "compare", "Compare runs, or two conditions of each.", COMPARE_EXAMPLES, Verb),
    (report, "report", "Write a page about runs.", REPORT_EXAMPLES, Verb),
    (figure, "figure", "Draw a figure for a paper.", FIGURE_EXAMPLES, Verb),
    (leaderboard, "leaderboard", "Rank runs in a table and on a page.", LEADERBOARD_EXAMPLES, Verb),
    (models, "models", "List providers and their needs.", MODELS_EXAMPLES, Verb),
    (
        help_,
        "help",
        "Show the help of a verb.",
        examples("bench help run", "bench help tasks check"),
        Verb,
    ),
):
    app.command(_name, short_help=_short, epilog=_examples, cls=_class)(_verb)
app.add_typer(tasks_app, name="tasks")
app.add_typer(study_app, name="study")


def _show_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Prints a traceback without the keys that messages of servers and SDKs repeat."""
    import traceback

    text = "".join(traceback.format_exception(kind, error, trace))
    say(*text.removesuffix("\n").split("\n"))


@cache
def command() -> Any:
    """The parser of the program; typer makes one anew, in 30 ms, each time `app` is called."""
    return get_command(app)


def main() -> None:
    """The entry point. An error that the user can mend is one line, with `--debug` a traceback."""
    # the embedded model keeps the cores busy itself; OpenBLAS reads this when numpy is imported
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    open_streams()
    sys.excepthook = _show_traceback
    try:
        code: int | None = command()(standalone_mode=False)
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
            warn(said_of_parsing(error))
        raise SystemExit(USAGE) from None
    raise SystemExit(code or (1 if is_output_lost() else 0))
