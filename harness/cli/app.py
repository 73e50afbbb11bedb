"""The command `bench`. Its help imports no verb, and a verb imports slow modules after its options
are parsed.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from eyechart.harness.cli.interrupts import raise_in_work
from eyechart.harness.cli.parsing.loading import lines, verb
from eyechart.harness.cli.terminal import echo, is_output_lost, open_streams, say, warn
from eyechart.harness.errors import INTERRUPTED, USAGE, UsageError
from eyechart.providers.close_match import did_you_mean

_OF_LABORATORY = ("lab", "probe", "rope")


class _Verbs(TyperGroup):
    """The verbs. An error for the user is printed as lines, or with `--debug` as a traceback."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._loaded: dict[str, Any] = {}

    def list_commands(self, _ctx: Any) -> list[str]:  # contexts of typer's own click
        """Our own verbs, then those that join by entry points."""
        return [*lines()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of this name, `None` if there is none."""
        for_shell = ctx is not None and ctx.resilient_parsing
        found = self._loaded.get(cmd_name) or verb(cmd_name, for_shell=for_shell)
        self._loaded[cmd_name] = found
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that the arguments begin with; raises `UsageError` if there is none."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            if args[0] in _OF_LABORATORY:
                raise UsageError(
                    f"'bench {args[0]}' comes with eyechart-lab: pip install -e . -e lab in a "
                    "clone of the repository"
                )
            help_lists = "'bench --help' lists them"
            near = did_you_mean(args[0], self.list_commands(ctx), help_lists)
            raise UsageError(f"no such command {args[0]!r}; {near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Lists the verbs, and imports none."""
        with formatter.section("Commands"):
            formatter.write_dl([*lines().items()])

    def invoke(self, ctx: Any) -> Any:
        from eyechart.harness.cli.failures import FAILURES, explain
        from eyechart.harness.cli.parsing.defaults import unknown_variables

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


app = typer.Typer(
    name="bench",
    cls=_Verbs,
    help="An eye chart for language models: to which length is one exact, and what moves it?",
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
        from eyechart.harness.cli.failures import said_of_parsing

        message = error.format_message()
        if message.startswith("Usage:"):
            say(*message.split("\n"))
        else:
            warn(said_of_parsing(error))
        raise SystemExit(USAGE) from None
    raise SystemExit(code or (1 if is_output_lost() else 0))
