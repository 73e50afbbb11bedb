"""The verbs: a module of `harness.cli.verbs` each, or what a package adds by an entry point.

A verb is imported when it is used; the program's help imports none of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command

from eyechart.harness.cli.terminal import warn
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.contract import a_kind
from eyechart.providers.plugins.plugins import VERBS, PluginError

OWN = {
    "run": "Run tasks on models.",
    "samples": "Print samples of a run, with their replies.",
    "runs": "List runs.",
    "score": "Judge runs again, without a model.",
    "compare": "Compare runs, or two conditions of each.",
    "report": "Write a page about runs.",
    "figure": "Draw a figure for a paper.",
    "leaderboard": "Rank runs in a table and on a page.",
    "models": "List providers and their needs.",
    "help": "Show the help of a verb.",
    "tasks": "List, show, write and check tasks.",
    "study": "List, show and check studies.",
}
"""Name of a module of `harness.cli.verbs` -> what the program's help says of the verb."""
JOINED = {
    "export": "Write tasks for other engines, and runs for platforms.",
    "gate": "Compare runs with a saved baseline, for pipelines.",
    "import": "Take replies of batches into their runs.",
}
"""The same of the verbs that join by an entry point of this package."""
_OF_PROGRAMS = ("install_completion", "show_completion")


def verb(name: str) -> Any | None:
    """The command, of typer's own click, with this name, `None` if there is none; raises
    `PluginError` if its package cannot be imported, or the object is no `typer.Typer`.
    """
    if name in OWN:
        return _command(name, import_module(f"eyechart.harness.cli.verbs.{name}").app)
    plugin = plugins.find(VERBS, name)
    if plugin is None:
        return None
    app = plugin.load()
    if not isinstance(app, typer.Typer):
        raise plugin.error(f"it is {a_kind(app)}, and should be a typer.Typer")
    return _command(name, app)


def _command(name: str, app: typer.Typer) -> Any:
    command: Any = get_command(app)
    command.name = name
    # typer adds these to every program; `bench` itself has them
    command.params = [one for one in command.params if one.name not in _OF_PROGRAMS]
    return command


def joined(load: Callable[[str], object]) -> list[str]:
    """The names of verbs that other packages add and that `load` finds; warns of packages that
    cannot be used.
    """
    found = plugins.installed(VERBS, OWN)
    names = [name for name in JOINED if name in found.usable]
    for name in found.usable:
        if name not in JOINED:
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
