"""The lines and the exit code for an error that the user can mend."""

from __future__ import annotations

import re
import sys
from typing import Any, TypeAlias

from eyechart.harness.cli.terminal import drop_output, say, warn
from eyechart.harness.errors import INCOMPLETE, EyechartError
from eyechart.harness.settings.spelling import as_option
from eyechart.providers.base import ProviderError
from eyechart.providers.naming import spelled

Failure: TypeAlias = EyechartError | ProviderError | OSError | MemoryError
_MEANT = {
    **dict.fromkeys(("--limit", "--max-samples", "--n", "-n"), "--samples"),
    **dict.fromkeys(("-o", "--output", "--output-path", "--output_path"), "--out"),
}
"""Option of other harnesses -> our option."""
_OF_A_KEY = re.compile(r"--?([a-z]+[-_])?(api|auth|access|secret)[-_]?(key|token)|--(key|token)")
"""Options of other harnesses that take a key, which would stay in the history of the shell."""
_RUNS = ("RUN", "RUN…")
"""Arguments that are folders of runs."""
FAILURES = (EyechartError, ProviderError, OSError, MemoryError)
"""The errors that are printed as lines; others are mistakes of this program."""


def explain(error: Failure, model: str = "") -> int:
    """Prints what went wrong, with one `model` of several if given; returns the exit code."""
    if isinstance(error, OSError):
        drop_output(sys.stdout)  # it cannot be flushed any more
    first, *more = lines_of(error)
    warn(f"{model}: {first}" if model else first)
    say(*more)
    return INCOMPLETE if isinstance(error, OSError | MemoryError) else error.exit_code


def lines_of(error: Failure) -> list[str]:
    """What went wrong, as lines for the user of the command line."""
    if isinstance(error, OSError):
        return [f"{error.strerror or error}: {error.filename or 'output'}"]
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return [f"out of memory{detail}; ask for less at a time"]
    return [spelled(line, as_option) for line in error.lines]


def said_of_parsing(error: Any) -> str:
    """One line for an error of the parser, which may come from one of two click packages."""
    message = str(error.format_message()).rstrip(".")
    message = message[:1].lower() + message[1:]
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities") and option:
        command = getattr(error.ctx, "command", None)
        if _OF_A_KEY.fullmatch(option):
            return (
                f"no such option: {option}; a key goes into a variable of the environment, such as "
                "OPENAI_API_KEY: 'bench models' names that of each provider"
            )
        known = {name for parameter in getattr(command, "params", ()) for name in parameter.opts}
        meant = [_MEANT[option]] if _MEANT.get(option) in known else error.possibilities or ()
        guess = f"; did you mean {' or '.join(map(repr, meant))}?" if meant else ""
        return f"no such option: {option}{guess}"
    if message.startswith("no such command"):  # of a verb with several forms
        name = error.ctx.command_path
        return f"{message}; {name!r} or {f'{name} --help'!r} says what there is"
    parameter = getattr(error, "param", None)
    if hasattr(error, "param_type") and getattr(parameter, "metavar", None) in _RUNS:
        places = [
            one.metavar
            for one in error.ctx.command.params
            if one.param_type_name == "argument" and one.metavar
        ]
        if len(places) > 1:
            message += f"; write {error.ctx.command_path} {' '.join(places)}"
        message += "; 'bench runs' lists the runs"
    return message
