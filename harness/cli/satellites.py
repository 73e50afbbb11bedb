"""What joins the command line by entry points: verbs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.main import get_command

from eyechart.harness.cli.terminal import warn
from eyechart.providers import plugins
from eyechart.providers.plugins import VERBS, PluginError

_OF_PROGRAMS = ("install_completion", "show_completion")


def verb(name: str) -> Any | None:
    """The command, of typer's own click, that a satellite or another package adds under this name;
    raises `PluginError` if the package cannot be imported, or the object is no `typer.Typer`.
    """
    plugin = plugins.find(VERBS, name)
    if plugin is None:
        return None
    app = plugin.load()
    if not isinstance(app, typer.Typer):
        raise plugin.error(f"it is a {type(app).__name__}, and should be a typer.Typer")
    command: Any = get_command(app)
    command.name = name
    # typer adds these to every program; `bench` itself has them
    command.params = [one for one in command.params if one.name not in _OF_PROGRAMS]
    return command


def verbs(built_in: Collection[str], load: Callable[[str], object]) -> list[str]:
    """The names of entry points that are not built in and that `load` finds; warns of packages that
    cannot be used.
    """
    found = plugins.installed(VERBS, built_in)
    names = []
    for name in found.usable:
        with _warned():
            load(name)
            names.append(name)
    for error in found.refused.values():
        warn(str(error))
    return names


@contextmanager
def _warned() -> Iterator[None]:
    """A package that cannot be used is named in a line, and the others are used."""
    try:
        yield
    except PluginError as error:
        warn(str(error))
