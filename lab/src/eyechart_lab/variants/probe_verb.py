"""The verb `probe`, and the measures that it knows.

A satellite imports no other one, so the verb is used as its entry point gives it.
"""

from __future__ import annotations

from typing import Any

from eyechart.harness.cli.satellites import verb
from eyechart.harness.errors import UsageError


def probe_verb() -> Any:
    """The command of typer."""
    command = verb("probe")
    assert command is not None, "our own entry point"
    return command


def problem_of_measure(name: str) -> str:
    """What is wrong with the name of a measure, as `bench probe` says it; empty if nothing is."""
    command = probe_verb()
    option = next(one for one in command.params if "--measure" in one.opts)
    try:
        option.callback(None, option, [name])
    except UsageError as error:
        return " ".join(error.lines)
    return ""
